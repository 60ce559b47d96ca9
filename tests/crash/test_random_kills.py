"""Killed at any moment, with any history, the job ends where an undisturbed one ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.crash.random_kills import strike

pytestmark = [pytest.mark.spark, pytest.mark.crash]


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_at_a_random_moment(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    outcome = strike(seed, spark, tmp_path)
    assert outcome.differences == ()
    assert outcome.killed_in
