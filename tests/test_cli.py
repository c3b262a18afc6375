"""The command line as a person types it: what it prints, its exit codes, and one line for every failure."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.llama.building import golden
from tests.llama.made import Shape, write
from vizggml.cli_print import dims
from vizggml.timeline.trace import load_trace
from vizggml.timeline.tracks import Tracks

RELU = {
    "vizggml_graph": 1,
    "tensors": [
        {"id": 0, "name": "W", "type": "F32", "ne": [3, 2, 1, 1], "op": "NONE", "src": []},
        {"id": 1, "name": "x", "type": "F32", "ne": [3, 1, 1, 1], "op": "NONE", "src": []},
        {"id": 2, "name": "b", "type": "F32", "ne": [2, 1, 1, 1], "op": "NONE", "src": []},
        {"id": 3, "name": "wx", "type": "F32", "ne": [2, 1, 1, 1], "op": "MUL_MAT", "src": [0, 1]},
        {"id": 4, "name": "wx+b", "type": "F32", "ne": [2, 1, 1, 1], "op": "ADD", "src": [3, 2]},
        {"id": 5, "name": "out", "type": "F32", "ne": [2, 1, 1, 1], "op": "UNARY", "op_params": [6], "src": [4]},
    ],
    "outputs": [5],
}


def vizggml(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vizggml", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd)


def failed(done: subprocess.CompletedProcess[str]) -> str:
    """The one line on standard error of a command that failed."""
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.fixture
def relu(tmp_path: Path) -> Path:
    path = tmp_path / "relu.json"
    path.write_text(json.dumps(RELU))
    return path


def test_alloc_answers_ggmls_offsets(relu: Path) -> None:
    """Offsets as real ggml places this graph: W 0, x 32, b 64, and 96 three times, 128 bytes."""
    report = json.loads(vizggml("alloc", relu, "--json").stdout)
    assert report["size"] == 128
    assert report["buffers"] == [{"chunks": [128]}]
    assert [report["tensors"][str(i)]["offset"] for i in range(6)] == [0, 32, 64, 96, 96, 96]
    assert [report["tensors"][str(i)]["reuses"] for i in range(6)] == [None, None, None, None, 3, 4]


def test_alloc_says_what_no_allocator_does_without(relu: Path) -> None:
    """By hand: W, x, b and the first result live at node 0, 32 bytes each with their padding; six tensors in all."""
    report = json.loads(vizggml("alloc", relu, "--json").stdout)
    assert report["live"] == {"bound": 128, "no_reuse": 192, "peak_node": 3}
    told = (
        "lower bound 128 bytes (the most that lives at once), "
        "no reuse 192 bytes (if no two tensors shared memory): the lower bound is reached"
    )
    assert vizggml("alloc", relu).stdout.splitlines()[-1] == told
    # without its padding the same is 24 + 12 + 8 + 8 bytes
    report = json.loads(vizggml("alloc", relu, "--alignment", "1", "--json").stdout)
    assert report["live"] == {"bound": 52, "no_reuse": 68, "peak_node": 3}


def test_alloc_of_several_files_answers_a_line_each(relu: Path) -> None:
    lines = vizggml("alloc", relu, relu, "--json").stdout.splitlines()
    assert len(lines) == 2
    assert json.loads(lines[0]) == json.loads(lines[1])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda g: g["tensors"][3].update(src=[0, 4]), "cycle"),
        (lambda g: g["tensors"][3].update(src=[0, 77]), "77"),
        (lambda g: g["tensors"][3].update(op="MUL_MATE"), "MUL_MATE"),
        (lambda g: g["tensors"][3].update(ne=[3, 1, 1, 1]), "wx"),
        (lambda g: g["tensors"][0].update(type="F33"), "F33"),
        (lambda g: g.update(vizggml_graph=2), "2"),
    ],
    ids=["cycle", "missing id", "unknown op", "wrong shape", "unknown type", "other version"],
)
def test_a_bad_graph_file_is_one_line(change: object, says: str, tmp_path: Path) -> None:
    graph = json.loads(json.dumps(RELU))
    change(graph)  # type: ignore[operator]
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(graph))
    assert says in failed(vizggml("alloc", path, "--json"))


def test_info_reads_the_header(tmp_path: Path) -> None:
    facts = json.loads(vizggml("info", "tiny", "--json", "--tensors").stdout)
    assert facts["metadata"]["general.architecture"] == "llama"
    assert facts["metadata"]["llama.embedding_length"] == 256
    assert facts["n_tensors"] == len(facts["tensors"]) == 2 + 4 * 9
    assert "token_embd.weight" in vizggml("info", "tiny", "--tensors").stdout


def test_run_trace_view_graph(tmp_path: Path) -> None:
    done = vizggml("run", "tiny", "-n", 5, "--temp", 0, "--json")
    story = json.loads(done.stdout)
    assert len(story["tokens"]) == 5
    trace, page, svg = tmp_path / "run.vgt", tmp_path / "run.html", tmp_path / "step.svg"
    done = vizggml("trace", "tiny", "-n", 5, "-o", trace, "--json")
    assert json.loads(done.stdout)["text"] == story["text"]
    assert vizggml("view", trace, "-o", page, "--no-browser").returncode == 0
    assert page.read_text().lstrip().lower().startswith("<!doctype html>")
    assert vizggml("graph", "tiny", "-o", svg).returncode == 0
    assert svg.read_text().lstrip().startswith("<svg")
    again = tmp_path / "step.json"
    assert vizggml("graph", "tiny", "-o", again).returncode == 0
    assert json.loads(vizggml("alloc", again, "--json").stdout)["size"] > 0


def test_a_recording_begins_with_the_planning(tmp_path: Path) -> None:
    """The largest plan is the reservation's: the compute buffer that `vizggml plan` counts for the same options."""
    run, options = tmp_path / "run.vgt", ("tiny", "-c", 256, "-ub", 64)
    assert vizggml("trace", *options, "-n", 2, "-o", run).returncode == 0
    reserved = load_trace(run).tracks().track("reserve")["size"]
    compute = json.loads(vizggml("plan", *options, "--json").stdout)["buffers"]["compute"]
    assert max(reserved) == compute


