"""A real Kafka cluster on this machine, for the quickstart and the tests: KRaft, from Maven's artifacts."""

from examples.local_kafka.cluster import LocalKafka
from examples.local_kafka.security import Security

__all__ = ["LocalKafka", "Security"]
