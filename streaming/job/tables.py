"""The Delta tables through Spark: created once, appended to under a transaction id, read whole."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from streaming.errors import JobError
from streaming.history.pruning import Span, narrowed, read
from streaming.history.scanning import conform, dataset, scan
from streaming.record.comments import TABLE_COMMENTS
from streaming.record.moves import encoded
from streaming.record.schemas import (
    PLANS,
    QUARANTINE,
    TABLES,
    Table,
    column_paths,
    columns_ddl,
    comment_of,
    sql_text,
    sql_type,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_PROPERTIES: Final = {
    # Readers without a JVM do not know deletion vectors, and MERGE is slower with them.
    "delta.enableDeletionVectors": "false",
    "delta.checkpointInterval": "50",
}

# Readers look for rows by these; statistics of the nested columns would cost more than the commit.
_STATISTICS: Final = {
    PLANS.name: "cluster_id,plan_version,batch_id,created_at",
    QUARANTINE.name: "cluster_id,batch_id,received_at",
}

_FILE: Final = 32 << 20
"""Bytes in memory that a file is made of where much is appended at once; Spark keeps less than 48 MB in one piece."""

_JOURNAL_WRITER: Final = "replica-planner"
_LATEST: Final = 20
"""Commits to look through for one's own: housekeeping may have added some since."""


class Tables:
    """The tables under one root: a folder, or a storage URL. Holds no Spark handle, so it can be pickled."""

    def __init__(self, root: str) -> None:
        self.root = root if "://" in root else str(Path(root).absolute())

    def path(self, table: Table) -> str:
        """Where the table is."""
        return f"{self.root}/{table.name}"

    def create(self, spark: SparkSession, audit_window: timedelta) -> None:
        """Create the tables that do not exist yet, all at once: each takes a second or more on a cold JVM.

        Tables of an earlier release get the columns and comments that it did not know.
        """
        kept = f"interval {max(1, audit_window.days)} days"
        retention = {"delta.logRetentionDuration": kept, "delta.deletedFileRetentionDuration": kept}
        with ThreadPoolExecutor(len(TABLES)) as pool:
            list(pool.map(partial(self._create, spark, retention), TABLES))

    def _create(self, spark: SparkSession, retention: dict[str, str], table: Table) -> None:
        properties = _PROPERTIES | retention | ({"delta.appendOnly": "true"} if table.append_only else {})
        if table.name in _STATISTICS:
            properties |= {"delta.dataSkippingStatsColumns": _STATISTICS[table.name]}
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        about = sql_text(TABLE_COMMENTS[table.name])
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {self.identifier(table)} ({columns_ddl(table)}) USING delta "
            f"COMMENT {about} TBLPROPERTIES ({listed})"
        )
        present = dict(present_columns(spark.read.format("delta").load(self.path(table)).schema))
        wanted = dict(column_paths(table.schema))
        missing = missing_columns(wanted, present)
        if missing:
            # Written by an earlier release: what it did not know is null in its rows.
            listed = ", ".join(f"{_quoted(name)} {sql_type(wanted[name].type)}" for name in missing)
            spark.sql(f"ALTER TABLE {self.identifier(table)} ADD COLUMNS ({listed})")
        others = [n for n in wanted if n not in present or present[n].metadata.get("comment") != comment_of(n)]
        # Spark refuses a column and one of its own fields in one statement.
        for depth in sorted({name.count(".") for name in others}):
            at = (name for name in others if name.count(".") == depth)
            described = ", ".join(f"{_quoted(name)} COMMENT {sql_text(comment_of(name))}" for name in at)
            spark.sql(f"ALTER TABLE {self.identifier(table)} ALTER COLUMN {described}")
        if others:
            spark.sql(f"ALTER TABLE {self.identifier(table)} SET TBLPROPERTIES ('comment' = {about})")

    def empty(self, spark: SparkSession, table: Table) -> None:
        """Take all rows out of a table without looking at them: its files may be unreadable.

        Raises:
            JobError: its log is so, too.
        """
        try:
            spark.sql(f"DELETE FROM {self.identifier(table)}")
        except Exception as error:
            raise JobError(
                f"{self.path(table)}: this table cannot be read; remove the folder, the next start writes it again"
            ) from error

    def identifier(self, table: Table) -> str:
        """The table's name in SQL."""
        return f"delta.`{self.path(table)}`"

    def read(
        self,
        spark: SparkSession,
        table: Table,
        columns: Sequence[str],
        *,
        beyond: int = 0,
        clusters: Sequence[str] | None = None,
    ) -> pa.Table:
        """Columns of the table as it is now, of some clusters or all, from the plan version after ``beyond`` on.

        ``events.reason`` is one field of the structs in a list: where one is named so, only the named ones are read.
        Where the root is a folder the files are read without Spark, which takes hundredths of a second where a Spark
        query takes tenths; where it is a URL, Spark reads, because it has the credentials.
        """
        if self.shared:
            return self._read_by_spark(spark, table, columns, beyond, clusters)
        with self._named(table):
            return self._read_here(table, columns, beyond, clusters)

    @contextmanager
    def _named(self, table: Table) -> Iterator[None]:
        """Say which table it is that cannot be read without Spark."""
        try:
            yield
        except (DeltaError, OSError, pa.ArrowException) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise JobError(f"{self.path(table)}: this table cannot be read: {reason}") from error

    def _read_here(self, table: Table, columns: Sequence[str], beyond: int, clusters: Sequence[str] | None) -> pa.Table:
        if any("." in column for column in columns):
            span = Span(clusters, beyond + 1 if beyond else None)
            return read(DeltaTable(self.path(table)), self.path(table), table.schema, columns, span)
        wanted = None if clusters is None else pc.field("cluster_id").isin(pa.array(clusters, pa.string()))
        if beyond:
            later = pc.field("plan_version") > beyond
            wanted = later if wanted is None else wanted & later
        return scan(dataset(self.path(table)), table.schema, columns, wanted)

    def _read_by_spark(
        self, spark: SparkSession, table: Table, columns: Sequence[str], beyond: int, clusters: Sequence[str] | None
    ) -> pa.Table:
        rows = spark.read.format("delta").load(self.path(table))
        if beyond:
            rows = rows.where(rows.plan_version > beyond)
        if clusters is not None:
            rows = rows.where(rows.cluster_id.isin(list(clusters)))
        target = narrowed(table.schema, columns)
        return conform(rows.select(*(_selected(field, table) for field in target)).toArrow(), target)

    def append(
        self, spark: SparkSession, table: Table, rows: pa.Table, *, app_id: str, batch_id: int, user_metadata: str
    ) -> None:
        """Add rows in one commit.

        Behind a URL the commit carries Delta's transaction id, and a repeated ``(app_id, batch_id)`` adds nothing. That
        makes Delta compute the table's whole state before each commit, which takes several times as long; in a folder
        the job's lock and the ids in the rows serve as well.

        Raises:
            Exception: whatever Spark raises; then nothing was added.
        """
        files = in_files(rows)
        frame = spark.createDataFrame(files)
        writer = (frame if files is not rows else frame.coalesce(1)).write.format("delta").mode("append")
        if self.shared:
            writer = writer.option("txnAppId", app_id).option("txnVersion", batch_id)
        writer.option("userMetadata", user_metadata).save(self.path(table))

    @property
    def shared(self) -> bool:
        """Whether the tables are where no lock keeps a second job out."""
        return "://" in self.root

    def journal_version(self, spark: SparkSession) -> int:
        """The table version of the journal where jobs may share it; 0 in a folder, where nobody asks."""
        return int(self.commits(spark, PLANS, 1)[0]["version"]) if self.shared else 0

    def append_to_journal(self, spark: SparkSession, rows: pa.Table, *, known: int, user_metadata: str) -> int:
        """Add plan versions in one commit, if nobody else has added any since table version ``known``.

        Behind a URL all jobs write under one transaction id, numbered by the table's version. Delta refuses the second
        of two that write at once, and skips the one whose number is taken; either way it adds nothing.

        Returns:
            The table version now, to be known the next time.

        Raises:
            JobError: another job has written.
            Exception: whatever Spark raises; then nothing was added.
        """
        self.append(spark, PLANS, rows, app_id=_JOURNAL_WRITER, batch_id=known + 1, user_metadata=user_metadata)
        if not self.shared:
            return known
        commits = self.commits(spark, PLANS, _LATEST)
        mine = [int(commit["version"]) for commit in commits if commit["userMetadata"] == user_metadata]
        if not mine:
            other = next((commit["userMetadata"] for commit in commits if commit["userMetadata"]), "unknown")
            raise JobError(
                f"{self.root}: another job writes plans to these tables ({other}), so this one has written nothing; "
                "stop one of them"
            )
        return mine[0]

    def commits(self, spark: SparkSession, table: Table, newest: int) -> list[Any]:
        """The newest commits of a table, newest first."""
        return spark.sql(f"DESCRIBE HISTORY {self.identifier(table)} LIMIT {newest}").collect()

    def identity(self, spark: SparkSession, table: Table) -> str:
        """The id that Delta gave the table when it was created."""
        if self.shared:
            return str(spark.sql(f"DESCRIBE DETAIL {self.identifier(table)}").collect()[0]["id"])
        with self._named(table):
            return str(DeltaTable(self.path(table)).metadata().id)


