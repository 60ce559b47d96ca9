"""One real cluster for all live tests, because starting it takes half a minute; each test gets it whole and empty."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kafka import KafkaAdminClient
from pyspark.sql import SparkSession

from examples.local_kafka import LocalKafka, Security
from streaming.spark.session import spark_session
from tests.live_kafka.cluster import PASSWORD, RACKS, USER, alive, own_topics, wait_until


@pytest.fixture(scope="session")
def running_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKafka]:
    folder = tmp_path_factory.mktemp("kafka")
    with LocalKafka(folder / "nodes", RACKS, security=Security(folder / "tls", {USER: PASSWORD}), disks=2) as cluster:
        yield cluster


@pytest.fixture
def kafka(running_kafka: LocalKafka) -> LocalKafka:
    """Five brokers in three racks, all alive, with no topics but Kafka's own; what a test left behind is gone."""
    for broker in sorted(set(running_kafka.brokers) - set(RACKS)):
        running_kafka.unregister(broker)
    for broker in RACKS:
        running_kafka.start_broker(broker)
    with KafkaAdminClient(bootstrap_servers=running_kafka.bootstrap_servers()) as client:
        wait_until(lambda: alive(client) == set(RACKS), "all brokers are alive")
        if topics := own_topics(client):
            client.delete_topics(topics)
        wait_until(lambda: not own_topics(client), "no topics are left")
    return running_kafka


@pytest.fixture
def admin(kafka: LocalKafka) -> Iterator[KafkaAdminClient]:
    """A client of each test's own: one keeps what it knew of brokers that have gone."""
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers()) as client:
        yield client


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of these tests can read from Kafka."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    session = spark_session("live tests", kafka=True, settings={"spark.sql.warehouse.dir": str(warehouse)})
    yield session
    session.stop()
