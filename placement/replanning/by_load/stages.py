"""Stages: the search goes after what only copies change first, then exact counts, then everything.

Leaderships are free and shift what leaders carry, so copies that are chosen without regard to it are fewer and
lighter, and what they upset is mended for nothing. Exact counts are mended by the smallest partitions: by then the
bytes are where they should be, and a stage's stress keeps them there. When all is done, leaderships bring what leaders
carry well inside the band.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from placement.arrays import Float64Array
from placement.loads.model import LED, RESOURCES, WEIGHTS
from placement.replanning.by_load.layout import Layout
from placement.replanning.by_load.search import settle
from placement.replanning.by_load.share import Share, banded
from placement.replanning.by_load.trim import trim

_ROUNDS: Final = 4
_STRESS: Final = 100.0
_TINY: Final = 0.01
_SPARE: Final = 0.005
_EASED: Final = tuple(k for k in LED if WEIGHTS[k] in RESOURCES)


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A part of the search.

    Attributes:
        band: what brokers are brought to.
        stress: float64, shape ``(weights,)``: how much each counts.
        patience: what a copy costs besides its bytes, in mean partitions, at most.
    """

    band: Share
    stress: Float64Array
    patience: float = np.inf


@dataclass(frozen=True, slots=True, eq=False)
class Stages:
    """The search, part by part.

    Attributes:
        copied: those that leave out what leaders carry.
        rest: those that regard everything; the last one has the band that the plan is for.
    """

    copied: list[Stage]
    rest: list[Stage]

    @property
    def band(self) -> Share:
        """The band that the plan is for."""
        return self.rest[-1].band


def stages(share: Float64Array, limit: Float64Array, width: float, *, exact_counts: bool, present: int) -> Stages:
    """The stages to a band; arguments as in :func:`placement.replanning.by_load.share.banded`."""
    last = banded(share, limit, width, exact_counts=exact_counts, present=present)
    plain = np.ones(share.shape[0])
    if not exact_counts:
        return Stages([Stage(_only_copied(last), plain)], [Stage(last, plain)])
    # The smallest partitions need a little room at the edges.
    wide = banded(share, limit, width * (1 - _SPARE), exact_counts=False, present=present)
    return Stages(
        [Stage(_only_copied(wide), plain), Stage(_only_copied(last), _stressed("disk", "bytes_in"), _TINY)],
        [Stage(last, _stressed("disk", "bytes_in", "replicas"), _TINY), Stage(last, plain, _TINY)],
    )


def run(layout: Layout, staged: list[Stage], patience: float) -> None:
    """Search stage by stage."""
    for stage in staged:
        layout.weigh(stage.band, stage.stress)
        layout.strive(min(stage.patience, patience))
        for _ in range(_ROUNDS):
            settle(layout)
            if not trim(layout):
                break


def lead(layout: Layout, stage: Stage) -> None:
    """Search with leaderships alone, which cost no bytes."""
    layout.weigh(stage.band, stage.stress)
    settle(layout, copies=False)


def ease(layout: Layout, within: Share, narrow: Share) -> None:
    """Bring what leaders carry well inside the band, which is free, so that the next noise does not take it out."""
    saved, cost = layout.snapshot(), float(np.cumsum(layout.field.cost)[-1])
    low, high = within.low.copy(), within.high.copy()
    low[list(_EASED)], high[list(_EASED)] = narrow.low[list(_EASED)], narrow.high[list(_EASED)]
    # Who could not be brought into the band stays as it is, and nobody is to leave the band for the others.
    out = layout.field.cost > 0
    low[:, out] = high[:, out] = layout.field.load[:, out]
    plain = np.ones(low.shape[0])
    eased = replace(within, low=low, high=high, limit=np.maximum(within.high, high))
    layout.weigh(eased, plain)
    settle(layout, copies=False)
    layout.weigh(within, plain)
    if float(np.cumsum(layout.field.cost)[-1]) > cost:
        layout.restore(saved)


def _only_copied(band: Share) -> Share:
    """The band without the weights that leaderships change."""
    low, high, limit = band.low.copy(), band.high.copy(), band.limit.copy()
    low[list(LED)], high[list(LED)], limit[list(LED)] = 0.0, np.inf, np.inf
    return replace(band, low=low, high=high, limit=limit)


def _stressed(*names: str) -> Float64Array:
    return np.array([_STRESS if name in names else 1.0 for name in WEIGHTS])
