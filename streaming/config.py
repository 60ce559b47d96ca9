"""The conf file: what it may say, its defaults, and errors that name file, key and reason."""

from __future__ import annotations

import os
import re
import tomllib
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct, field

from streaming.errors import ConfigError

ENVIRONMENT_VARIABLE: Final = "REPLICA_PLANNER_CONF"
DEFAULT_PATH: Final = Path("conf/local.toml")

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_BYTE_UNITS: Final = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_BYTES: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(KB|MB|GB|TB)")
_LONGEST: Final = timedelta(days=3650)

Text = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=1)]
BrokerId = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Gated = Literal["topics", "heal", "rebalance", "replication_factor", "restore"]


@lru_cache(maxsize=64)
def parse_duration(text: str) -> timedelta:
    """Read a duration such as ``500ms``, ``30 s``, ``30m``, ``2h`` or ``7d``.

    Raises:
        ValueError: not a number with one of these units, or longer than ten years.
    """
    match = _DURATION.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text!r} is not a duration: write a number and ms, s, m, h or d, as in '30m'")
    seconds = float(match[1]) * _UNITS[match[2]]
    if seconds > _LONGEST.total_seconds():
        raise ValueError(f"{text!r} is longer than ten years")
    return timedelta(seconds=seconds)


def parse_bytes(text: str) -> int:
    """Read an amount of bytes such as ``512MB`` or ``2GB``.

    Raises:
        ValueError: not a number with one of these units.
    """
    match = _BYTES.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text!r} is no amount of bytes: write a number and KB, MB, GB or TB, as in '1GB'")
    return int(float(match[1]) * _BYTE_UNITS[match[2]])


class FilesSource(Struct, frozen=True, forbid_unknown_fields=True, tag="files", tag_field="type"):
    """A folder of JSON-lines files; each new file is read once."""

    path: Text = ".data/events"
    max_files_per_trigger: Count | None = None


class Kafka(Struct, frozen=True, forbid_unknown_fields=True):
    """How Kafka's brokers are talked to. Files are PEM; the password is in a file or the environment, never here."""

    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    sasl_username: Text | None = None
    sasl_password_file: Text | None = None
    ssl_ca_file: Text | None = None
    ssl_certificate_file: Text | None = None
    ssl_key_file: Text | None = None

    def __post_init__(self) -> None:
        """Reject settings that do not go together, while file and key are still known."""
        sasl, tls = self.security_protocol.startswith("SASL"), self.security_protocol.endswith("SSL")
        if sasl and not (self.sasl_mechanism and self.sasl_username):
            raise ValueError(f"{self.security_protocol} needs sasl_mechanism and sasl_username")
        if not sasl and (self.sasl_mechanism or self.sasl_username or self.sasl_password_file):
            raise ValueError(f"{self.security_protocol} takes no sasl_ settings")
        if not tls and (self.ssl_ca_file or self.ssl_certificate_file or self.ssl_key_file):
            raise ValueError(f"{self.security_protocol} takes no ssl_ settings")
        if (self.ssl_certificate_file is None) != (self.ssl_key_file is None):
            raise ValueError("ssl_certificate_file and ssl_key_file go together")


class KafkaSource(Struct, frozen=True, forbid_unknown_fields=True, tag="kafka", tag_field="type"):
    """A Kafka topic whose values are events; key it by cluster so that each cluster keeps its order.

    ``kafka`` says how its brokers are talked to, where that differs from the conf's section ``[kafka]``.
    """

    bootstrap_servers: Text
    topic: Text
    max_offsets_per_trigger: Count | None = None
    starting_offsets: Text = "earliest"
    kafka: Kafka | None = None
    options: dict[str, str] = field(default_factory=dict)


class DeltaSource(Struct, frozen=True, forbid_unknown_fields=True, tag="delta", tag_field="type"):
    """An append-only Delta table with a string column ``value`` that holds one event a row."""

    path: Text
    max_files_per_trigger: Count | None = None


Source = FilesSource | KafkaSource | DeltaSource


