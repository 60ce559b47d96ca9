"""From what is observed to what is recorded: smoothed, so that noise passes by, in steps, so that little is written.

Goal: the recorded values are all that planning and the next observation need; nothing is kept beside the journal.
Method: an exponentially weighted mean of whole numbers, rounded to the leading bits. A step is at most the given
fraction of the value, and at least a quarter of that.
Weakness: what differs by less than half a step over the weight is never followed; with the defaults that is 2 %.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from streaming.record.loads import UNKNOWN, Int64Array

_PARTS: Final = 1000
"""A weight is taken in thousandths."""


def leading_bits(step: float) -> int:
    """How many leading bits of a number have to be kept so that no step is above this fraction of it."""
    bits = 1
    while 2.0 ** (1 - bits) > step:
        bits += 1
    return bits


def rounded(values: Int64Array, step: float) -> Int64Array:
    """Values from 0 to 2^50, rounded to the nearest step."""
    length = np.frexp(values.astype(np.float64))[1].astype(np.int64)  # exact: below 2^53
    shift = np.maximum(length - leading_bits(step), 0)
    half = np.where(shift > 0, np.int64(1) << np.maximum(shift - 1, 0), 0)
    return np.asarray(((values + half) >> shift) << shift)


def smoothed(known: Int64Array, observed: Int64Array, weight: float, step: float) -> Int64Array:
    """The values to record, of the same shape.

    Args:
        known: what is recorded; ``UNKNOWN`` where nothing is: then the observation is taken as it is.
        observed: ``UNKNOWN`` where it was not measured: then the recorded value stays.
        weight: how much the observation counts, above 0 up to 1.
        step: see :func:`rounded`.
    """
    parts = max(round(weight * _PARTS), 1)
    first = known == UNKNOWN
    pulled = known + (parts * (observed - known) + _PARTS // 2) // _PARTS
    result = rounded(np.maximum(np.where(first, observed, pulled), 0), step)
    return np.where(observed == UNKNOWN, known, result)