def in_files(rows: pa.Table) -> pa.Table:
    """The same rows in chunks, each of which Spark writes as a file: more than one only where there is very much.

    Rows of one cluster that stand together stay together.
    """
    count = rows.nbytes // _FILE
    if count < 2:
        return rows
    _, codes = encoded(rows["cluster_id"].combine_chunks())
    starts = [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist(), rows.num_rows]
    ends: list[int] = []
    size = 0
    for start, end in pairwise(starts):
        size += rows.slice(start, end - start).nbytes
        if size * count >= rows.nbytes * (len(ends) + 1):
            ends.append(end)
    cuts = pairwise(sorted({0, *ends, rows.num_rows}))
    return pa.concat_tables(rows.slice(start, end - start).combine_chunks() for start, end in cuts)


def _selected(field: pa.Field, table: Table) -> Column:
    """A column of a DataFrame, or of its structs the fields that are wanted."""
    from pyspark.sql import functions

    if field == table.schema.field(field.name):
        return functions.col(field.name)
    names = [part.name for part in field.type.value_type]
    parts = functions.transform(field.name, lambda row: functions.struct(*(row[name] for name in names)))
    return parts.alias(field.name)


def present_columns(columns: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The columns and fields of a Spark ``StructType``, named as in :func:`column_paths`."""
    for field in columns:
        name = f"{path}{field.name}"
        yield name, field
        if field.dataType.typeName() == "struct":
            yield from present_columns(field.dataType, f"{name}.")
        elif field.dataType.typeName() == "array" and field.dataType.elementType.typeName() == "struct":
            yield from present_columns(field.dataType.elementType, f"{name}.element.")


def missing_columns(wanted: Iterable[str], present: Collection[str]) -> list[str]:
    """What a table of an earlier release lacks: columns, and fields of the structs that it has."""
    parents = {name: name.rpartition(".")[0].removesuffix(".element") for name in wanted}
    return [name for name, parent in parents.items() if name not in present and (not parent or parent in present)]


def _quoted(path: str) -> str:
    return ".".join(f"`{part}`" for part in path.split("."))
