"""What an event is, and the bus that carries events.

An event is a frozen dataclass of plain values and integer ids: counters, never `id()` or a pointer. It holds no tensor,
so a recording keeps nothing alive. The engine writes `if bus.on: bus.emit(...)`: with nobody listening, a call site
costs one attribute test and the event is not even built.

Sizes and offsets are bytes. `ne` and `nb` are in ggml's order, `ne[0]` fastest. An id of -1 means none.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar, NewType, Protocol, TypeVar, dataclass_transform

TensorId = NewType("TensorId", int)
ContextId = NewType("ContextId", int)
GraphId = NewType("GraphId", int)
BufferId = NewType("BufferId", int)
AllocatorId = NewType("AllocatorId", int)
GallocId = NewType("GallocId", int)
CacheId = NewType("CacheId", int)
Seq = NewType("Seq", int)

Dims = tuple[int, int, int, int]
NO_TENSOR = TensorId(-1)
NO_SEQ = Seq(-1)


@dataclass(frozen=True, slots=True)
class Event:
    """What all events share. The bus fills in the three fields when the event is emitted.

    `seq` counts events from 0 in one recording; `node` is the tensor being built, planned or computed; `cause` is the
    `seq` of the event that triggered this one.
    """

    seq: Seq = field(default=NO_SEQ, kw_only=True)
    node: TensorId = field(default=NO_TENSOR, kw_only=True)
    cause: Seq = field(default=NO_SEQ, kw_only=True)

    AREA: ClassVar[str] = ""
    GGML: ClassVar[str] = ""
    OURS: ClassVar[str] = ""


_E = TypeVar("_E", bound=Event)


@dataclass_transform(frozen_default=True)
def event(area: str, ggml: str, ours: str) -> Callable[[type[_E]], type[_E]]:
    """Make a kind of event.

    `area` groups kinds; `ggml` is the function and file of ggml or llama.cpp where this happens there ("" for what only
    vizggml does); `ours` is the module and function of vizggml that emits it.
    """

    def make(cls: type[_E]) -> type[_E]:
        kind = dataclass(frozen=True, slots=True)(cls)
        kind.AREA, kind.GGML, kind.OURS = area, ggml, ours
        return kind

    return make


Told = tuple[int, Seq]
"""An event and the recording it is in."""

NOTHING_TOLD: Told = (-1, NO_SEQ)

Sink = Callable[[Event], None]
ValueSink = Callable[[object], None]


class Standing(Protocol):
    """Something that lives across recordings and can say in events what it holds now."""

    def snapshot(self) -> Iterator[Event]: ...


class Bus:
    """Carries events from the call sites to the sinks.

    `on` is true while anyone listens. `node` and `cause` are what an event gets when its call site names neither.
    `values` is given every node's tensor when the node has been computed and its memory still holds the result; it is
    None unless somebody asked for values: `if bus.values is not None: bus.values(tensor)`.
    """

    def __init__(self) -> None:
        self.on = False
        self.node = NO_TENSOR
        self.cause = NO_SEQ
        self.values: ValueSink | None = None
        self.standing: weakref.WeakSet[Standing] = weakref.WeakSet()
        self._acting: tuple[int, weakref.ref[Standing]] | None = None
        self._next = 0
        self._recording = 0
        self._sinks: list[tuple[type[Event] | None, Sink]] = []
        self._lock = threading.RLock()

    def emit(self, event: Event, *, node: TensorId | None = None, cause: Seq | None = None) -> Seq:
        """Stamp `event` and hand it to every sink of its kind; its sequence number."""
        with self._lock:
            seq = Seq(self._next)
            self._next += 1
            object.__setattr__(event, "seq", seq)
            object.__setattr__(event, "node", self.node if node is None else node)
            because = self.cause if cause is None else cause
            # what a thread began under an earlier recording has no cause in this one
            object.__setattr__(event, "cause", because if because < seq else NO_SEQ)
            for kind, sink in self._sinks:
                if kind is None or isinstance(event, kind):
                    sink(event)
            return seq

    def subscribe(self, kind: type[Event] | None, sink: Sink) -> Callable[[], None]:
        """Hand every event of `kind` (None: all) to `sink`; the answer unsubscribes it."""
        entry = (kind, sink)
        with self._lock:
            if not self._sinks:
                self._next, self.node, self.cause = 0, NO_TENSOR, NO_SEQ
                self._recording += 1
            self._sinks.append(entry)
            self.on = True

        def unsubscribe() -> None:
            with self._lock:
                if entry in self._sinks:
                    self._sinks.remove(entry)
                self.on = bool(self._sinks)

        return unsubscribe

    @contextmanager
    def overhear(self, kind: type[Event], sink: Sink) -> Iterator[None]:
        """Hand the events of `kind` to `sink` inside the `with`, but only if somebody listens already."""
        if not self.on:
            yield
            return
        unsubscribe = self.subscribe(kind, sink)
        try:
            yield
        finally:
            unsubscribe()

    def wants(self, kind: type[Event]) -> bool:
        """Whether a sink asked for `kind` by name: for events too many to send to those who asked for everything."""
        return any(wanted is kind for wanted, _ in self._sinks)

    def remember(self, seq: Seq) -> Told:
        """`seq`, to be a cause later on: perhaps in another recording, where it means nothing."""
        return self._recording, seq

    def recall(self, told: Told) -> Seq:
        """What was remembered, if this recording still has it."""
        return told[1] if told[0] == self._recording else NO_SEQ

    def acts(self, thing: Standing) -> None:
        """`thing` is at work now: a recording's header tells of it, and not of what merely stands."""
        self._acting = self._recording, weakref.ref(thing)

    @property
    def acting(self) -> Standing | None:
        """What was last at work in this recording, if it is still there."""
        if self._acting is None or self._acting[0] != self._recording:
            return None
        return self._acting[1]()

    @contextmanager
    def because(self, seq: Seq) -> Iterator[None]:
        """Events emitted inside have `seq` as their cause."""
        recording, before, self.cause = self._recording, self.cause, seq
        try:
            yield
        finally:
            self.cause = before if recording == self._recording else NO_SEQ


bus = Bus()
