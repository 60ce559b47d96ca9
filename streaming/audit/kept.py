"""Seals kept elsewhere: what nobody who may write the tables can forge, because it stands where they cannot write.

The chain of seals has no key, so a journal that was written anew has a chain without a break. But a row that changes
or goes changes the seals of all rows after it: one seal of a cluster, kept outside, holds all up to its version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streaming.audit.rederive import Difference
from streaming.history.pruning import Span
from streaming.history.tables import History


@dataclass(frozen=True, slots=True)
class Kept:
    """The seal of a version of a cluster."""

    cluster_id: str
    plan_version: int
    seal: str

    @classmethod
    def from_json(cls, document: Any) -> Kept:
        """From a line that the command ``seals`` printed.

        Raises:
            ValueError: it is none.
        """
        fields = {"cluster_id": str, "plan_version": int, "seal": str}
        if not isinstance(document, dict) or any(type(document.get(name)) is not kind for name, kind in fields.items()):
            raise ValueError("it must be a JSON object with cluster_id, plan_version and seal, as `seals` prints it")
        return cls(*(document[name] for name in fields))


def newest_seals(history: History, clusters: list[str]) -> list[dict[str, Any]]:
    """The newest seal of each cluster as plain values, ready for JSON, with the time of its version."""
    columns = ["cluster_id", "plan_version", "seal", "created_at"]
    newest = {row["cluster_id"]: row for row in history.plans(columns).select(columns).to_pylist()}
    return [newest[name] for name in clusters]


def compare_kept(history: History, kept: Kept) -> Difference | None:
    """Whether the journal still has the version with this seal."""
    rows = history.plans(["seal"], Span(kept.cluster_id, kept.plan_version, kept.plan_version))
    found = rows["seal"].to_pylist()
    if found == [kept.seal]:
        return None
    what = "its seal is not the one that was kept elsewhere: history was written anew" if found else "is missing"
    return Difference(kept.cluster_id, kept.plan_version, what, found, kept.seal)