def test_a_recording_may_begin_in_mid_life(tmp_path: Path) -> None:
    """With the text of what was read before, the same as of a run that was recorded whole."""
    run, late = tmp_path / "run.vgt", tmp_path / "late.vgt"
    assert vizggml("trace", "tiny", "-n", 5, "-o", run).returncode == 0
    assert vizggml("trace", "tiny", "-n", 2, "--after", 3, "-o", late).returncode == 0
    whole, end = ([tracks.string(k) for k in tracks.track("token")["piece"]] for tracks in map(tracks_of, (run, late)))
    assert whole == end
    assert "".join(whole[:5]) == "<s>Once upon a time"


def tracks_of(path: Path) -> Tracks:
    return load_trace(path).tracks()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run", "no-such-file.gguf"), "no-such-file.gguf"),
        (("run", "tiny", "-c", 256, "-p", "one two three " * 100), "256"),
        (("trace", "tiny", "-o", "missing/run.vgt"), "missing"),
        (("trace", "tiny", "-o", "run.txt"), "run.txt"),
        (("view", "no-such-trace.vgt"), "no-such-trace.vgt"),
        (("info", "pyproject.toml"), "pyproject.toml"),
        (("run", "~no-such-person/model.gguf"), "no-such-person"),
        (("run", "tiny", "-c", 10**22), "n_ctx"),
        (("trace", "tiny", "--after", 400, "-c", 256, "-o", "run.vgt"), "after 400: the run ended after"),
    ],
)
def test_what_cannot_be_done_is_one_line(arguments: tuple[object, ...], says: str) -> None:
    assert says in failed(vizggml(*arguments))


