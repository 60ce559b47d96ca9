"""The real cluster, asked with patience: brokers come and go while replicas move."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final, TypeVar

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource
from kafka.errors import (
    BrokerNotAvailableError,
    ElectionNotNeededError,
    KafkaError,
    NoError,
    ReplicaNotAvailableError,
    UnknownBrokerIdError,
    for_code,
)

from streaming.apply.journal.tasks import Place, Replicas
from streaming.apply.kafka.seen import Seen, seen_in
from streaming.errors import ClusterError
from streaming.kafka.connection import Connection, reason_of
from streaming.kafka.offsets import read_offsets
from streaming.kafka.snapshot import read_snapshot

PATIENCE: Final = 60.0
"""Seconds for which a question is asked again while brokers do not answer."""

_AGAIN: Final = 0.2
_PREFERRED: Final = 0
_PASSING: Final = (UnknownBrokerIdError, BrokerNotAvailableError, ClusterError)
"""What asking again with a new client mends, beside the errors that the client itself calls retriable."""

Answer = TypeVar("Answer")


class Cluster:
    """An admin client that is made again when a broker goes; use it in a ``with`` statement."""

    def __init__(self, connection: Connection, patience: float = PATIENCE) -> None:
        self.connection = connection
        self.patience = patience
        self._admin: KafkaAdminClient | None = connection.admin()

    def ask(self, question: Callable[[KafkaAdminClient], Answer], patience: float | None = None) -> Answer:
        """Ask until there is an answer. A question may be asked twice, so it must not matter if it is.

        Raises:
            ClusterError: there was none in time, or the cluster refuses.
        """
        until = time.monotonic() + (self.patience if patience is None else patience)
        while True:
            try:
                self._admin = self._admin or self.connection.admin()
                return question(self._admin)
            except (KafkaError, ClusterError) as error:
                # The client keeps what it knew of brokers that have gone; a new one asks.
                self.close()
                passing = isinstance(error, _PASSING) or error.retriable
                if passing and time.monotonic() < until:
                    time.sleep(_AGAIN)
                elif isinstance(error, ClusterError):
                    raise
                else:
                    raise self.connection.failed("does not do what it is asked", error) from error

    def close(self) -> None:
        """Let go of the connections; the next question makes new ones."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def kafka_id(self) -> str:
        """The id that Kafka gave the cluster."""
        return str(self.ask(lambda admin: admin.describe_cluster())["cluster_id"])

    def see(self, topics: Collection[str] | None = None) -> Seen:
        """Who is alive, and where the partitions of these topics are, or of all."""
        return seen_in(self.ask(lambda admin: read_snapshot(admin, topics)))

    def create_topic(self, topic: str, replicas: Sequence[Replicas]) -> None:
        """Create a topic with these replicas for partition 0, 1, ..., unless it is there."""
        wanted = {topic: {"assignments": {p: list(row) for p, row in enumerate(replicas)}}}

        def create(admin: KafkaAdminClient) -> None:
            if not read_snapshot(admin, [topic]).topics:
                admin.create_topics(wanted)

        self.ask(create)

    def add_partitions(self, topic: str, first: int, replicas: Sequence[Replicas]) -> None:
        """Let a topic grow by partitions with these replicas, unless it has."""
        total = first + len(replicas)
        wanted = {topic: {"count": total, "assignments": [list(row) for row in replicas]}}

        def add(admin: KafkaAdminClient) -> None:
            there = read_snapshot(admin, [topic]).topic(topic)
            if there is None or len(there.partitions) < total:
                admin.create_partitions(wanted)

        self.ask(add)

    def reassign(self, wanted: Mapping[Place, Replicas]) -> dict[Place, str]:
        """Begin reassignments; what Kafka refuses, with its reason.

        One that is under way is replaced. Sent back to the replicas that it began with it ends at once, as if it were
        cancelled, but with the replicas in their former order.
        """
        if not wanted:
            return {}
        changes = {TopicPartition(*place): list(replicas) for place, replicas in wanted.items()}
        answers = self.ask(lambda admin: admin.alter_partition_reassignments(changes))
        return {(tp.topic, tp.partition): _reason(error) for tp, error in answers.items() if error is not None}

    def choose_log_dirs(self, wanted: Mapping[tuple[str, int, int], str]) -> dict[Place, str]:
        """Let brokers put replicas that they are to get into these directories; what they refuse, with the reason.

        Args:
            wanted: the directory by topic, partition and broker. A broker keeps it in mind until the replica comes, or
                until it is restarted, and answers that there is no such replica yet (KIP-113).
        """
        if not wanted:
            return {}
        answers = self.ask(lambda admin: admin.alter_replica_log_dirs(dict(wanted)))
        return {
            (one.topic, one.partition): f"broker {one.broker_id} cannot put it into"
            f" {wanted[one.topic, one.partition, one.broker_id]}: {_reason(error)}"
            for one, error in answers.items()
            if error not in (NoError, ReplicaNotAvailableError)
        }

    def elect(self, places: Iterable[Place]) -> dict[Place, str]:
        """Let preferred leaders lead; those for which Kafka could not do it, with its reason."""
        wanted = {topic: [p for _, p in group] for topic, group in groupby(sorted(places), key=lambda place: place[0])}
        answer = self.ask(lambda admin: admin.elect_leaders(_PREFERRED, wanted, raise_errors=False))
        harmless = (NoError.errno, ElectionNotNeededError.errno)
        return {
            (topic.topic, partition.partition_id): _reason(for_code(partition.error_code))
            for topic in answer.replica_election_results
            for partition in topic.partition_result
            if partition.error_code not in harmless
        }

    def sizes(self, wanted: Mapping[int, Collection[Place]]) -> dict[tuple[int, Place], int]:
        """Bytes in the logs of replicas, asked of those that hold them; nothing where a broker does not say at once."""
        found: dict[tuple[int, Place], int] = {}
        try:
            for broker, places in sorted(wanted.items()):
                named = {t: [p for _, p in group] for t, group in groupby(sorted(places), key=lambda place: place[0])}
                question = partial(KafkaAdminClient.describe_log_dirs, topic_partitions=named, brokers=[broker])
                (answer,) = self.ask(question, patience=0)
                found |= {
                    (broker, (topic["name"], partition["partition_index"])): partition["partition_size"]
                    for folder in answer["log_dirs"]
                    for topic in folder["topics"]
                    for partition in topic["partitions"]
                    if not partition["is_future_key"]
                }
        except ClusterError:
            return {}
        return found

    def end_offsets(self, wanted: Mapping[int, Collection[Place]]) -> dict[tuple[int, Place], int]:
        """Log end offsets of replicas, asked of the brokers that hold them; nothing where one does not say at once."""
        try:
            return {
                (broker, place): offset
                for broker, places in sorted(wanted.items())
                for place, offset in self.ask(
                    partial(read_offsets, broker=broker, places=places, of_followers=True), patience=0
                ).items()
            }
        except ClusterError:
            return {}

    def configs(
        self, kind: str, names: Iterable[str], keys: Collection[str], patience: float | None = None
    ) -> dict[str, dict[str, str]]:
        """Values that are set, of these configs, by name of the topic or broker; those without any are left out."""
        resources = [ConfigResource(kind, name, dict.fromkeys(keys)) for name in names]
        answer = self.ask(lambda admin: admin.describe_configs(resources), patience) if resources else {}
        found = {
            name: {key: value["value"] for key, value in entries.items() if value["value"]}
            for name, entries in answer.get(kind.lower(), {}).items()
        }
        return {name: entries for name, entries in found.items() if entries}

    def configure(self, kind: str, changes: Mapping[str, Mapping[str, Any]], patience: float | None = None) -> None:
        """Change configs of topics or brokers.

        Raises:
            ClusterError: the cluster refuses.
        """
        resources = [ConfigResource(kind, name, dict(entries)) for name, entries in changes.items()]
        if not resources:
            return
        answer = self.ask(lambda admin: admin.alter_configs(resources, raise_on_unknown=False), patience)
        refused = [(name, text) for name, text in answer.get(kind.lower(), {}).items() if text != "OK"]
        for name, text in refused:
            raise self.connection.failed(f"does not configure {kind.lower()} {name}", _refusal(text))

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _refusal(text: str) -> KafkaError:
    """The error that the client has made a text of."""
    code = re.match(r"\[Error (\d+)\] (?:\w+: )?", text)
    return for_code(int(code[1]))(text[code.end() :]) if code else KafkaError(text)


def _reason(error: type[KafkaError]) -> str:
    """Kafka's reason for a person."""
    return f"Kafka refuses: {reason_of(error())}"
