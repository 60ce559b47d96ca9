"""Whatever arrives: every line has one recorded outcome, and the good events between the bad ones take effect."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streaming.events import decode
from tests.fuzzed import fuzzed_lines, good_lines
from tests.job_folder import JobFolder
from tests.streaming.driving import Driver


def mixed(seed: int, bad: int, good: int, *, long: int = 0) -> list[bytes]:
    """The good lines in their order, spread among the bad ones."""
    lines = list(fuzzed_lines(seed, bad, long=long))
    step = len(lines) // good
    for number, line in enumerate(good_lines(good)):
        lines.insert(number * (step + 1), line)
    return lines


def assert_accounted(job: JobFolder, lines: list[bytes], good: int) -> None:
    received = job.received()
    assert len({place for place, _, _ in received}) == len(received) == len(lines)
    assert len(job.history.state("good").topics) == good - 2


@pytest.mark.spark
def test_every_line_is_accounted_for(spark: SparkSession, tmp_path: Path) -> None:
    lines = mixed(1, 3_000, 100, long=2)
    job = JobFolder(tmp_path, policy="default_partitions = 1")
    job.play(spark, *lines)
    assert_accounted(job, lines, 100)
    assert max(len(row["payload"]) for row in job.rows("quarantine")) >= 10_000_000


def test_no_line_stops_a_cluster() -> None:
    driver = Driver()
    for seed in range(20):
        driver.batch(*mixed(seed, 300, 10)) if seed == 0 else driver.batch(*fuzzed_lines(seed, 300))
    assert not any(state.stopped for state in driver.memory.clusters.values())
    assert all(decode(line).problem or decode(line).event for line in fuzzed_lines(99, 2_000))
