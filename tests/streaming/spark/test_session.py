"""The session that the job gets, and what a person sees of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from streaming.spark.session import spark_session

pytestmark = pytest.mark.spark

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "replicas": pa.array([[1, 2], None], pa.list_(pa.int32()))})

A_FIRST_SCRIPT = """
from streaming.spark.session import spark_session
spark = spark_session("first", settings={"spark.master": "local[1]", "spark.sql.shuffle.partitions": "3"})
spark.sql("CREATE TABLE t USING delta AS SELECT 1 AS id")
print(spark.sql("SELECT id FROM t").collect()[0].id)
print(spark.sparkContext.master, spark.conf.get("spark.sql.shuffle.partitions"))
"""


def test_the_active_session_is_used_as_it_is(spark: SparkSession) -> None:
    spark.createDataFrame([(1,)], "id int")  # now this one is active, whatever another test has used
    assert spark_session("another", settings={"spark.sql.shuffle.partitions": "7"}) is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_arrow_rows_go_into_delta_and_come_out_without_a_jvm(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    rows = spark.createDataFrame(ROWS)
    rows.write.format("delta").save(path)
    third = "USING (SELECT 3L AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    spark.sql(f"MERGE INTO delta.`{path}` t {third}")
    read = pa.table(deltalake.DeltaTable(path).to_pyarrow_table()).sort_by("id")
    assert read.to_pylist() == [*ROWS.to_pylist(), {"id": 3, "replicas": None}]
    assert spark.read.format("delta").load(path).orderBy("id").toArrow().to_pylist() == read.to_pylist()


def test_functions_on_executors_run_in_this_python(spark: SparkSession) -> None:
    def interpreter(_: pa.Table) -> pa.Table:
        return pa.table({"executable": [sys.executable]})

    found = spark.range(1).groupBy("id").applyInArrow(interpreter, "executable string").toArrow()
    assert found.to_pylist() == [{"executable": sys.executable}]


def test_time_is_utc(spark: SparkSession) -> None:
    assert spark.sql("SELECT string(timestamp_seconds(0)) AS t").collect()[0].t == "1970-01-01 00:00:00"


def test_java_keeps_the_code_that_it_has_compiled(spark: SparkSession) -> None:
    """A dozen batches need 48 MB of it: with no more room Java goes on compiling the same code."""
    assert spark.sparkContext._jvm is not None
    pools = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    kept = [pool.getUsage().getMax() for pool in pools if pool.getName().startswith("Code")]
    assert sum(kept) >= 200 << 20


@pytest.mark.usefixtures("spark")  # the JARs are kept by now
def test_a_newcomer_sees_their_own_output_only_and_nothing_is_left_behind(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    here = tmp_path / "here"
    here.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", A_FIRST_SCRIPT],
        cwd=here,
        env={**os.environ, "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\nlocal[1] 3\n", "")
    assert list(here.iterdir()) == []
    assert list(scratch.iterdir()) == []


def test_without_java_it_is_said_before_anything_starts(tmp_path: Path) -> None:
    script = "from streaming.spark.session import spark_session; spark_session('first')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.splitlines()[-1].startswith(f"streaming.errors.JavaError: JAVA_HOME is {tmp_path}, but ")
