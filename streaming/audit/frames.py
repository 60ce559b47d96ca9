"""The journal as DataFrames, for notebooks: ``from streaming.audit import Audit``.

Everything is read from the tables as they are; nothing is written. The queries are the ones in ``streaming/audit/sql``;
they run on Databricks SQL as they stand.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from streaming.audit.evidence import spans_of
from streaming.audit.journal import verify_clusters
from streaming.audit.rederive import Difference
from streaming.errors import HistoryError
from streaming.history.tables import History
from streaming.job.tables import Tables
from streaming.record.schemas import ASSIGNMENTS, BROKERS, LOADS, METRICS, PLANS, PROGRESS, QUARANTINE, TABLES, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERIES: Final = Path(__file__).with_name("sql")
_PARAMETER: Final = re.compile(r"(?<!:):([a-z_]+)")


class Audit:
    """The tables under a root, for one session: a DataFrame for every question.

    Making one registers the tables as temporary views (``plans``, ``brokers``, ...), so that SQL cells see them.
    """

    def __init__(self, spark: SparkSession, root: str, cluster: str | None = None) -> None:
        self.spark = spark
        self.tables = Tables(root)
        self.history = History(self.tables.root)
        self.cluster = self.history.cluster(cluster)
        # Metrics say nothing of plans, and tables of an earlier release have no loads until a job has run.
        for table in (table for table in TABLES if table is not METRICS and self.history.has(table)):
            spark.read.format("delta").load(self.tables.path(table)).createOrReplaceTempView(table.name)

    def _rows(self, table: Table) -> DataFrame:
        return self.spark.table(table.name).where(f"cluster_id = '{self.cluster}'")

    def plans(self) -> DataFrame:
        """Every plan version, oldest first."""
        return self._rows(PLANS).orderBy("plan_version")

    def moves(self) -> DataFrame:
        """One row a changed partition: where it was, where it went, why, and whether that took effect."""
        return self.plans().selectExpr(
            "plan_version", "created_at", "kind", "cause",
            "approval IN ('not_required', 'approved') AS in_effect", "inline(moves)",
        )  # fmt: skip

    def events(self) -> DataFrame:
        """Every event received and what became of it; ``plan_version`` is null for those that no plan records."""
        planned = self.plans().selectExpr("plan_version", "created_at AS received_at", "inline(events)")
        other = self._rows(QUARANTINE).drop("cluster_id", "app_id", "batch_id")
        return planned.unionByName(other, allowMissingColumns=True).orderBy("received_at", "sequence")

    def progress(self) -> DataFrame:
        """What was reported while plans were carried out."""
        return self._rows(PROGRESS).orderBy("occurred_at")

    def why(self, topic: str, partition: int) -> DataFrame:
        """Every change of a partition and its cause, oldest first."""
        moves = self.moves()
        return moves.where((moves.topic == topic) & (moves.partition == partition)).orderBy("plan_version")

    def query(self, name: str, **parameters: object) -> DataFrame:
        """A query of ``streaming/audit/sql`` by its name; the cluster is filled in.

        Raises:
            HistoryError: there is no such query, or a parameter is missing; says which there are.
        """
        file = QUERIES / f"{name}.sql"
        if not file.exists():
            known = ", ".join(sorted(path.stem for path in QUERIES.glob("*.sql")))
            raise HistoryError(f"no query {name!r}: there are: {known}", path=str(file))
        text = file.read_text(encoding="utf-8")
        given: dict[str, Any] = {"cluster": self.cluster, **parameters}
        wanted = set(_PARAMETER.findall(re.sub(r"--.*", "", text)))
        missing = sorted(wanted - given.keys())
        if missing:
            raise HistoryError(f"query {name} needs {', '.join(missing)}", path=str(file))
        return self.spark.sql(text, args={key: _text(given[key]) for key in wanted})

    def layout(self, at: datetime | str) -> DataFrame:
        """The replicas of every partition at a time, from the journal."""
        return self.query("layout_at", at=at)

    def brokers_as_of(self, plan_version: int) -> DataFrame:
        """The table ``brokers`` after a plan version, by Delta's time travel."""
        return self._travel(BROKERS, plan_version)

    def assignments_as_of(self, plan_version: int) -> DataFrame:
        """The table ``assignments`` after a plan version, by Delta's time travel."""
        return self._travel(ASSIGNMENTS, plan_version)

    def loads_as_of(self, plan_version: int) -> DataFrame:
        """The table ``loads`` after a plan version, by Delta's time travel."""
        return self._travel(LOADS, plan_version)

    def _travel(self, table: Table, plan_version: int) -> DataFrame:
        version = table_version(self.history.commits(table), self.cluster, plan_version)
        rows = self.spark.read.format("delta").option("versionAsOf", version).load(self.tables.path(table))
        return rows.where(f"cluster_id = '{self.cluster}'")

    def verify(self) -> Difference | None:
        """Derive every plan again from what is on record; the first difference, if there is one."""
        return next(iter(verify_clusters(self.history, [self.cluster]))).difference


def _text(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def table_version(commits: list[dict[str, Any]], cluster: str, plan_version: int) -> int:
    """The version of a projection's Delta table that shows a cluster after a plan version.

    A commit's ``userMetadata`` names what it brings, such as ``{"plans": {"east": [3, 5]}}``. A commit that brings
    several versions shows only the last of them.

    Raises:
        HistoryError: the log no longer reaches so far back, or that version came together with later ones.
    """
    reached: int | None = None
    for commit in sorted(commits, key=lambda found: int(found["version"])):
        for first, last in spans_of(str(commit.get("userMetadata") or "")).get(cluster, ()):
            if first <= plan_version < last:
                raise HistoryError(
                    f"table version {commit['version']} brought plan versions {first} to {last} of {cluster} at once: "
                    f"ask the journal for version {plan_version}",
                    path=cluster,
                )
            if last <= plan_version:
                reached = int(commit["version"])
    if reached is None and any(int(commit["version"]) == 0 for commit in commits):
        return 0  # nothing had been brought when the table was new
    if reached is None:
        raise HistoryError(
            f"the table's log does not reach back to version {plan_version} of {cluster}: ask the journal", path=cluster
        )
    return reached