class Tables(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the Delta tables are, a folder or a storage URL, and for how long they must answer questions of the past.

    The audit window is set when a table is created; the journal itself is never shortened.
    """

    root: Text = ".data/tables"
    audit_window: str = "90d"

    def __post_init__(self) -> None:
        """Reject durations that cannot be read, while file and key are still known."""
        parse_duration(self.audit_window)

    @property
    def window(self) -> timedelta:
        """How far back Delta's own time travel reaches."""
        return parse_duration(self.audit_window)


class Job(Struct, frozen=True, forbid_unknown_fields=True):
    """How the streaming query runs.

    ``memory`` bounds the cluster states that the driver keeps; others are read again when they are needed. A batch
    whose events concern at least ``executors_from`` partitions, in several clusters, is planned on Spark's executors.
    """

    checkpoint: Text = ".data/checkpoint"
    trigger: Literal["processing-time", "available-now"] = "processing-time"
    interval: str = "1s"
    projection_interval: str = "5s"
    maintenance_interval: str = "1d"
    memory: str = "1GB"
    executors_from: Count = 200_000

    def __post_init__(self) -> None:
        """Reject durations that cannot be read, while file and key are still known."""
        parse_duration(self.interval)
        parse_duration(self.projection_interval)
        parse_duration(self.maintenance_interval)
        parse_bytes(self.memory)


class Monitoring(Struct, frozen=True, forbid_unknown_fields=True):
    """How the job is watched: what its log looks like, who may read its numbers, and where its heartbeat is.

    Prometheus is served where a port is named. The heartbeat is a file; without a name it is ``.heartbeat`` beside the
    tables, if those are in a folder.
    """

    log: Literal["text", "json"] = "text"
    metrics_port: Annotated[int, Meta(ge=0, le=65535)] | None = None
    metrics_address: Text = "127.0.0.1"
    metrics_interval: str = "30s"
    heartbeat: Text | None = None

    def __post_init__(self) -> None:
        """Reject durations that cannot be read, while file and key are still known."""
        parse_duration(self.metrics_interval)


class Capacity(Struct, frozen=True, forbid_unknown_fields=True):
    """What a broker can take, as far as that is known: bytes, bytes a second, CPU in hundredths of a byte a second."""

    disk: str | None = None
    bytes_in: str | None = None
    bytes_out: str | None = None
    cpu: Annotated[int, Meta(ge=0, le=2**50)] | None = None

    def __post_init__(self) -> None:
        """Reject amounts that cannot be read, while file and key are still known."""
        for amount in (self.disk, self.bytes_in, self.bytes_out):
            if amount is not None:
                parse_bytes(amount)


class Capacities(Capacity, frozen=True, forbid_unknown_fields=True):
    """What every broker can take, and, by its id, what one broker can take where that is something else."""

    brokers: dict[str, Capacity] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reject names that are no broker ids."""
        super().__post_init__()
        for name in self.brokers:
            if not name.isdecimal():
                raise ValueError(f"brokers.{name}: {name!r} is no broker id")


class CsvRates(Struct, frozen=True, forbid_unknown_fields=True, tag="csv", tag_field="type"):
    """A CSV file with the columns topic, partition, bytes_in and bytes_out, read anew at every look.

    A row without a partition is about the whole topic.
    """

    path: Text


class PrometheusRates(Struct, frozen=True, forbid_unknown_fields=True, tag="prometheus", tag_field="type"):
    """Prometheus' HTTP API, and a query for each quantity, in bytes a second by ``topic`` and ``partition``.

    Without the label ``partition`` it is that of the whole topic. A bearer token is in ``token_file``, never here.
    """

    url: Text
    bytes_in: Text | None = None
    bytes_out: Text | None = None
    token_file: Text | None = None
    timeout: str = "5s"

    def __post_init__(self) -> None:
        """Reject what could not be asked, and passwords, while file and key are still known."""
        parse_duration(self.timeout)
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("url is no address: write it as in 'http://localhost:9090'")
        if parts.username is not None or parts.query or parts.fragment:
            raise ValueError("url must hold neither user and password nor a query; name a token_file")
        if not (self.bytes_in or self.bytes_out):
            raise ValueError("a query is needed: bytes_in, bytes_out or both")


class Collect(Struct, frozen=True, forbid_unknown_fields=True):
    """How real clusters are watched: how often, and where the last look is kept.

    ``loads`` is how often loads are looked at, which is off without it; ``capacities`` and ``rates`` say what the
    cluster itself does not. Without rates of what is read, ``bytes_out_per_byte_in`` may say how often.
    """

    interval: str = "400ms"
    state: Text = ".data/collect"
    loads: str | None = None
    bytes_out_per_byte_in: Annotated[float, Meta(ge=0, le=1000)] | None = None
    capacities: Capacities = field(default_factory=Capacities)
    rates: CsvRates | PrometheusRates | None = None

    def __post_init__(self) -> None:
        """Reject durations that cannot be read, while file and key are still known."""
        parse_duration(self.interval)
        if self.loads is not None:
            parse_duration(self.loads)


class KeepOff(Struct, frozen=True, forbid_unknown_fields=True):
    """Topics, as a pattern, and the brokers that are not for them."""

    topics: Text
    brokers: tuple[BrokerId, ...]


class LoadPolicy(Struct, frozen=True, forbid_unknown_fields=True):
    """What is made of observed loads. They are recorded in any case; ``plan`` makes heal and rebalance go by them.

    ``weight`` and ``step`` say how an observation becomes a recorded value. Limits of traffic and CPU are for brokers
    of which no limit was observed; of an observed disk plans fill at most the fraction ``disk_fill``.

    ``move_cost`` is what a copy counts besides its own bytes. Topics that ``keep_off`` names get no replica on the
    brokers that it names with them, and a rebalance takes them away from there.
    """

    plan: bool = False
    every: str = "1h"
    weight: Annotated[float, Meta(ge=0.001, le=1)] = 0.2
    step: Annotated[float, Meta(ge=0.0001, le=0.5)] = 0.01
    on_skew: Literal["nothing", "rebalance"] = "nothing"
    trigger: float = 0.15
    settle: float = 0.09
    exact_counts: bool = False
    max_bytes: str | None = None
    disk_fill: Annotated[float, Meta(gt=0, le=1)] = 0.85
    bytes_in_limit: str | None = None
    bytes_out_limit: str | None = None
    cpu_limit: Annotated[int, Meta(ge=0, le=2**50)] | None = None
    move_cost: str | None = None
    keep_off: tuple[KeepOff, ...] = ()

    def __post_init__(self) -> None:
        """Reject what cannot be read, and bands that no broker could be in, while file and key are still known."""
        parse_duration(self.every)
        for amount in (self.max_bytes, self.bytes_in_limit, self.bytes_out_limit, self.move_cost):
            if amount is not None:
                parse_bytes(amount)
        if not 0 < self.settle <= self.trigger < 1:
            raise ValueError(
                f"settle is {self.settle} and trigger {self.trigger}: both must be above 0 and below 1, "
                "and settle at most trigger"
            )

    @property
    def least_interval(self) -> timedelta:
        """How far apart two observations are at least."""
        return parse_duration(self.every)

    def closed_to(self, topic: str) -> frozenset[int]:
        """The brokers that a topic is kept off; none where plans do not go by load."""
        named = (one.brokers for one in self.keep_off if self.plan and fnmatchcase(topic, one.topics))
        return frozenset(broker for brokers in named for broker in brokers)


class Policy(Struct, frozen=True, forbid_unknown_fields=True):
    """What the planner does for a cluster, recorded with every plan that it makes."""

    strategy: Literal["balanced", "adminutils", "striped"] = "balanced"
    default_partitions: Count = 1
    default_replication_factor: Count = 1
    on_failed: Literal["heal", "nothing"] = "heal"
    on_decommissioned: Literal["heal", "nothing"] = "heal"
    on_unregistered: Literal["heal", "nothing"] = "heal"
    on_joined: Literal["nothing", "rebalance"] = "nothing"
    on_drift: Literal["adopt", "report", "restore"] = "adopt"
    grace: str = "30m"
    settle: str = "30s"
    min_insync_replicas: Count = 1
    wave_moves: Count = 5
    max_moves: Count | None = None
    exclude_topics: tuple[str, ...] = ()
    exclude_brokers: tuple[BrokerId, ...] = ()
    approval: tuple[Gated, ...] = ("rebalance",)
    loads: LoadPolicy = field(default_factory=LoadPolicy)

    def __post_init__(self) -> None:
        """Reject durations that cannot be read, while file and key are still known."""
        parse_duration(self.grace)
        parse_duration(self.settle)

    def closed_to(self, topic: str) -> frozenset[int]:
        """The brokers that get no replica of a topic."""
        return self.loads.closed_to(topic).union(self.exclude_brokers)

    @property
    def grace_period(self) -> timedelta:
        """How long a failed broker may stay away before its replicas are placed elsewhere."""
        return parse_duration(self.grace)

    @property
    def settle_time(self) -> timedelta:
        """How long a burst of joins or failures must be quiet before one plan answers all of it."""
        return parse_duration(self.settle)

    def to_json(self) -> str:
        """The canonical text that is recorded with each plan."""
        return msgspec.json.encode(self, order="sorted").decode()


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


class Config(Struct, frozen=True, dict=True):
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

    @cached_property
    def interval(self) -> timedelta:
        """The time between two micro-batches."""
        return parse_duration(self.job.interval)


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


def _convert(document: Any, into: Any, path: str, prefix: str) -> Any:
    try:
        return msgspec.convert(document, into)
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at `$")
        key = f"{prefix}{where.rstrip('`')}".strip(".")
        raise ConfigError(f"{path}: {key or 'top level'}: {reason}", path=path, key=key) from error
