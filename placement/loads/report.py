"""What a plan by load says about bytes: loads before and after, the bound, and what is left outside the band."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.arrays import Float64Array, Int64Array
from placement.loads.model import WEIGHTS, Band, Loads
from placement.model import Int32Array


@dataclass(frozen=True, slots=True, eq=False)
class LoadReport:
    """The bytes of a plan.

    Attributes:
        given: the loads that it was made for.
        band: what was asked.
        max_bytes: bytes that might be copied at most; None without a budget.
        moved_bytes: bytes that are copied.
        lower_bound_bytes: certified: no plan that leaves the brokers as close to their bands copies fewer.
        brokers: int32 ids of the usable brokers, shape ``(n,)``, ascending.
        share: float64, shape ``(weights, n)``: what each would carry if partitions could be cut.
        low, high: float64, shape ``(weights, n)``: the band, within the limits.
        before, after: int64, shape ``(weights, n)``; the weights are ``WEIGHTS``.
        log_dirs: for each move, the directory of each replica after; ``any`` where it stays or none is known.
    """

    given: Loads
    band: Band
    max_bytes: int | None
    moved_bytes: int
    lower_bound_bytes: int
    brokers: Int32Array
    share: Float64Array
    low: Float64Array
    high: Float64Array
    before: Int64Array
    after: Int64Array
    log_dirs: tuple[tuple[str, ...], ...]

    def residuals(self) -> dict[str, float]:
        """By weight, how far the worst broker ends outside its band, as a fraction of its share; 0 within."""
        outside = np.maximum(np.maximum(self.low - self.after, self.after - self.high), 0.0)
        worst = (outside / np.maximum(self.share, 1.0)).max(axis=1).tolist()
        return dict(zip(WEIGHTS, worst, strict=True))

    def summary(self) -> dict[str, object]:
        """The numbers as plain values, ready for JSON."""
        return {
            "moved_bytes": self.moved_bytes,
            "certified_lower_bound_bytes": self.lower_bound_bytes,
            "band": {"settle": self.band.settle, "trigger": self.band.trigger},
            "residual": self.residuals(),
            "load_before": self._range(self.before),
            "load_after": self._range(self.after),
        }

    def _range(self, load: Int64Array) -> dict[str, dict[str, float]]:
        """The least and the most on one broker, and the most for its share."""
        relative = load / np.maximum(self.share, 1.0)
        return {
            name: {
                "minimum": int(load[k].min()),
                "maximum": int(load[k].max()),
                "most_of_share": float(relative[k].max()),
            }
            for k, name in enumerate(WEIGHTS)
        }
