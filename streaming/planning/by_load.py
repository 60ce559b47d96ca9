"""From recorded loads to what a plan is made of, and from a layout to how far its brokers are from their shares."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np
from numpy.typing import NDArray

from placement import Assignment, Band, Broker, Limits, LoadReport, Loads, LogDir, PartitionLoad, replan
from placement.loads.model import WEIGHTS
from placement.model import NO_BROKER
from placement.replanning.by_load.share import banded
from streaming.amounts import ByteAmount
from streaming.config import LoadPolicy
from streaming.planning.known_loads import KnownLoads
from streaming.record.loads import UNKNOWN, BrokerLimits, Int64Array
from streaming.record.moves import TopicMoves

_PARTS = 1000
_NO_SEARCH = 0.999999
"""A trigger that no broker is outside of: shares are worked out, and nothing is moved."""


def band_of(policy: LoadPolicy) -> Band:
    """How close to their shares brokers are brought, and from where on."""
    return Band(policy.settle, policy.trigger, policy.exact_counts)


def loads_of(known: KnownLoads, assignment: Assignment, brokers: Iterable[int], policy: LoadPolicy) -> Loads:
    """The loads of a layout and the limits of brokers.

    What is not known of a partition is the median of its topic, else of all; bytes out, where they are not known, are
    to bytes in as they are in the whole cluster.
    """
    values = _aligned(known, assignment)
    measured = [
        PartitionLoad(assignment.topics[topic], partition, *(None if v == UNKNOWN else v for v in row))
        for topic, partition, row in zip(
            assignment.topic_index.tolist(), assignment.partition.tolist(), values.tolist(), strict=True
        )
    ]
    both = (values[:, 1] != UNKNOWN) & (values[:, 2] != UNKNOWN)
    taken, given = int(values[both, 1].sum()), int(values[both, 2].sum())
    ratio = min(given / taken, 1000.0) if taken else 1.0
    limits = {b: limits_of(known.limits.get(b, BrokerLimits(b)), policy) for b in sorted(brokers)}
    return Loads.of(assignment, measured, limits=limits, out_per_in=ratio)


def limits_of(observed: BrokerLimits, policy: LoadPolicy) -> Limits:
    """What plans may put on a broker: of its disks a fraction, of the rest what was observed, else what policy says."""
    parts = round(policy.disk_fill * _PARTS)
    dirs = tuple(LogDir(one.path, one.limit * parts // _PARTS, one.used) for one in observed.log_dirs)
    disk = sum(one.limit for one in observed.log_dirs) if observed.disk is None and dirs else observed.disk
    return Limits(
        disk=None if disk is None else disk * parts // _PARTS,
        bytes_in=_first(observed.bytes_in, policy.bytes_in_limit),
        bytes_out=_first(observed.bytes_out, policy.bytes_out_limit),
        cpu=policy.cpu_limit if observed.cpu is None else observed.cpu,
        log_dirs=dirs,
    )


def _first(observed: int | None, amount: ByteAmount | None) -> int | None:
    return amount.bytes if observed is None and amount is not None else observed


def _aligned(known: KnownLoads, assignment: Assignment) -> Int64Array:
    """The recorded values in the order of the layout's rows, int64, shape ``(P, 3)``."""
    bounds = np.searchsorted(assignment.topic_index, np.arange(len(assignment.topics) + 1)).tolist()
    parts = [
        known.values_of(topic, assignment.partition[lo:hi])
        for topic, lo, hi in zip(assignment.topics, bounds[:-1], bounds[1:], strict=True)
    ]
    return np.concatenate(parts) if parts else np.zeros((0, 3), np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """How a layout stands to the shares of its brokers.

    Attributes:
        brokers: int32 ids of the usable brokers, shape ``(n,)``, ascending.
        load: what each carries, int64, shape ``(weights, n)``; the weights are ``WEIGHTS``.
        share: what each would carry if partitions could be cut, float64, the same shape.
        limit: the most that each may carry, float64, the same shape; infinite where there is no limit.
        low, high: the band of the trigger, within the limits, float64, the same shape.
    """

    brokers: NDArray[np.int32]
    load: Int64Array
    share: NDArray[np.float64]
    limit: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def outside(self) -> float:
        """The sum of the distances outside the band, as fractions of the shares; 0 where all brokers are within."""
        return fsum(self._distance().ravel().tolist())

    def worst(self) -> str:
        """The broker that is furthest outside its band, or, where all are within, from its share; in words."""
        distance = self._distance()
        if not distance.any():
            distance = np.abs(self.load - self.share) / np.maximum(self.share, 1.0)
        weight, at = np.unravel_index(int(distance.argmax()), distance.shape)
        part = 100 * self.load[weight, at] / max(self.share[weight, at], 1.0)
        return f"broker {self.brokers[at]} carries {part:.0f} % of its share of {WEIGHTS[weight]}"

    def _distance(self) -> NDArray[np.float64]:
        outside = np.maximum(np.maximum(self.low - self.load, self.load - self.high), 0.0)
        return np.asarray(outside / np.maximum(self.share, 1.0))


def standing(
    assignment: Assignment, brokers: Sequence[Broker], loads: Loads, policy: LoadPolicy, held: Collection[int] = ()
) -> Standing:
    """Work out loads and shares of a layout; nothing is planned.

    Args:
        assignment: the layout.
        brokers: all brokers.
        loads: of this layout.
        policy: says from where on a broker is outside.
        held: brokers that keep what they have and get nothing; they have no share.

    Raises:
        PlacementError: the layout is empty, or no broker is usable.
    """
    weightless = Loads(loads.size, loads.bytes_in, loads.bytes_out)
    wide = Band(policy.settle, _NO_SEARCH)
    plan = replan(
        assignment, brokers, exclude_topics=assignment.topics, exclude_brokers=held, loads=weightless, band=wide
    )
    report = plan.loads
    assert isinstance(report, LoadReport)
    limit = loads.limit_matrix(report.brokers.tolist())
    band = banded(report.share, limit, policy.trigger, exact_counts=False, present=report.brokers.size)
    return Standing(report.brokers, report.before, report.share, limit, band.low, band.high)


def moved(assignment: Assignment, moves: Iterable[TopicMoves]) -> Assignment:
    """The layout after moves of partitions that it has."""
    blocks = list(moves)
    width = max([assignment.replicas.shape[1], *(block.after.shape[1] for block in blocks)])
    replicas = np.pad(
        assignment.replicas, ((0, 0), (0, width - assignment.replicas.shape[1])), constant_values=NO_BROKER
    )
    for block, rows in located(assignment, blocks):
        replicas[rows] = NO_BROKER
        replicas[rows, : block.after.shape[1]] = block.after
    return Assignment(assignment.topics, assignment.topic_index, assignment.partition, replicas)


def located(assignment: Assignment, moves: Iterable[TopicMoves]) -> Iterator[tuple[TopicMoves, NDArray[np.intp]]]:
    """Moves with their rows in a layout that has their partitions."""
    rank = {name: i for i, name in enumerate(assignment.topics)}
    for block in moves:
        lo, hi = np.searchsorted(assignment.topic_index, [rank[block.topic], rank[block.topic] + 1])
        yield block, lo + np.searchsorted(assignment.partition[lo:hi], block.partitions)
