"""A GGUF file in parts that are changed one by one and put together again, so that a change reaches past the header."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field

from vizggml.ggml.types import TYPES_BY_ID, pad

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY = 8, 9
EXTREMES = (
    *(0, 1, 2, 3, 7, 8, 13, 31, 32, 33, 63, 64, 255, 256),
    *(2**n + d for n in (15, 16, 20, 31, 32, 40, 62, 63, 64) for d in (-33, -32, -1, 0, 1)),
)
FLOATS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1e-38,
    1e-45,
    3.4e38,
    -3.4e38,
    float("inf"),
    float("-inf"),
    float("nan"),
    1e4,
    1e30,
)
WORDS = (
    *("", "llama", "qwen3", "qwen3moe", "gemma3", "gpt2", "llama-bpe", "gpt-2", "qwen2", "smollm", "none", "no_vocab"),
    *("linear", "yarn", "longrope", "spm", "default", "\u2581a", "<0x41>", "<0xZZ>", "a b", "b", "\u0120", "<s>"),
    *("<|call|>", "<|end|>", "<|return|>", "</s>", "<|im_end|>", "\ud7ff\u0000", "\u202e", "unused", "\n", "x" * 300),
)
KEYS = (
    "block_count context_length embedding_length feed_forward_length attention.head_count attention.head_count_kv "
    "attention.key_length attention.value_length attention.layer_norm_rms_epsilon attention.causal "
    "rope.dimension_count rope.freq_base rope.scaling.type rope.scaling.factor rope.scale_linear "
    "rope.scaling.finetuned rope.scaling.attn_factor rope.scaling.original_context_length rope.freq_base_swa "
    "attention.sliding_window attention.sliding_window_pattern attention.scale "
    "final_logit_softcapping attn_logit_softcapping "
    "expert_count expert_used_count expert_feed_forward_length expert_group_count expert_weights_scale "
    "expert_weights_norm vocab_size nextn_predict_layers classifier.output_labels"
).split()
TOKENIZER = (
    "model pre tokens scores token_type merges bos_token_id eos_token_id eot_token_id eom_token_id unknown_token_id "
    "seperator_token_id padding_token_id mask_token_id add_bos_token add_eos_token add_space_prefix "
    "remove_extra_whitespaces precompiled_charsmap fim_pre_token_id prefix_token_id"
).split()
OTHERS = ("general.architecture", "general.alignment", "general.name", "split.count")
TENSORS = ("output.weight", "rope_freqs.weight", "blk.0.attn_q.bias", "blk.0.ffn_down.bias", "rope_factors_long.weight")


def text(raw: bytes) -> bytes:
    return struct.pack("<Q", len(raw)) + raw


@dataclass
class Info:
    name: bytes
    ne: list[int]
    type: int
    data: bytes

    def nbytes(self) -> int:
        """What the tensor takes, at most what a small file has room for."""
        type, n = TYPES_BY_ID.get(self.type), 1
        for m in self.ne:
            n *= m
        return 0 if type is None else min(n // type.blck_size * type.type_size, 1 << 20)


@dataclass
class Parts:
    version: int = 3
    pairs: list[tuple[bytes, int, bytes]] = field(default_factory=list)
    infos: list[Info] = field(default_factory=list)

    def alignment(self) -> int:
        for key, type, value in self.pairs:
            if key == b"general.alignment" and type == 4:
                n = struct.unpack("<I", value)[0]
                return n if n and n & (n - 1) == 0 and n <= 4096 else 32
        return 32

    def build(self) -> bytes:
        """The file: offsets follow from the shapes, data is cut or repeated to fit."""
        out = bytearray(b"GGUF" + struct.pack("<IQQ", self.version, len(self.infos), len(self.pairs)))
        for key, type, value in self.pairs:
            out += text(key) + struct.pack("<I", type) + value
        data, alignment = bytearray(), self.alignment()
        for info in self.infos:
            out += text(info.name) + struct.pack("<I", len(info.ne))
            out += b"".join(struct.pack("<Q", n % 2**64) for n in info.ne) + struct.pack("<IQ", info.type, len(data))
            n = info.nbytes()
            data += ((info.data or b"\0") * (n // max(1, len(info.data)) + 1))[:n]
            data += bytes(pad(len(data), alignment) - len(data))
        if self.infos:
            out += bytes(pad(len(out), alignment) - len(out))
        return bytes(out + data)

    def set(self, key: str, type: int, value: bytes) -> None:
        raw = key.encode()
        places = [i for i, (k, _, _) in enumerate(self.pairs) if k == raw]
        if places:
            self.pairs[places[0]] = (raw, type, value)
        else:
            self.pairs.append((raw, type, value))


class _Cursor:
    def __init__(self, raw: bytes) -> None:
        self.raw, self.pos = raw, 0

    def take(self, n: int) -> bytes:
        if n > len(self.raw) - self.pos:
            raise ValueError
        self.pos += n
        return self.raw[self.pos - n : self.pos]

    def number(self, code: str) -> int:
        return int(struct.unpack("<" + code, self.take(struct.calcsize(code)))[0])

    def text(self) -> bytes:
        return self.take(self.number("Q"))

    def value(self, type: int) -> bytes:
        start = self.pos
        if type == STRING:
            self.text()
        elif type == ARRAY:
            of, n = self.number("I"), self.number("Q")
            if of == STRING:
                for _ in range(n):
                    self.text()
            else:
                self.take(SIZES.get(of, 1) * n)
        else:
            self.take(SIZES.get(type, 0))
        return self.raw[start : self.pos]


def parts_of(raw: bytes) -> Parts | None:
    """The parts of a file that is whole enough, None if it is not."""
    c = _Cursor(raw)
    try:
        if c.take(4) != b"GGUF":
            return None
        parts = Parts(c.number("I"))
        n_infos, n_pairs = c.number("Q"), c.number("Q")
        for _ in range(n_pairs):
            key, type = c.text(), c.number("I")
            parts.pairs.append((key, type, c.value(type)))
        offsets = []
        for _ in range(n_infos):
            name, n_dims = c.text(), c.number("I")
            ne = [c.number("Q") for _ in range(min(n_dims, 9))]
            parts.infos.append(Info(name, ne, c.number("I"), b""))
            offsets.append(c.number("Q"))
        start = pad(c.pos, parts.alignment())
        for info, offset in zip(parts.infos, offsets, strict=True):
            info.data = raw[start + offset : start + offset + info.nbytes()]
    except (ValueError, MemoryError):
        return None
    return parts


def scalar(type: int, dice: random.Random) -> bytes:
    size = SIZES[type]
    if type in (6, 12):
        x = dice.choice(FLOATS) if dice.random() < 0.7 else dice.uniform(-1e4, 1e4)
        return struct.pack("<f" if type == 6 else "<d", x)
    n = dice.choice(EXTREMES) if dice.random() < 0.5 else dice.randrange(40)
    return (n % 2 ** (8 * size)).to_bytes(size, "little")


def value(type: int, dice: random.Random) -> bytes:
    if type == STRING:
        return text(dice.choice(WORDS).encode())
    if type != ARRAY:
        return scalar(type, dice) if type in SIZES else bytes(dice.randrange(9))
    of, n = dice.choice((*SIZES, STRING, STRING, 6, 5, ARRAY)), dice.choice((0, 1, 2, 3, 16, 40))
    items = b"".join(value(of, dice) if of != ARRAY else b"" for _ in range(n))
    return struct.pack("<IQ", of, n) + items


def resized(raw: bytes, dice: random.Random) -> bytes:
    """The array with items changed, left off or added."""
    of, n = struct.unpack_from("<IQ", raw)
    if of == STRING:
        c = _Cursor(raw)
        c.take(12)
        items = [text(c.text()) for _ in range(n)]
    elif of in SIZES:
        items = [raw[12 + i * SIZES[of] :][: SIZES[of]] for i in range(n)]
    else:
        return raw
    for _ in range(dice.choice((1, 1, 4))):
        at, how = dice.randrange(len(items) + 1), dice.randrange(4)
        if how == 0 and items:
            del items[at : at + dice.randrange(1, 4)]
        elif how == 1 and items:
            items.insert(at, dice.choice(items))
        elif how == 2:
            items.insert(at, value(of, dice))
        elif items:
            items[min(at, len(items) - 1)] = value(of, dice)
    return struct.pack("<IQ", of, len(items)) + b"".join(items)


def _change_pair(parts: Parts, dice: random.Random) -> None:
    how = dice.randrange(8)
    if how < 2 or not parts.pairs:
        arch = next((v[8:] for k, _, v in parts.pairs if k == b"general.architecture"), b"llama").decode(
            "utf-8", "replace"
        )
        kind = dice.random()
        key = f"{arch}.{dice.choice(KEYS)}" if kind < 0.6 else f"tokenizer.ggml.{dice.choice(TOKENIZER)}"
        key = dice.choice(OTHERS) if kind > 0.95 else key
        type = dice.choice((4, 4, 4, 6, 6, 7, STRING, ARRAY, 5, 10))
        parts.set(key, type, value(type, dice))
        return
    i = dice.randrange(len(parts.pairs))
    key, type, old = parts.pairs[i]
    if how == 2:
        del parts.pairs[i]
    elif how == 3:
        type = dice.choice((*SIZES, STRING, ARRAY))
        parts.pairs[i] = (key, type, value(type, dice))
    elif type == ARRAY:
        parts.pairs[i] = (key, type, resized(old, dice))
    else:
        parts.pairs[i] = (key, type, value(type, dice))


def _change_info(parts: Parts, dice: random.Random) -> None:
    how = dice.randrange(9)
    if how == 0 or not parts.infos:
        name = dice.choice(TENSORS).encode()
        parts.infos.append(Info(name, [dice.choice((1, 4, 8, 16, 32, 64))], dice.choice((0, 1, 8)), dice.randbytes(64)))
        return
    i = dice.randrange(len(parts.infos))
    info = parts.infos[i]
    if how == 1:
        del parts.infos[i]
    elif how == 2:
        info.type = dice.choice(list(TYPES_BY_ID))
    elif how == 3 and info.ne:
        info.ne[dice.randrange(len(info.ne))] = dice.choice((0, 1, 2, 3, 8, 16, 32, 48, 64, 256, *EXTREMES))
    elif how == 4:
        info.ne = info.ne[::-1] if dice.random() < 0.5 else [*info.ne, dice.choice((0, 1, 2))][:5]
    elif how == 5:
        info.name = dice.choice([*(other.name for other in parts.infos), *(t.encode() for t in TENSORS)])
    elif how == 6:
        j = dice.randrange(len(parts.infos))
        parts.infos[i], parts.infos[j] = parts.infos[j], parts.infos[i]
    elif info.data:
        data = bytearray(info.data)
        for _ in range(dice.choice((1, 1, 3, 50))):
            at = dice.randrange(len(data)) // 4 * 4
            bits = struct.pack("<f", dice.choice(FLOATS)) if dice.random() < 0.6 else dice.randbytes(4)
            data[at : at + 4] = bits[: len(data) - at]
        info.data = bytes(data) if how == 7 else dice.choice((b"\xff", b"\0", struct.pack("<f", dice.choice(FLOATS))))


def mutated(raw: bytes, dice: random.Random) -> bytes:
    """The file with a few parts changed; the bytes themselves where it has no parts."""
    parts = parts_of(raw)
    if parts is None or dice.random() < 0.1:
        return scrambled(raw, dice)
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        if dice.random() < 0.6:
            _change_pair(parts, dice)
        else:
            _change_info(parts, dice)
    if dice.random() < 0.03:
        parts.version = dice.choice((0, 1, 2, 4, 0x03000000, 0x02000000, 2**32 - 1))
    out = parts.build()
    return scrambled(out, dice) if dice.random() < 0.15 else out


SOFT = {
    6: "attention.layer_norm_rms_epsilon rope.freq_base rope.scaling.factor rope.scale_linear rope.scaling.attn_factor "
    "attention.scale final_logit_softcapping attn_logit_softcapping expert_weights_scale rope.freq_base_swa "
    "rope.scaling.yarn_ext_factor rope.scaling.yarn_beta_fast rope.scaling.yarn_log_multiplier",
    4: "context_length expert_used_count rope.scaling.original_context_length attention.sliding_window "
    "attention.sliding_window attention.sliding_window_pattern leading_dense_block_count expert_gating_func",
    7: "attention.causal rope.scaling.finetuned expert_weights_norm",
}
TYPED = (0, 1, 30, 8, 2, 3, 6, 7, 20, 39, 40, 42)
"""Types with blocks that fit narrow rows."""


def gentle(raw: bytes, dice: random.Random) -> bytes:
    """Changes that mostly leave the file a model: numbers that scale, weights, tokens, types of weights."""
    parts = parts_of(raw)
    if parts is None or not parts.infos:
        return mutated(raw, dice)
    arch = next((v[8:] for k, _, v in parts.pairs if k == b"general.architecture"), b"llama").decode("utf-8", "replace")
    for _ in range(dice.choice((1, 1, 2, 3))):
        how, info = dice.randrange(5), dice.choice(parts.infos)
        if how == 0:
            type = dice.choice((6, 6, 4, 7))
            parts.set(f"{arch}.{dice.choice(SOFT[type].split())}", type, scalar(type, dice))
        elif how == 1:
            info.data = (
                struct.pack("<f", dice.choice(FLOATS))
                if dice.random() < 0.5
                else dice.randbytes(min(64, len(info.data)))
            )
        elif how == 2 and len(info.ne) > 1:
            info.type = dice.choice(TYPED)
        elif how == 3:
            arrays = [i for i, (_, type, _) in enumerate(parts.pairs) if type == ARRAY]
            if arrays:
                i = dice.choice(arrays)
                parts.pairs[i] = (*parts.pairs[i][:2], resized(parts.pairs[i][2], dice))
        else:
            kind = dice.choice(("rope.scaling.type", ""))
            if kind:
                parts.set(f"{arch}.{kind}", STRING, text(dice.choice((b"yarn", b"linear", b"none", b"longrope"))))
            else:
                key = dice.choice([k for k in TOKENIZER if k.endswith("_id")])
                parts.set(f"tokenizer.ggml.{key}", 4, struct.pack("<I", dice.randrange(100)))
    return parts.build()


def scrambled(raw: bytes, dice: random.Random) -> bytes:
    """Bytes changed, cut out, repeated, with no thought of what they mean."""
    out = bytearray(raw)
    for _ in range(dice.choice((1, 1, 1, 2, 3, 6))):
        # What a header says is worth more than what the data holds.
        room = max(1, len(out) - 8)
        at, how = dice.randrange(room if dice.random() < 0.5 else min(room, 1024)), dice.randrange(6)
        if how == 0:
            out[at : at + 1] = dice.randbytes(1)
        elif how == 1:
            out[at : at + 4] = struct.pack("<I", dice.choice(EXTREMES) % 2**32)
        elif how == 2:
            out[at : at + 8] = struct.pack("<Q", dice.choice(EXTREMES) % 2**64)
        elif how == 3:
            del out[at : at + dice.randrange(1, 40)]
        elif how == 4:
            out[at:at] = out[max(0, at - dice.randrange(1, 60)) : at]
        elif at < len(out):
            out[at] ^= 1 << dice.randrange(8)
    return bytes(out)
