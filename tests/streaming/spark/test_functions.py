"""The Spark column function against the core, on real executors."""

import pytest
from pyspark.sql.functions import col

from placement import InvalidPartitionsError
from placement import partition_for_key as partition_of
from streaming.spark.functions import partition_for_key

KEYS = ["a", None, "", "user-1", "éè", "\U0001f600", *(f"k{i}" for i in range(500))]


@pytest.mark.spark
def test_partitions_of_text_and_binary_keys(spark):
    frame = spark.createDataFrame([(i, key, None if key is None else key.encode()) for i, key in enumerate(KEYS)])
    frame = frame.toDF("i", "text", "bytes").repartition(3)
    rows = frame.select("i", partition_for_key("text", 7).alias("text"), partition_for_key(col("bytes"), 7).alias("b"))
    wanted = [None if key is None else partition_of(key, 7) for key in KEYS]
    assert [tuple(row)[1:] for row in sorted(rows.collect())] == [(p, p) for p in wanted]
    assert dict(rows.dtypes)["text"] == "int"


@pytest.mark.spark
def test_a_batch_of_null_keys(spark):
    frame = spark.createDataFrame([(None,), (None,)], "key string")
    assert [row[0] for row in frame.select(partition_for_key("key", 3)).collect()] == [None, None]


@pytest.mark.spark
def test_refuses_a_partition_count_before_any_job_runs(spark):
    with pytest.raises(InvalidPartitionsError) as caught:
        partition_for_key("key", 0)
    assert caught.value.partitions == 0
