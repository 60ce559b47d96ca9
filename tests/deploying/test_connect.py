"""The whole job on a local Spark Connect server with Delta, as on serverless compute: no JVM in this process.

It runs in a process of its own, because a process has classic sessions or Connect sessions, not both.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.events_for import EventsFor
from tests.job_folder import JobFolder

pytestmark = pytest.mark.spark

PROGRAM = """
import os, sys
from streaming.config import load_config
from streaming.errors import JobError
from streaming.spark.jar_manifest import listed_jars
from streaming.spark.jars import kept_jars
from streaming.spark.session import ALWAYS, LOCAL

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
jars = kept_jars(listed_jars(("delta",)))
from pyspark.sql import SparkSession

builder = SparkSession.builder.remote("local[2]")
for key, value in (ALWAYS | LOCAL | {"spark.jars": ",".join(map(str, jars))}).items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
print(type(spark).__module__, flush=True)

from streaming.job.query import run_job

config = load_config(sys.argv[1])
for _ in range(10):
    try:
        run_job(config, once=True, spark=spark)
        break
    except JobError as error:
        # Spark gives its worker ten seconds to start, which a busy machine may need for its imports.
        if "worker to connect back" not in str(error):
            raise
spark.stop()
"""

east = EventsFor("east")


def run(job: JobFolder) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, job.conf]
    root = Path(__file__).parents[2]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_the_job_plans_on_a_connect_server(tmp_path: Path) -> None:
    job = JobFolder(tmp_path / "job", source="max_files_per_trigger = 1")
    job.send(*east.racks({"a": [1], "b": [2], "c": [3]}), b"broken")
    job.send(east.created("orders", 4, 2, minute=1))
    job.send(east.left(1, "decommissioned", minute=2))
    done = run(job)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("pyspark.sql.connect.")
    assert [v.kind for v in job.history.versions("east")] == ["membership", "topics", "heal"]
    assert sorted(job.outcomes().values()) == ["applied"] * 5 + ["malformed"]
    assert set(job.brokers("east").values()) == {"alive", "draining"}
