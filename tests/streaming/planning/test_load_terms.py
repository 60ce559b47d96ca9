"""Topics that are kept off brokers, and the cost of a copy, as policy says. Without Spark."""

from __future__ import annotations

import pytest

from streaming.config import parse_config
from streaming.errors import ConfigError
from streaming.planning.soundness import check_version
from streaming.record.version import PlanVersion
from tests.streaming.driving import RACKS, Driver

GB = 10**9

KEPT_OFF = """
[policy]
approval = []
[policy.loads]
plan = true
[[policy.loads.keep_off]]
topics = "logs-*"
brokers = [1, 3, 5]
"""


def cluster(conf: str) -> Driver:
    driver = Driver(conf)
    driver.racks(RACKS)
    return driver


def created(driver: Driver, topic: str, minute: float) -> bytes:
    return driver.event("topic_created", topic=topic, partitions=6, replication_factor=3, minute=minute)


def weighed(driver: Driver, *topics: str, minute: float) -> bytes:
    sizes = [{"topic": t, "partition": p, "size": GB + p} for t in topics for p in range(6)]
    return driver.event("load_observed", partitions=sizes, minute=minute)


def holders(driver: Driver, topic: str) -> set[int]:
    return {b for row in driver.layout()[topic] for b in row}


def sound(driver: Driver, version: PlanVersion) -> bool:
    return bool(check_version(version, driver.memory.clusters["c"].brokers.values()))


def test_a_new_topic_is_placed_on_the_brokers_that_are_left_for_it() -> None:
    driver = cluster(KEPT_OFF)
    driver.batch(created(driver, "logs-a", 1), created(driver, "orders", 1))
    assert holders(driver, "logs-a") == {2, 4, 6}
    assert holders(driver, "orders") >= {1, 3, 5}
    driver.batch(driver.event("partitions_added", topic="logs-a", partitions=9, minute=2))
    assert holders(driver, "logs-a") == {2, 4, 6}


def test_a_rebalance_takes_away_what_was_there_before_the_policy() -> None:
    driver = cluster("")
    driver.batch(created(driver, "logs-a", 1), created(driver, "orders", 1))
    assert holders(driver, "logs-a") == {1, 2, 3, 4, 5, 6}
    driver.config = parse_config(KEPT_OFF, "test.toml")
    driver.batch(weighed(driver, "logs-a", "orders", minute=2))
    (version,) = driver.batch(driver.event("rebalance_requested", minute=3)).versions
    assert holders(driver, "logs-a") == {2, 4, 6}
    assert version.numbers.loads is not None
    assert version.numbers.loads.moved_bytes >= 9 * GB
    assert sound(driver, version)


def test_what_is_lost_is_healed_on_the_brokers_that_are_left_for_it() -> None:
    """Of rack b no broker is left for the topic, so two racks have to do."""
    driver = cluster(KEPT_OFF)
    driver.batch(driver.event("broker_joined", broker_id=7, rack="a", minute=0))
    driver.batch(created(driver, "logs-a", 1), created(driver, "orders", 1))
    driver.batch(weighed(driver, "logs-a", "orders", minute=2))
    (version,) = driver.batch(driver.event("broker_left", broker_id=4, reason="decommissioned", minute=3)).versions
    assert version.kind == "heal"
    assert holders(driver, "logs-a") == {2, 6, 7}
    assert holders(driver, "orders") >= {1, 3, 5}
    assert sound(driver, version)


def test_where_too_few_brokers_are_left_for_a_topic_it_is_healed_all_the_same_and_the_cause_says_so() -> None:
    driver = cluster(KEPT_OFF)
    driver.batch(created(driver, "logs-a", 1))
    driver.batch(weighed(driver, "logs-a", minute=2))
    (version,) = driver.batch(driver.event("broker_left", broker_id=4, reason="decommissioned", minute=3)).versions
    assert version.kind == "heal"
    assert "; keep_off was set aside: partition logs-a-" in version.cause
    assert version.cause.endswith("is one that topic logs-a is kept off")
    assert holders(driver, "logs-a") == {2, 3, 6}
    assert sound(driver, version)


def test_without_plans_by_load_no_topic_is_kept_off() -> None:
    driver = cluster(KEPT_OFF.replace("plan = true", "plan = false"))
    driver.batch(created(driver, "logs-a", 1))
    assert holders(driver, "logs-a") == {1, 2, 3, 4, 5, 6}


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        (
            'move_cost = "much"',
            "policy.loads.move_cost: 'much' is not an amount of bytes: write a number and KiB",
        ),
        ('keep_off = [{topics = "t"}]', "policy.loads.keep_off[0]: Object missing required field `brokers`"),
        ('keep_off = [{topics = "t", brokers = [-1]}]', "policy.loads.keep_off[0].brokers[0]: Expected `int` >= 0"),
    ],
)
def test_terms_that_cannot_be_read_are_refused(section: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=r"^test\.toml: policy") as raised:
        parse_config(f"[policy.loads]\n{section}\n", "test.toml")
    assert problem in str(raised.value)
