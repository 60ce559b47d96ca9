"""Housekeeping: small files are merged, files that no version in the audit window needs are removed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from streaming.schemas import TABLES
from streaming.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEAST: Final = timedelta(days=7)
"""Delta refuses to remove younger files, because somebody may be reading them."""


def maintain(spark: SparkSession, tables: Tables, audit_window: timedelta) -> list[str]:
    """OPTIMIZE and VACUUM every table; time travel inside the audit window goes on working.

    Returns:
        A sentence a table.
    """
    hours = int(max(audit_window, LEAST).total_seconds() // 3600)
    return [_maintain(spark, tables.identifier(table), table.name, hours) for table in TABLES]


def _maintain(spark: SparkSession, identifier: str, name: str, hours: int) -> str:
    merged = spark.sql(f"OPTIMIZE {identifier}").collect()[0].metrics
    before = spark.sql(f"VACUUM {identifier} RETAIN {hours} HOURS DRY RUN").count()
    spark.sql(f"VACUUM {identifier} RETAIN {hours} HOURS")
    return (
        f"{name}: {merged.numFilesRemoved} files merged into {merged.numFilesAdded}, "
        f"{before} files older than {hours // 24} days removed"
    )