def test_a_folder_is_no_output(tmp_path: Path) -> None:
    (tmp_path / "run.html").mkdir()
    assert "it is a folder" in failed(vizggml("trace", "tiny", "-o", tmp_path / "run.html"))


def test_usage_is_exit_code_2() -> None:
    assert vizggml("run").returncode == 2
    assert vizggml("alloc", "--no-such-option").returncode == 2


def test_a_run_goes_on_from_a_saved_state(tmp_path: Path) -> None:
    """The same text as one run; and with quantized keys and values, whose file the default refuses."""
    file, begun = tmp_path / "session", "Once upon a time"
    whole = json.loads(vizggml("run", "tiny", "-p", begun, "-n", 12, "--temp", 0, "--json").stdout)
    first = json.loads(vizggml("run", "tiny", "-p", begun, "-n", 5, "--temp", 0, "--json", "--save-state", file).stdout)
    more = begun + first["text"]
    second = json.loads(vizggml("run", "tiny", "-p", more, "-n", 7, "--temp", 0, "--json", "--load-state", file).stdout)
    assert first["tokens"] + second["tokens"] == whole["tokens"]
    assert vizggml("run", "tiny", "-n", 1, "-ctk", "q8_0", "-ctv", "q5_1", "--save-state", file).returncode == 0
    assert "cache_k_l0: Q8_0" in failed(vizggml("run", "tiny", "-n", 1, "--load-state", file))
    assert "--save-state: not with --keep" in failed(vizggml("run", "tiny", "--keep", 4, "--save-state", file))


@pytest.mark.parametrize("command", ["lab", "run", "trace", "view", "graph", "alloc", "info"])
def test_help_shows_an_example(command: str) -> None:
    done = vizggml(command, "--help")
    assert done.returncode == 0
    assert "Example:" in done.stdout
    assert f"vizggml {command}" in done.stdout


def test_plan_answers_the_design(tmp_path: Path) -> None:
    """The figures of the pinned llama.cpp for SmolLM2, the keys of the answer, and what the peak adds up to."""
    done = vizggml("plan", "smollm2", "-c", 2048, "-ub", 512, "-fa", "on", "-ctk", "q8_0", "-ctv", "q8_0", "--json")
    answer = json.loads(done.stdout)
    assert list(answer) == ["architecture", "nodes", "splits", "buffers", "peak"]
    assert (answer["architecture"], answer["nodes"], answer["splits"]) == ("llama", 1296, 1)
    assert answer["buffers"] == {
        "model": {"CPU_Mapped": 96576768},
        "kv": [25067520],
        "output": 49152 * 4,
        "compute": 104204288,
    }
    assert [set(t) for t in answer["peak"]] == [{"name", "op", "type", "ne", "offset", "size"}] * len(answer["peak"])
    assert max(t["offset"] + t["size"] for t in answer["peak"]) == answer["buffers"]["compute"]


def test_plan_says_why(tmp_path: Path) -> None:
    """By hand: 49152 logits of 4 bytes for 512 tokens; 30 layers of 192 keys and values in F16 for 2048 cells.

    The compute buffers of both kinds of attention are llama.cpp's: tests/goldens/llama_buffers.json.
    """
    done = vizggml("plan", "smollm2", "-c", 2048, "-fa", "off", "--picture", tmp_path / "plan.pdf")
    assert done.returncode == 0, done.stderr
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert any(line.startswith(f"result_output MUL_MAT 49152 x 512 F32 {49152 * 512 * 4:,} logits:") for line in lines)
    assert f"KV cache {2 * 30 * 192 * 2 * 2048:,} 45 MiB allocated" in lines
    of = {"model": "smollm2", "n_ctx": 2048, "n_ubatch": 512, "type_kv": "F16"}
    runs = [run for run in golden("llama_buffers.json") if of.items() <= run.items()]
    recorded = {run["flash_attn"]: run["compute"] for run in runs}
    for option, flash_attn in (("as asked", False), ("-fa on", True)):
        assert any(line.startswith(f"{option} {recorded[flash_attn]:,} ") for line in lines), option
    assert (tmp_path / "plan.pdf").read_bytes().startswith(b"%PDF")


