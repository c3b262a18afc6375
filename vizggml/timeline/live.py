"""The live set of a plan, node by node, as its events tell it."""

from __future__ import annotations

from itertools import accumulate

from vizggml.timeline.plan import Plan
from vizggml.timeline.track import Track

NOWHERE = -1


class LiveSets:
    """The track `live`, one row for each position of a plan that planning has come to, held until the next plan begins.

    plan       which plan, as in the track `life`
    position   of the execution order
    bytes      what lives while the node there is computed, each tensor padded as it lies; what a node takes over from
               its parent counts once
    bound      the largest of these up to here: no plan of the same graph takes less
    """

    def __init__(self) -> None:
        self.track = Track("live", {"plan": "i", "position": "i", "bytes": "d", "bound": "d"})
        self._start()

    def _start(self) -> None:
        self._at = self._row = NOWHERE
        self._bytes = self._bound = self._bound_before = 0

    def begin(self, i: int) -> None:
        """Another plan begins."""
        self.track.clear_all(i)
        self._start()

    def take(self, i: int, plan: Plan, position: int, held: int) -> None:
        """The node at `position` gets `held` bytes; fewer than none where it takes over more than it needs."""
        self.reach(i, plan, position)
        self._bytes += held
        self._bound = max(self._bound_before, self._bytes)
        self.track.amend(self._row, "bytes", self._bytes)
        self.track.amend(self._row, "bound", self._bound)

    def give_back(self, i: int, plan: Plan, position: int, held: int) -> None:
        """After the node at `position` there are `held` bytes less."""
        self.reach(i, plan, position)
        self._bytes -= held

    def reach(self, i: int, plan: Plan, position: int) -> None:
        """Planning is at `position`: up to there lives what lived, until it is said otherwise."""
        while self._at < min(position, plan.n_nodes - 1):
            self._at += 1
            self._bound_before = self._bound
            self._set(i, plan, self._at, self._bytes, max(self._bound, self._bytes))

    def _set(self, i: int, plan: Plan, position: int, live: int, bound: int) -> None:
        self._row = self.track.set(i, (plan.number, position), plan.number, position, live, bound)

    def whole(self, i: int, plan: Plan) -> None:
        """All of a plan whose lifetimes are known at once."""
        change = [0] * (plan.n_nodes + 1)
        for life in plan.lives.values():
            held = life.held or life.size
            taken = plan.lives.get(life.freed_by)
            both = taken is not None and taken.reuses == life.tensor and taken.first == life.last
            change[min(life.first, plan.n_nodes)] += held
            change[min(life.last + 1 - both, plan.n_nodes)] -= held
        live = list(accumulate(change[:-1]))
        for position, (held, bound) in enumerate(zip(live, accumulate(live, max), strict=True)):
            self._set(i, plan, position, held, bound)
        self._at = plan.n_nodes - 1
