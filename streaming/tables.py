"""The Delta tables through Spark: created once, appended to under a transaction id, read whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from streaming.schemas import TABLES, Table, columns_ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PROPERTIES: Final = {
    # Readers without a JVM do not know deletion vectors, and MERGE is slower with them.
    "delta.enableDeletionVectors": "false",
    "delta.checkpointInterval": "50",
}


class Tables:
    """The tables under one root: a folder, or a storage URL. Holds no Spark handle, so it can be pickled."""

    def __init__(self, root: str) -> None:
        self.root = root if "://" in root else str(Path(root).absolute())

    def path(self, table: Table) -> str:
        """Where the table is."""
        return f"{self.root}/{table.name}"

    def create(self, spark: SparkSession) -> None:
        """Create the tables that do not exist yet."""
        for table in TABLES:
            properties = _PROPERTIES | ({"delta.appendOnly": "true"} if table.append_only else {})
            listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
            spark.sql(
                f"CREATE TABLE IF NOT EXISTS {self.identifier(table)} ({columns_ddl(table)}) "
                f"USING delta TBLPROPERTIES ({listed})"
            )

    def identifier(self, table: Table) -> str:
        """The table's name in SQL."""
        return f"delta.`{self.path(table)}`"

    def read(self, spark: SparkSession, table: Table) -> DataFrame:
        """The table as it is now."""
        return spark.read.format("delta").load(self.path(table))

    def append(
        self, spark: SparkSession, table: Table, rows: pa.Table, *, app_id: str, batch_id: int, user_metadata: str
    ) -> None:
        """Add rows in one commit; a repeated ``(app_id, batch_id)`` adds nothing.

        Raises:
            Exception: whatever Spark raises; then nothing was added.
        """
        writer = spark.createDataFrame(rows).coalesce(1).write.format("delta").mode("append")
        writer.option("txnAppId", app_id).option("txnVersion", batch_id).option("userMetadata", user_metadata).save(
            self.path(table)
        )