def test_plan_counts_a_mapping_apart() -> None:
    """Repacked matrices lie in the mapping too: the two are never added."""
    asked = ("plan", "--shape", "minimind-64m", "--type", "Q4_K_M")
    buffers, text = json.loads(vizggml(*asked, "--json").stdout)["buffers"], " ".join(vizggml(*asked).stdout.split())
    allocated = buffers["model"]["CPU_REPACK"] + sum(buffers["kv"]) + buffers["output"] + buffers["compute"]
    assert f" allocated {allocated:,} " in text
    assert f" mapped {buffers['model']['CPU_Mapped']:,} " in text
    assert " of it copied " in text


def test_plan_of_a_shape_into_two_memories(tmp_path: Path) -> None:
    picture = tmp_path / "plan.svg"
    shape = ("plan", "--shape", "minimind-64m", "--type", "Q4_K_M", "-c", 4096)
    answer = json.loads(vizggml(*shape, "--fit", "64M,1G", "--json").stdout)
    first, second = answer["fit"]["memories"]
    assert (first["layers"][0], first["layers"][1], second["layers"][1]) == (0, second["layers"][0], 8)
    assert answer["nodes"] == 286
    table = vizggml(*shape, "--fit", "64M,1G", "--picture", picture)
    assert "286 nodes, 1 split" in table.stdout
    assert f"{answer['buffers']['compute']:,}" in table.stdout
    assert picture.read_text().startswith("<svg ")
    assert "does not fit" in failed(vizggml(*shape, "--fit", "1M,1M"))


def test_plan_says_in_one_line_what_cannot_be(tmp_path: Path) -> None:
    assert failed(vizggml("plan", "tiny", "-ctv", "q8_0", "-fa", "off")).endswith("need flash attention, it is off")
    assert "shape 'gpt' is not one of minimind-64m" in failed(vizggml("plan", "--shape", "gpt"))
    assert "type 'Q9' is not one of" in failed(vizggml("plan", "--shape", "llama-7b", "--type", "Q9"))
    assert failed(vizggml("plan", tmp_path / "none.gguf")).count("no such file") == 1
    assert failed(vizggml("plan", "tiny", "--picture", "x.bmp")).endswith("must end in .svg or .png or .pdf")
    assert "one is needed, both are missing" in " ".join(vizggml("plan").stderr.replace("│", "").split())
    for wrong in ((), ("tiny", "--shape", "llama-7b"), ("tiny", "--type", "F16"), ("tiny", "-fa", "maybe")):
        assert vizggml("plan", *wrong).returncode == 2


def test_plan_of_layers_with_a_window(tmp_path: Path) -> None:
    """Of seven layers one keeps 2,048 cells of 256 bytes, the others 40 + 512, in steps of 256."""
    path = write(tmp_path / "m.gguf", Shape("gemma3", n_layer=7, n_embd=128, n_ff=96, head_dim=32, n_swa=40))
    for given, n_cells in ((), 768), (("--swa-full",), 2048):
        done = vizggml("plan", path, "-c", 2048, "--json", *given)
        assert json.loads(done.stdout)["buffers"]["kv"] == [2048 * 256, 6 * n_cells * 256]


def test_shapes_end_where_the_ones_begin() -> None:
    assert [dims(ne) for ne in ([256, 1, 1, 1], [3, 2, 1, 1], [4, 1, 5, 1], [1, 1, 1, 1])] == [
        "256",
        "3 x 2",
        "4 x 1 x 5",
        "1",
    ]
