"""Which clusters a fault has stopped, and why, told from the kinds of their plan versions."""

from __future__ import annotations

import pyarrow as pa

from streaming.record.rows import still_stopped


def stopped_clusters(plans: pa.Table) -> dict[str, str]:
    """The clusters whose last ``stop`` no ``resume`` follows, by name, each with its cause.

    Args:
        plans: columns ``cluster_id``, ``plan_version``, ``kind`` and ``cause`` of the journal, in any order.
    """
    rows = still_stopped(plans).select(["cluster_id", "cause"]).sort_by("cluster_id").to_pylist()
    return {row["cluster_id"]: row["cause"] for row in rows}
