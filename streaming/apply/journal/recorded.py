"""Reads from the journal what is to be carried out, and checks it."""

from __future__ import annotations

from streaming.apply.journal.tasks import Task, check_may_start, check_not_stopped, task_of, tasks_of, waiting
from streaming.errors import ApplyError
from streaming.history.tables import History
from streaming.planning.soundness import check_version


def read_tasks(history: History, cluster: str, version: int | None = None) -> list[Task]:
    """What a version asks for, or without one all that wait, oldest first; each is checked by itself.

    Raises:
        ApplyError: the version must not be carried out, or a plan on record is unsound.
        HistoryError: the tables cannot be read.
    """
    headlines = history.headlines(cluster)
    check_not_stopped(headlines)
    if version is not None:
        check_may_start(headlines, version)
        tasks = [task_of(history.since(cluster, version))]
    else:
        numbers = waiting(headlines, history.completed(cluster))
        tasks = tasks_of(history.since(cluster, min(numbers)), numbers) if numbers else []
    for task in tasks:
        if task.partitions:
            _check(history, task)
    return tasks


def check_identity(history: History, cluster: str, servers: str, found: str) -> str:
    """See that brokers are those of the cluster; what is to be said where that is not on record.

    Raises:
        ApplyError: ``collect`` saw another Kafka cluster under this name.
    """
    known = history.kafka_id(cluster)
    if known is None:
        return f"no collect has told which Kafka cluster {cluster} is; the one at {servers} is {found}"
    if known != found:
        raise ApplyError(
            f"Kafka at {servers} is cluster {found}, and {cluster} is cluster {known} by what collect saw: "
            f"name the brokers of {cluster}, or let collect watch this one if it has taken its place",
            cluster_id=cluster,
        )
    return ""


def _check(history: History, task: Task) -> None:
    version = task.version
    moving = version.means.moves_replicas
    brokers = history.state(version.cluster_id, version.plan_version).brokers.values() if moving else ()
    check = check_version(version, brokers)
    if not check:
        raise ApplyError(
            f"{task.name} is not carried out: {check.violations[0]}; "
            "replica-planner verify says where the journal was changed",
            cluster_id=version.cluster_id,
            plan_version=version.plan_version,
        )
