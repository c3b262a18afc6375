"""What the bus carried, as a list to make assertions on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from vizggml.events import Event, bus

E = TypeVar("E", bound=Event)


class Seen(list[Event]):
    """The events in order."""

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self if isinstance(event, kind)]

    def one(self, kind: type[E]) -> E:
        (event,) = self.of(kind)
        return event


@contextmanager
def seen() -> Iterator[Seen]:
    """Everything that is emitted inside."""
    events = Seen()
    unsubscribe = bus.subscribe(None, events.append)
    try:
        yield events
    finally:
        unsubscribe()
