import json
from pathlib import Path

import numpy as np


def read(path):
    """The header, and the columns by name."""
    data = Path(path).read_bytes()
    if data[:8] != b"VGCOL\0\0\1":
        raise ValueError("not a trace file")
    length = int.from_bytes(data[8:12], "little")
    header = json.loads(data[16 : 16 + length])
    begin = (16 + length + 7) // 8 * 8
    columns = {}
    for name, said in header["columns"].items():
        dtype, shape = np.dtype("<" + said["dtype"]), said["shape"]
        count = int(np.prod(shape))
        column = np.frombuffer(data, dtype, count, begin + said["offset"])
        columns[name] = column.reshape(shape)
    return header, columns


def events(header, columns, holds):
    """(kind, node, cause, fields) for each event, in order."""
    kinds, strings = header["meta"]["kinds"], header["strings"]

    def plain(name, value):
        if holds[name] == "text":
            return strings[value] if value >= 0 else ""
        return bool(value) if name.startswith("k.") and columns[name].dtype == "u1" else value

    fields = {kind: {} for kind in kinds}
    for name in columns:
        if name.startswith("k."):
            _, kind, field, *part = name.split(".")
            fields[kind][field] = name.removesuffix("." + part[0]) if part else name
    rows = dict.fromkeys(kinds, 0)
    stamps = (columns[f"ev.{name}"].tolist() for name in ("kind", "node", "cause"))
    for k, node, cause in zip(*stamps, strict=True):
        kind = kinds[k]
        row = rows[kind]
        rows[kind] += 1
        said = {}
        for field, name in fields[kind].items():
            if name in columns:
                value = columns[name][row].tolist()
                said[field] = tuple(value) if isinstance(value, list) else plain(name, value)
            else:
                first, end = columns[name + ".ptr"][row : row + 2]
                items = columns[name + ".val"][first:end].tolist() if name + ".val" in columns else []
                said[field] = tuple(plain(name + ".val", item) for item in items)
        yield kind, node, cause, said
