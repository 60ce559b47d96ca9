"""Noise: how far rates that err take a broker out of its band, so that errors alone make no plan.

Model: what is measured of a partition's rate is the rate times 1 + NOISE e, with e normal, independent of the others.
What is on disk is counted and does not err.
Method: a broker acts where it is outside the trigger's band, and no rates bring it into the band that plans settle
brokers in from which those measured differ by z standard deviations, all of its partitions together (the root of the
sum of e^2). With x measured, c = |x| / sum(x) for the broker and t the same for all of the cluster, as a share errs
like the total that it is a part of:

- above the band, the rates would be x / (1 + NOISE e), and sum to its edge E. No e of length z does that where
  sum(x) / E - 1 > z NOISE sqrt(c^2 + t^2), by Cauchy and Schwarz;
- below it, 1 / (1 + u) <= 1 - u + u^2 / (1 - z NOISE) for u >= -z NOISE, so that no e of length z does that where
  E - sum(x) > z NOISE sqrt(|x|^2 + (t E)^2) + max(x) (z NOISE)^2 / (1 - z NOISE). Both are exact where one partition
  is all that a broker carries, and the usual z standard deviations where it carries many.

z is the quantile with which errors take any broker that is settled out, up or down, in any rate, in one of a hundred
plans at most (Bonferroni). Of 50 plans more than two act then with a probability of 1.4 % at most.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist
from typing import Final

import numpy as np

from placement.arrays import Float64Array
from placement.loads.model import NOISE, NOISY
from placement.replanning.by_load.layout import Layout
from placement.replanning.by_load.share import Share

_FALSE_ALARMS: Final = 0.01
_DIGITS: Final = 6
_RATES: Final = list(NOISY)


def beyond_noise(layout: Layout, inner: Share, outer: Share) -> Share:
    """The trigger's band, ``outer``, widened in rates to where noise takes brokers from ``inner``.

    ``inner`` is the band that plans settle brokers in.
    """
    length, largest, common = _concentrated(layout)
    most = errors(layout.state.problem.fleet.usable)
    low, high = outer.low.copy(), outer.high.copy()
    for_noise = inner.high[_RATES] * above(layout.field.load[_RATES], length, common, most)
    high[_RATES] = np.maximum(high[_RATES], for_noise)
    for_noise = inner.low[_RATES] - below(inner.low[_RATES], length, largest, common, most)
    low[_RATES] = np.minimum(low[_RATES], for_noise)
    return replace(outer, low=low, high=np.minimum(high, outer.limit))


def errors(brokers: int) -> float:
    """z standard deviations as a fraction of a rate; rounded, as logarithms differ between machines."""
    return round(NOISE * NormalDist().inv_cdf(1 - _FALSE_ALARMS / (2 * len(_RATES) * brokers)), _DIGITS)


def above(load: Float64Array, length: Float64Array, common: Float64Array, most: float) -> Float64Array:
    """How many times the upper edge of their band brokers may carry for noise; arrays broadcast."""
    own = length / np.maximum(load, 1.0)
    return np.asarray(1 + most * np.sqrt(own * own + common * common))


def below(
    edge: Float64Array, length: Float64Array, largest: Float64Array, common: Float64Array, most: float
) -> Float64Array:
    """How far below the lower edge of their band brokers may be for noise; arrays broadcast."""
    curved = largest * (most * most / (1 - most)) if most < 1 else np.where(largest > 0, np.inf, 0.0)
    return np.asarray(most * np.sqrt(length * length + (common * edge) ** 2) + curved)


def _concentrated(layout: Layout) -> tuple[Float64Array, Float64Array, Float64Array]:
    """By rate and broker the length of the partitions' rates and the largest one; by rate t, shape ``(rates, 1)``."""
    present = layout.state.problem.fleet.present
    replicas, lead = layout.replicas, layout.lead
    squares, largest = np.zeros((len(_RATES), present)), np.zeros((len(_RATES), present))
    whole = np.zeros((len(_RATES), lead.size))
    for column in range(replicas.shape[1]):
        on = np.flatnonzero((replicas[:, column] >= 0) & (replicas[:, column] < present))
        broker = replicas[on, column]
        leads = broker == lead[on]
        for at, k in enumerate(_RATES):
            carried = np.where(leads, layout.leader[on, k], layout.follower[on, k])
            squares[at] += np.bincount(broker, weights=carried * carried, minlength=present)
            np.maximum.at(largest[at], broker, carried)
            whole[at, on] += carried
    # Sums in order are the same on every machine.
    length = np.sqrt(np.cumsum(whole * whole, axis=1)[:, -1:])
    return np.sqrt(squares), largest, length / np.maximum(np.cumsum(whole, axis=1)[:, -1:], 1.0)
