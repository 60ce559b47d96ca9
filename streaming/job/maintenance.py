"""Housekeeping: small files are merged, files that no version in the audit window needs are removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streaming.job.tables import Tables
from streaming.record.schemas import TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def maintain(spark: SparkSession, tables: Tables) -> list[str]:
    """OPTIMIZE and VACUUM every table. How long old files stay is a property of the table: its audit window.

    Returns:
        A sentence a table.
    """
    return [_maintain(spark, tables.identifier(table), table.name) for table in TABLES]


def _maintain(spark: SparkSession, identifier: str, name: str) -> str:
    merged = spark.sql(f"OPTIMIZE {identifier}").collect()[0].metrics
    spark.sql(f"VACUUM {identifier}")
    return f"{name}: {merged.numFilesRemoved} files merged into {merged.numFilesAdded}, files past the window removed"
