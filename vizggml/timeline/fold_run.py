"""The fold of what runs: scratch, threads, evaluations, tokens and the checks of graph reuse."""

from __future__ import annotations

import math
from bisect import insort
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from vizggml.timeline.fold_graph import Handler, small
from vizggml.timeline.track import Track

NONE = -1


@dataclass(slots=True)
class Ubatch:
    n_tokens: int
    pos: int
    tokens: tuple[int, ...]


class RunFold:
    """Folds the events of planning scratch, computing and decoding.

    An evaluation is one ubatch, or one computed graph where there are no batches. It begins where its ubatch is first
    worked on and holds until the next one begins, so that what was sampled from it is part of it.
    """

    def __init__(self, text: Callable[[int], str]) -> None:
        self.text = text
        self.scratch = Track("scratch", {"graph": "i", "tensor": "i", "n_tasks": "i", "work_size": "d", "maximum": "d"})
        times = {"begin_ns": "d", "end_ns": "d", "wait_ns": "d"}
        self.thread = Track(
            "thread", {"eval": "i", "tensor": "i", "thread": "i", **times, "chunks": "i", "polling": "i"}
        )
        reuse = {"eval": "i", "owner": "i", "condition": "i", "had": "i", "needs": "i", "ok": "i"}
        self.reuse = Track("reuse", reuse)
        token = {"token": "i", "piece": "i", "pos": "i", "sampled": "i", "p": "d", "eval": "i"}
        self.token = Track("token", token)
        self.candidate = Track("candidate", {"pos": "i", "rank": "i", "token": "i", "piece": "i", "p": "d"})
        evaluation = {"index": "i", "graph": "i", "n_tokens": "i", "pos": "i", "reused": "i", "ns": "d"}
        self.eval = Track("eval", evaluation)
        routed = {"eval": "i", "layer": "i", "n_tokens": "i", "n_expert": "i", "n_used": "i", "n_read": "i"}
        self.route = Track("route", {**routed, "nbytes": "d", "nbytes_read": "d"})
        self.tracks = (self.scratch, self.thread, self.reuse, self.token, self.candidate, self.eval, self.route)
        self._positions: list[int] = []  # of the tokens that stand, rising
        self.n_evals = 0
        self._eval_row = NONE
        self._computed = True
        self._ubatches: deque[Ubatch] = deque()
        self._pieces: dict[int, int] = {}
        self._maximum: dict[int, float] = {}
        self._planned: dict[int, list[int]] = {}
        self._chunks: dict[int, int] = {}
        self._n_checks = 0
        self._n_splits = 1
        self._n_computed = 0
        self._ns_before = 0

    def handlers(self) -> dict[str, Handler]:
        return {
            "NodePlanned": self.node_planned,
            "PlanMaximum": self.plan_maximum,
            "PlanEnd": self.plan_end,
            "GraphFreed": self.graph_freed,
            "SplitOpened": self.split_opened,
            "ComputeBegin": self.compute_begin,
            "ComputeEnd": self.compute_end,
            "NodeBegin": self.node_begin,
            "NodeEnd": self.node_end,
            "BarrierWait": self.barrier_wait,
            "WorkTaken": self.work_taken,
            "ChunksTaken": self.chunks_taken,
            "ReuseChecked": self.reuse_checked,
            "ReuseDecided": self.reuse_decided,
            "Tokenized": self.tokenized,
            "TokensHeld": self.tokens_held,
            "DecodeBegin": self.decode_begin,
            "UbatchSplit": self.ubatch_split,
            "LogitsReady": self.logits_ready,
            "TokenSampled": self.token_sampled,
            "ExpertsRouted": self.experts_routed,
        }

    # scratch

    def node_planned(
        self, i: int, node: int, graph: int, tensor: int, n_tasks: int, work_size: int, terms: int
    ) -> None:
        if graph not in self._maximum:
            self._maximum[graph] = 0
            self._forget_scratch(i, graph)
        maximum = self._maximum[graph]
        self._planned.setdefault(graph, []).append(tensor)
        self.scratch.set(i, (graph, tensor), graph, tensor, small(n_tasks), work_size, maximum)

    def plan_maximum(self, i: int, node: int, graph: int, tensor: int, work_size: int) -> None:
        self._maximum[graph] = work_size
        n_tasks = int(self.scratch.value((graph, tensor), "n_tasks", 1))
        self.scratch.set(i, (graph, tensor), graph, tensor, n_tasks, work_size, work_size)

    def plan_end(self, i: int, node: int, graph: int, *rest: int) -> None:
        self._maximum.pop(graph, None)

    def graph_freed(self, i: int, node: int, graph: int) -> None:
        self._maximum.pop(graph, None)
        self._forget_scratch(i, graph)

    def _forget_scratch(self, i: int, graph: int) -> None:
        self.scratch.clear_all(i, [(graph, tensor) for tensor in self._planned.pop(graph, ())])

    # evaluations

    def _begin_eval(self, i: int) -> None:
        if not self._computed:
            return
        self._computed = False
        ubatch = self._ubatches.popleft() if self._ubatches else Ubatch(0, NONE, ())
        index = self.n_evals
        self.n_evals += 1
        self._n_checks = 0
        self._eval_row = self.eval.set(i, 0, index, NONE, small(ubatch.n_tokens), small(ubatch.pos), 0, 0)
        self._read_tokens(i, ubatch, index)

    def _read_tokens(self, i: int, ubatch: Ubatch, index: int) -> None:
        """The tokens that this evaluation reads; those that were sampled before it stand already."""
        for pos, token in enumerate(ubatch.tokens, ubatch.pos):
            if self.token.value(pos, "token") != small(token):
                self._put_token(i, pos, small(token), self._pieces.get(token, NONE), small(pos), 0, 1, index)

    def _put_token(self, i: int, pos: int, *values: float) -> None:
        """A token in the place of another: those after it are no longer of this text."""
        if pos in self.token.open:
            while self._positions and self._positions[-1] >= pos:
                self.token.clear(i, self._positions.pop())
        insort(self._positions, pos)
        self.token.set(i, pos, *values)

    def split_opened(self, i: int, node: int, graph: int, split: int, *rest: int) -> None:
        """An evaluation computes as many graphs as its graph has splits."""
        self._n_splits, self._n_computed = max(1, split + 1), 0

    def decode_begin(self, i: int, node: int, *rest: int) -> None:
        self._n_computed = 0
        self._ubatches.clear()
        self._computed = True

    def ubatch_split(
        self, i: int, node: int, index: int, n_tokens: int, n_outputs: int, pos: int, tokens: tuple[int, ...]
    ) -> None:
        waiting = bool(self._ubatches)
        self._ubatches.append(Ubatch(n_tokens, pos, tokens))
        if not waiting:
            self._begin_eval(i)

    def reuse_checked(
        self, i: int, node: int, graph: int, owner: int, condition: int, had: int, needs: int, ok: int
    ) -> None:
        self._begin_eval(i)
        if self._n_checks == 0:
            self.reuse.clear_all(i)
        self._n_checks += 1
        self.reuse.set(i, self._n_checks, self.n_evals - 1, owner, condition, had, needs, ok)

    def reuse_decided(self, i: int, node: int, graph: int, reused: int, why: int) -> None:
        self._begin_eval(i)
        self.eval.amend(self._eval_row, "reused", reused)

    def compute_begin(self, i: int, node: int, graph: int, n_nodes: int, n_threads: int) -> None:
        if self._n_computed % self._n_splits == 0:
            self._begin_eval(i)
            self._ns_before = 0
            self.eval.amend(self._eval_row, "graph", graph)
        self._n_computed += 1
        self._chunks.clear()
        self.thread.clear_all(i)

    def compute_end(self, i: int, node: int, graph: int, ns: int) -> None:
        self._ns_before += ns
        if self._eval_row != NONE:
            self.eval.amend(self._eval_row, "ns", self._ns_before)
        self._computed = True

    def node_begin(self, i: int, node: int, graph: int, tensor: int, thread: int, ns: int) -> None:
        begin = self._ns_before + ns
        self.thread.set(i, (tensor, thread), self.n_evals - 1, tensor, small(thread), begin, begin, 0, NONE, NONE)

    def node_end(self, i: int, node: int, graph: int, tensor: int, thread: int, ns: int) -> None:
        held = self.thread.open.get((tensor, thread))
        if held is not None:
            self.thread.amend(held[0], "end_ns", self._ns_before + ns)

    def barrier_wait(self, i: int, node: int, graph: int, tensor: int, thread: int, ns: int) -> None:
        held = self.thread.open.get((tensor, thread))
        if held is not None:
            self.thread.amend(held[0], "wait_ns", ns)

    def work_taken(self, i: int, node: int, graph: int, tensor: int, thread: int, polling: int) -> None:
        held = self.thread.open.get((tensor, thread))
        if held is not None:
            self.thread.amend(held[0], "polling", polling)

    def chunks_taken(
        self,
        i: int,
        node: int,
        graph: int,
        tensor: int,
        expert: int,
        n_chunks: int,
        rows: int,
        columns: int,
        handed_out: int,
        taken: tuple[int, ...],
    ) -> None:
        """The chunks of a matrix product that each thread took; of all its experts together."""
        for thread, count in enumerate(taken):
            held = self.thread.open.get((tensor, thread))
            if held is not None:
                before = self._chunks.get(held[0], 0)
                self._chunks[held[0]] = total = small(before + count)
                self.thread.amend(held[0], "chunks", total)

    # experts

    def experts_routed(
        self,
        i: int,
        node: int,
        tensor: int,
        layer: int,
        n_tokens: int,
        n_expert: int,
        n_used: int,
        n_read: int,
        nbytes: int,
        nbytes_read: int,
        *each: tuple[float, ...],
    ) -> None:
        """How a layer was routed last; what was chosen for each token stays in the event, which is number `a`."""
        counts = map(small, (layer, n_tokens, n_expert, n_used, n_read))
        self.route.set(i, layer, self.n_evals - 1, *counts, nbytes, nbytes_read)

    # tokens

    def tokenized(self, i: int, node: int, text: int, ids: tuple[int, ...], pieces: tuple[int, ...]) -> None:
        self._pieces.update(zip(ids, pieces, strict=False))

    def tokens_held(
        self, i: int, node: int, positions: tuple[int, ...], ids: tuple[int, ...], pieces: tuple[int, ...]
    ) -> None:
        """What was read before the recording: no evaluation of this trace read it."""
        self.tokenized(i, node, NONE, ids, pieces)
        for pos, token, piece in zip(positions, ids, pieces, strict=False):
            self.token.set(i, small(pos), small(token), piece, small(pos), 0, 1, NONE)

    def logits_ready(
        self,
        i: int,
        node: int,
        pos: int,
        ids: tuple[int, ...],
        pieces: tuple[int, ...],
        logits: tuple[float, ...],
        log_sum: float,
    ) -> None:
        """The likeliest tokens stand until there are others: those that the token after them was drawn from."""
        self.candidate.clear_all(i)
        self._pieces.update(zip(ids, pieces, strict=False))
        for rank, (token, piece, logit) in enumerate(zip(ids, pieces, logits, strict=False)):
            p = math.exp(min(0.0, logit - log_sum)) if math.isfinite(logit - log_sum) else 0.0
            self.candidate.set(i, rank, small(pos), rank, small(token), piece, p)

    def token_sampled(self, i: int, node: int, token: int, piece: int, p: float, pos: int) -> None:
        self._pieces[token] = piece
        self._put_token(i, pos, small(token), piece, small(pos), 1, p, self.n_evals - 1)
