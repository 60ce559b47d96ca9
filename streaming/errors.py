"""Errors of the job and the command line: one base, each carrying what it is about.

``str(error)`` is one sentence for a person: the place, the value, the reason, and what to do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


class StreamingError(Exception):
    """Base of all that the job and the command line report to a person; it survives the way between processes."""

    def __reduce__(self) -> tuple[Any, ...]:
        """As it is, whatever arguments its own initialiser asks for."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[StreamingError], args: tuple[Any, ...], about: dict[str, Any]) -> StreamingError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(about)
    return error


class JavaError(StreamingError):
    """The Java that Spark would start is missing, does not run, or has a version that Spark cannot use."""

    def __init__(self, message: str, *, executable: Path | None = None, version: str | None = None) -> None:
        super().__init__(message)
        self.executable = executable
        self.version = version


class JarError(StreamingError):
    """A JAR that Spark needs could not be fetched, or is not the one that the manifest describes."""

    def __init__(self, message: str, *, jar: str | None = None, path: Path | None = None, details: str = "") -> None:
        super().__init__(message)
        self.jar = jar
        self.path = path
        self.details = details


class ConfigError(StreamingError):
    """The conf file cannot be read, or a key of it has a value that the job cannot use."""

    def __init__(self, message: str, *, path: str, key: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.key = key


class RejectedEvent(StreamingError):  # noqa: N818 - an answer to the sender, not a fault of the program
    """An event asks for something that cannot be; ``str`` is the reason that is put on record."""


class JobError(StreamingError):
    """The job cannot start or go on."""


class PlannerError(StreamingError):
    """The planner made something that its own check refuses; nothing of it was written."""

    def __init__(self, message: str, *, cluster_id: str) -> None:
        super().__init__(message)
        self.cluster_id = cluster_id


class HistoryError(StreamingError):
    """What was asked for is not in the tables; says what is there instead."""

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message)
        self.path = path


class InputError(StreamingError):
    """A file or an option that a command was given cannot be used."""

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message)
        self.path = path


class ApplyError(StreamingError):
    """A plan is not carried out, or not to its end; says what stands in the way and how the cluster was left."""

    def __init__(self, message: str, *, cluster_id: str = "", plan_version: int | None = None) -> None:
        super().__init__(message)
        self.cluster_id = cluster_id
        self.plan_version = plan_version


class ClusterError(StreamingError):
    """A Kafka cluster cannot be reached, or refuses what it was asked."""

    def __init__(self, message: str, *, bootstrap_servers: str) -> None:
        super().__init__(message)
        self.bootstrap_servers = bootstrap_servers


class RefusedError(ApplyError):
    """A plan does not fit the cluster as it is, and was not begun."""


class IncompleteError(ApplyError):
    """A plan was begun and not all of it is carried out; the rest of the cluster is in order."""


class AnotherClusterError(ClusterError):
    """The brokers at an address belong to another cluster than those that were there before."""
