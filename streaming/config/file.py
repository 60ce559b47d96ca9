"""The conf file: read, checked, its defaults filled in; errors name file, key and reason."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from streaming.config.collecting import Collect
from streaming.config.kinds import T, convert
from streaming.config.policy import Policy
from streaming.config.running import Job, Monitoring, Tables
from streaming.config.sources import FilesSource, Kafka, KafkaSource, Source
from streaming.errors import ConfigError

ENVIRONMENT_VARIABLE: Final = "REPLICA_PLANNER_CONF"
DEFAULT_PATH: Final = Path("conf/local.toml")


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    source: Source = field(default_factory=FilesSource)
    kafka: Kafka = field(default_factory=Kafka)
    collect: Collect = field(default_factory=Collect)
    tables: Tables = field(default_factory=Tables)
    job: Job = field(default_factory=Job)
    monitoring: Monitoring = field(default_factory=Monitoring)
    policy: dict[str, Any] = field(default_factory=dict)
    clusters: dict[str, dict[str, Any]] = field(default_factory=dict)
    spark: dict[str, str] = field(default_factory=dict)


class Config(Struct, frozen=True):
    """A conf file that has been read: every value checked, defaults filled in."""

    source: Source
    kafka: Kafka
    collect: Collect
    tables: Tables
    job: Job
    monitoring: Monitoring
    policy: Policy
    clusters: dict[str, Policy]
    spark: dict[str, str]

    def policy_for(self, cluster_id: str) -> Policy:
        """The cluster's own policy, or the general one."""
        return self.clusters.get(cluster_id, self.policy)

    @property
    def folder(self) -> FilesSource | None:
        """The source, if it is a folder whose files the job lists itself: it has that and the checkpoint at hand."""
        if not isinstance(self.source, FilesSource) or "://" in self.source.path + self.job.checkpoint:
            return None
        return self.source


def load_config(path: str | Path | None = None) -> Config:
    """Read the conf file: the given one, ``$REPLICA_PLANNER_CONF``, ``conf/local.toml``, or built-in defaults.

    Raises:
        ConfigError: a named file is missing or unreadable, is not TOML, or has a key or value that is not allowed.
    """
    named = path or os.environ.get(ENVIRONMENT_VARIABLE)
    if not named and not DEFAULT_PATH.exists():
        return parse_config("", "built-in defaults")
    file = Path(named or DEFAULT_PATH)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"{file}: the conf file cannot be read: {reason}", path=str(file)) from error
    return parse_config(text, str(file))


def parse_config(text: str, path: str) -> Config:
    """Check the text of a conf file; ``path`` is used in errors only.

    Raises:
        ConfigError: as in :func:`load_config`.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}", path=path) from error
    file = _convert(document, _File, path, "")
    general = _convert(file.policy, Policy, path, "policy")
    clusters = {
        name: _convert(_overridden(file.policy, overrides), Policy, path, f"clusters.{name}")
        for name, overrides in file.clusters.items()
    }
    return Config(
        source=_with_security(file.source, file.kafka),
        kafka=file.kafka,
        collect=file.collect,
        tables=file.tables,
        job=file.job,
        monitoring=file.monitoring,
        policy=general,
        clusters=clusters,
        spark=file.spark,
    )


def _overridden(general: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """The general policy with what a cluster's own says otherwise, in the section of loads too."""
    policy = {**general, **own}
    if isinstance(general.get("loads"), dict) and isinstance(own.get("loads"), dict):
        policy["loads"] = {**general["loads"], **own["loads"]}
    return policy


def _with_security(source: Source, kafka: Kafka) -> Source:
    """A Kafka source that does not say how its brokers are talked to takes that from the section ``[kafka]``."""
    if isinstance(source, KafkaSource) and source.kafka is None:
        return msgspec.structs.replace(source, kafka=kafka)
    return source


def _convert(document: Any, into: type[T], path: str, prefix: str) -> T:
    try:
        return convert(document, into)
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at `$")
        key = f"{prefix}{where.rstrip('`')}".strip(".")
        raise ConfigError(f"{path}: {key or 'top level'}: {reason}", path=path, key=key) from error
