"""Which clusters a fault has stopped, and why, told from the kinds of their plan versions."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def stopped_clusters(plans: pa.Table) -> dict[str, str]:
    """The clusters whose last ``stop`` no ``resume`` follows, by name, each with its cause.

    Args:
        plans: columns ``cluster_id``, ``plan_version``, ``kind`` and ``cause`` of the journal, in any order.
    """
    marks = plans.filter(pc.is_in(plans["kind"], pa.array(["stop", "resume"]))).sort_by("plan_version")
    last = {row["cluster_id"]: row for row in marks.to_pylist()}
    return {cluster: row["cause"] for cluster, row in sorted(last.items()) if row["kind"] == "stop"}
