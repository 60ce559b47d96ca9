"""Fixtures for tests on real Spark; a test that uses one is marked ``spark``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from streaming.spark.session import spark_session

# Examples are few and small; a busy machine must not fail them.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session per test process, because starting one takes seconds; tables belong into ``tmp_path``."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    session = spark_session("tests", settings={"spark.sql.warehouse.dir": str(warehouse)})
    yield session
    session.stop()
