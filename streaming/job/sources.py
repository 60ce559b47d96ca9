"""Where events come from: one streaming DataFrame of lines and ticks.

Where the source is a folder there are ticks only: at each of them the batch takes lines from
:mod:`streaming.job.folder`.

Columns: those that :mod:`streaming.record.lines` decodes, and ``batch_time``, which Spark keeps in the checkpoint, so
that a repeated batch sees the same time.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's users know

from streaming.config import Config, DeltaSource, FilesSource, KafkaSource
from streaming.kafka.connection import Connection

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_EVER: Final = "36500d"

# Without these a broker's death stalls Spark's Kafka source for a minute.
_KAFKA_TIMEOUTS: Final = {"kafka.default.api.timeout.ms": "5000", "kafka.request.timeout.ms": "4000"}


def read_lines(spark: SparkSession, config: Config) -> DataFrame:
    """The configured source, and with each trigger a tick, so that deadlines pass when no event arrives.

    The ticks are there whatever the trigger: Spark refuses a checkpoint that had another number of sources.
    """
    source = config.source
    if config.folder is not None:
        return _timed(_ticks(spark))
    if isinstance(source, FilesSource):
        lines = _files(spark, source)
    elif isinstance(source, KafkaSource):
        lines = _kafka(spark, source)
    else:
        lines = _delta(spark, source)
    return _timed(lines.unionByName(_ticks(spark)))


def _timed(rows: DataFrame) -> DataFrame:
    return rows.withColumn("batch_time", F.current_timestamp())


def _row(line: Column, major: Column, name: Column, minor: Column) -> list[Column]:
    return [
        line.cast("binary").alias("line"),
        major.cast("long").alias("major"),
        name.cast("string").alias("name"),
        minor.cast("long").alias("minor"),
    ]


def _files(spark: SparkSession, source: FilesSource) -> DataFrame:
    if "://" not in source.path:
        Path(source.path).mkdir(parents=True, exist_ok=True)
    reader = spark.readStream.format("text").schema("value string").option("lineSep", "\n")
    # Spark would leave out files that are a week older than the newest one, without a word.
    reader = reader.option("maxFileAge", _EVER)
    if source.max_files_per_trigger != FilesSource().max_files_per_trigger:
        reader = reader.option("maxFilesPerTrigger", source.max_files_per_trigger)
    else:
        reader = reader.option("maxBytesPerTrigger", source.max_bytes_per_trigger.bytes)
    file = F.col("_metadata")
    return reader.load(source.path).select(
        *_row(
            F.col("value"), F.unix_micros(file["file_modification_time"]), file["file_path"], file["file_block_start"]
        )
    )


def _kafka(spark: SparkSession, source: KafkaSource) -> DataFrame:
    options = {
        **_KAFKA_TIMEOUTS,
        **Connection.to_source(source).spark_options(),
        "subscribe": source.topic,
        "startingOffsets": source.starting_offsets,
        "maxOffsetsPerTrigger": str(source.max_offsets_per_trigger),
        **source.options,
    }
    return (
        spark.readStream.format("kafka")
        .options(**options)
        .load()
        .select(*_row(F.col("value"), F.col("partition"), F.col("topic"), F.col("offset")))
        .withColumn("line", F.coalesce("line", F.lit(b"")))
    )


def _delta(spark: SparkSession, source: DeltaSource) -> DataFrame:
    """One file a batch, in the order of the commits: a Delta stream does not say which of two files came first."""
    reader = spark.readStream.format("delta").option("maxFilesPerTrigger", source.max_files_per_trigger)
    reader = reader.option("maxBytesPerTrigger", source.max_bytes_per_trigger.bytes)
    rows = reader.load(source.path).select(*_row(F.col("value"), F.lit(0), F.input_file_name(), F.lit(0)))
    return rows.withColumn("line", F.coalesce("line", F.lit(b"")))


def _ticks(spark: SparkSession) -> DataFrame:
    # Unlike the rate source it can be read with the available-now trigger, and saves up nothing during a pause.
    ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).option("numPartitions", 1).load()
    return ticks.select(*_row(F.lit(None), F.lit(0), F.lit(""), F.lit(0)))
