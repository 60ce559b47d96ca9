"""What takes long comes first. Fixtures for tests on real Spark; a test that uses one is marked ``spark``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession

from streaming.spark.session import spark_session

# Examples are few and small; a busy machine must not fail them.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules that start a JVM come first: side by side, no process has minutes to go when others are done."""
    jvm = {item.path for item in items if item.get_closest_marker("spark") is not None}
    items.sort(key=lambda item: item.path not in jvm)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Where marked tests were left out, say how to run them."""
    left_out = [marker for marker in ("spark", "crash", "browser") if f"not {marker}" in config.option.markexpr]
    if left_out:
        terminalreporter.write_line(f"Left out; to run them: make test ARGS=\"-m '{' or '.join(left_out)}'\"")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session per test process, because starting one takes seconds; tables belong into ``tmp_path``."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    session = spark_session("tests", settings={"spark.sql.warehouse.dir": str(warehouse)})
    yield session
    session.stop()
