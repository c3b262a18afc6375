"""In what a layer differs from the one that it nearly repeats: nodes more, nodes less, nodes that are otherwise."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vizggml.views import labels
from vizggml.views.tables import GraphTable

if TYPE_CHECKING:
    from vizggml.views.sections import Section

NEARLY = 0.4
"""The share of nodes that two layers must have in common to be compared."""


@dataclass
class Difference:
    """Against section `like`: tensors only here, tensors only there, and tensors here that are otherwise, and how."""

    like: int
    added: list[int] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)
    changed: list[tuple[int, str]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def differences(
    graph: GraphTable, sections: list[Section], roots: list[int], shared: set[int]
) -> dict[int, Difference]:
    """By section: how it differs from the kind of layer that there is most of.

    `roots` names, for each section, the first that is built the same way; -1 for one that is no layer. `shared` are the
    leafs that several sections read.
    """
    count = Counter(r for r in roots if r >= 0)
    if sum(count.values()) < 2:
        return {}
    usual = max(count, key=lambda r: (count[r], -r))
    out: dict[int, Difference] = {}
    alike = [s for s, r in enumerate(roots) if r == usual]
    for s, root in enumerate(roots):
        if root >= 0 and root != usual:
            like = min(alike, key=lambda u: (abs(u - s), u))
            found = compare(graph, sections[s], sections[like], like, shared)
            if found:
                out[s] = found
    for root in count:
        for s, found in _weights(graph, sections, [s for s, r in enumerate(roots) if r == root]).items():
            kept = out.setdefault(s, found)
            if kept is not found:
                said = {t for t, _ in kept.changed}
                kept.changed += [(t, text) for t, text in found.changed if t not in said]
    return out


def compare(graph: GraphTable, section: Section, other: Section, like: int, shared: set[int]) -> Difference | None:
    """How `section` differs from `other`, the section number `like`; None where they have little in common."""
    here, there = [_key(graph, section, t) for t in section.nodes], [_key(graph, other, t) for t in other.nodes]
    out = Difference(like)
    partner: dict[int, int] = {}
    for what, a0, a1, b0, b1 in difflib.SequenceMatcher(None, there, here, autojunk=False).get_opcodes():
        gone, come = other.nodes[a0:a1], section.nodes[b0:b1]
        if what == "equal" or (what == "replace" and len(gone) == len(come)):
            partner |= dict(zip(come, gone, strict=True))
        else:
            out.removed += gone
            out.added += come
    if len(partner) < NEARLY * max(len(here), len(there)):
        return None
    leafs = {t: t in shared for t in [*section.leafs, *other.leafs]}
    for t, was in partner.items():
        texts = _looks(graph, t, was) + _reads(graph, t, was, partner, leafs)
        if texts:
            out.changed.append((t, "; ".join(texts)))
    return out


def _key(graph: GraphTable, section: Section, t: int) -> Hashable:
    name = labels.layerless(graph.tensors.name[t], section.layer) if section.named else ""
    return graph.tensors.desc[t], name


def _looks(graph: GraphTable, t: int, was: int) -> list[str]:
    tensors = graph.tensors
    out = []
    for now, before in (
        (tensors.desc[t], tensors.desc[was]),
        (tensors.type[t], tensors.type[was]),
        (labels.shape(tensors.ne[t]), labels.shape(tensors.ne[was])),
    ):
        if now != before:
            out.append(f"{now}, not {before}")
    return out


def _reads(graph: GraphTable, t: int, was: int, partner: dict[int, int], leafs: dict[int, bool]) -> list[str]:
    """Sources that are not the other's: a leaf that several layers share, a node that has a partner elsewhere.

    `leafs` says of each whether several layers read it.
    """
    now, before = graph.srcs[t], graph.srcs[was]
    partners = set(partner.values())
    out = []
    for a, b in zip(now, before, strict=False):
        if a in leafs and b in leafs:
            if a != b and (leafs[a] or leafs[b]):
                out.append(f"reads {_name(graph, a)}, not {_name(graph, b)}")
            elif graph.tensors.ne[a] != graph.tensors.ne[b]:
                shapes = [labels.shape(graph.tensors.ne[x]) for x in (a, b)]
                out.append(f"{_name(graph, a)} is {shapes[0]}, not {shapes[1]}")
        elif (a in leafs) != (b in leafs) or (a in partner and b in partners and partner[a] != b):
            out.append(f"reads {_name(graph, a)}, not what {_name(graph, b)} is there")
    out += [f"also reads {_name(graph, a)}" for a in now[len(before) :]]
    out += [f"does not read {_name(graph, b)}" for b in before[len(now) :]]
    return out


def _name(graph: GraphTable, t: int) -> str:
    return labels.short(labels.visible(graph.tensors.name[t])) or f"tensor {t}"


def _weights(graph: GraphTable, sections: list[Section], alike: Sequence[int]) -> dict[int, Difference]:
    """Layers that are built the same way, where a leaf of one has another type than in most: a finer quantization."""
    if len(alike) < 3:
        return {}
    types = graph.tensors.type
    out: dict[int, Difference] = {}
    for slots in zip(*(sections[s].leafs for s in alike), strict=True):
        if len({types[t] for t in slots}) == 1:
            continue
        usual = Counter(types[t] for t in slots).most_common(1)[0][0]
        like = alike[[types[t] for t in slots].index(usual)]
        for s, t in zip(alike, slots, strict=True):
            if types[t] != usual:
                out.setdefault(s, Difference(like)).changed.append((t, f"{types[t]}, not {usual}"))
    return out
