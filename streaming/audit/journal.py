"""Everything that ``verify`` checks of a cluster: its journal, the log of the journal's table, and the projections.

What concerns all clusters, such as the log, is read once. Then the work is divided into shares, each for one process:
several clusters whole, or a part of one with a long journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby, pairwise, takewhile
from multiprocessing import get_context
from typing import Final

import pyarrow as pa

from streaming.audit.evidence import Place, Record, check_log, places, records_of
from streaming.audit.projections import check_projections
from streaming.audit.rederive import Batch, ClusterAudit, Difference
from streaming.history.pruning import Span
from streaming.history.tables import History
from streaming.record.kinds import MOVING
from streaming.record.rows import versions_from_arrow
from streaming.record.schemas import PLANS
from streaming.record.version import PlanVersion

_LONG: Final = 200
"""Versions from which on it pays to start more processes, and that a share should have."""

_PLANNED: Final = 100
"""What it costs to derive a version that moves replicas, where any other one costs 1."""

_Row = tuple[Place, int]
"""Where a version stands, and what it costs to derive it."""

_ROWS_AT_ONCE: Final = 64
"""Versions that are held as objects at a time."""


@dataclass(frozen=True, slots=True)
class Verified:
    """What ``verify`` found of a cluster; all is well when there is no difference.

    ``releases`` are the releases of this software that made its plans, ``seal`` is that of the last version that came
    out the same.
    """

    cluster_id: str
    versions: int
    moves: int
    difference: Difference | None
    releases: frozenset[str] = frozenset()
    seal: str = ""


@dataclass(frozen=True, slots=True)
class _Share:
    """Clusters with their records, whole; or one of them, from the version after ``after`` to ``last``."""

    clusters: dict[str, Record]
    after: int = 0
    last: int | None = None


def verify_clusters(history: History, clusters: Sequence[str], processes: int = 1) -> Iterator[Verified]:
    """Verify clusters one after the other, in as many processes; a long journal is divided among them."""
    plans = history.plans(["app_id", "batch_id", "kind", "events.occurred_at"])
    records = records_of(history, plans, clusters)
    costs = [_PLANNED if kind in MOVING else 1 for kind in plans["kind"].to_pylist()]
    rows = {
        name: list(group) for name, group in groupby(zip(places(plans), costs, strict=True), key=lambda row: row[0][0])
    }
    shares = _shares(clusters, records, rows, processes)
    verify = partial(_verify_share, history.root)
    if processes == 1 or plans.num_rows < _LONG:
        yield from _joined(map(verify, shares))
        return
    # Forked children would inherit Arrow's locks, but not the threads that hold them.
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        yield from _joined(pool.map(verify, shares))


def _shares(
    clusters: Sequence[str], records: dict[str, Record], rows: dict[str, list[_Row]], processes: int
) -> list[_Share]:
    shares: list[_Share] = []
    waiting: dict[str, Record] = {}
    size = 0
    for name in clusters:
        own = rows.get(name, [])
        if processes > 1 and len(own) >= _LONG:
            shares += [_Share({name: records[name]}, *cut) for cut in _cuts(own, processes)]
            continue
        waiting[name] = records[name]
        size += len(own)
        if size >= _LONG:
            shares.append(_Share(waiting))
            waiting, size = {}, 0
    return [*shares, _Share(waiting)] if waiting else shares


def _cuts(rows: Sequence[_Row], parts: int) -> list[tuple[int, int | None]]:
    """Where each part begins and ends, so that all cost about the same.

    Batches are derived whole, and rows of one version stay together.
    """
    share = sum(cost for _, cost in rows) / parts
    ends: list[int] = []
    spent = 0
    for ((_, before, batch), cost), ((_, version, next_batch), _) in pairwise(rows):
        spent += cost
        if spent >= share * (len(ends) + 1) and batch != next_batch and before != version:
            ends.append(before)
    return list(zip([0, *ends], [*ends, None], strict=True))


def _joined(found: Iterable[Iterable[Verified]]) -> Iterator[Verified]:
    """The parts of each cluster as one: what comes after the first difference does not count."""
    for name, group in groupby(chain.from_iterable(found), key=lambda part: part.cluster_id):
        parts = list(group)
        good = list(takewhile(lambda part: part.difference is None, parts))
        counted = parts[: len(good) + 1]
        yield Verified(
            name,
            sum(part.versions for part in counted),
            sum(part.moves for part in counted),
            counted[-1].difference,
            frozenset().union(*(part.releases for part in counted)),
            counted[-1].seal,
        )


def _verify_share(root: str, share: _Share) -> list[Verified]:
    """Derive the versions of a share again, on the fold of those before.

    The last part of a cluster, without an end, also checks the table's log and the projections.
    """
    history = History(root)
    table = history.plans(PLANS.schema.names, Span(tuple(share.clusters), last=share.last))
    rows = _by_cluster(table)
    found = []
    for name, record in share.clusters.items():
        audit = ClusterAudit(name, record.refused, record.newest)
        own = rows.get(name, table.slice(0, 0))
        before = sum(version <= share.after for version in own["plan_version"].to_pylist())
        audit.take(version for _, version in _rows(own.slice(0, before)))
        difference = audit.run(_rows(own.slice(before)))
        if share.last is None:
            difference = difference or check_log(name, audit.state.version, record)
            difference = difference or check_projections(history, name, audit.known)
        releases = frozenset(own.slice(before)["software_version"].unique().to_pylist())
        found.append(Verified(name, len(audit.known) - before, audit.moves, difference, releases, audit.state.seal))
    return found


def _by_cluster(table: pa.Table) -> dict[str, pa.Table]:
    """Rows that stand by cluster, cut into a table for each."""
    found, start = {}, 0
    for name, rows in groupby(table["cluster_id"].to_pylist()):
        count = sum(1 for _ in rows)
        found[name] = table.slice(start, count)
        start += count
    return found


def _rows(table: pa.Table) -> Iterator[tuple[Batch, PlanVersion]]:
    for start in range(0, table.num_rows, _ROWS_AT_ONCE):
        part = table.slice(start, _ROWS_AT_ONCE).combine_chunks()
        ids = zip(part["app_id"].to_pylist(), part["batch_id"].to_pylist(), strict=True)
        for batch, version in zip(ids, versions_from_arrow(part), strict=True):
            yield Batch(*batch), version
