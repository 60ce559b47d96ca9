"""A small cluster that many tests begin with."""

from __future__ import annotations

import pytest

from tests.streaming.driving import RACKS, Driver


@pytest.fixture
def six() -> Driver:
    """Six brokers in three racks, with one topic of six partitions on all of them."""
    driver = Driver()
    driver.racks(RACKS)
    driver.batch(driver.event("topic_created", topic="t", partitions=6, replication_factor=3))
    return driver
