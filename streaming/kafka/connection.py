"""One set of settings for every way in which Kafka is talked to: admin client, producer, and Spark's source.

The password is read when a connection is made, from ``sasl_password_file`` or ``$REPLICA_PLANNER_KAFKA_PASSWORD``. It
is in no conf, no repr and no error.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import (
    ClusterAuthorizationFailedError,
    IllegalSaslStateError,
    KafkaError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
    UnsupportedSaslMechanismError,
)

from streaming.config import Kafka, KafkaSource
from streaming.errors import ClusterError, ConfigError

PASSWORD_VARIABLE: Final = "REPLICA_PLANNER_KAFKA_PASSWORD"

_ADDRESS: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:,\[\]]+):\d{1,5}")
_CONNECT_SECONDS: Final = 10
_REQUEST_SECONDS: Final = 10
_RECONNECT_SECONDS: Final = 1
_DUMPED: Final = "failed with response"
"""Marks a text in which the client prints its request and the answer, field by field."""

_LOGIN_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


class Secret(str):
    """A text that no repr shows, also not that of a dictionary which a library writes to its log."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'[hidden]'"


@dataclass(frozen=True, slots=True)
class Connection:
    """A Kafka cluster, and all that it takes to talk to it; ``others`` are addresses that were learned later."""

    bootstrap_servers: str
    settings: Kafka
    password: Secret | None = field(default=None, repr=False)
    others: tuple[str, ...] = ()

    @classmethod
    def to(cls, bootstrap_servers: str, settings: Kafka, environ: Mapping[str, str] = os.environ) -> Connection:
        """Check addresses and files, and read the password; nothing is connected yet.

        Raises:
            ConfigError: an address is none, a file cannot be read, or there is no password where one is needed.
        """
        for address in bootstrap_servers.split(","):
            if not _ADDRESS.fullmatch(address.strip()):
                raise ConfigError(
                    f"{address.strip()!r} is not the address of a broker: write host:port, several separated by commas",
                    path=bootstrap_servers,
                )
        for key in ("ssl_ca_file", "ssl_certificate_file", "ssl_key_file"):
            _read(key, getattr(settings, key))
        return cls(bootstrap_servers, settings, _password(settings, environ))

    @classmethod
    def to_source(cls, source: KafkaSource) -> Connection:
        """The brokers that hold the topic of events.

        Raises:
            ConfigError: as :meth:`to`.
        """
        return cls.to(source.bootstrap_servers, source.kafka or Kafka())

    def through(self, addresses: Iterable[str]) -> Connection:
        """The same cluster, which can be found at these addresses as well."""
        known = [address.strip() for address in self.bootstrap_servers.split(",")]
        return replace(self, others=tuple(address for address in addresses if address not in known))

    def admin(self, timeout: float = _CONNECT_SECONDS, request_timeout: float = _REQUEST_SECONDS) -> KafkaAdminClient:
        """A connected admin client; close it after use.

        Raises:
            ClusterError: no broker answered within ``timeout`` seconds, with the reason.
        """
        return self._connected(KafkaAdminClient, timeout, request_timeout_ms=int(request_timeout * 1000))

    def producer(self, timeout: float = _CONNECT_SECONDS) -> KafkaProducer:
        """A producer that keeps the order of what it is given, with no gaps; close it after use.

        Raises:
            ClusterError: as :meth:`admin`.
        """
        return self._connected(KafkaProducer, timeout, acks="all", enable_idempotence=True, max_block_ms=10_000)

    def _connected(self, client: Any, timeout: float, **options: Any) -> Any:
        reasons = _Reasons()
        log = logging.getLogger("kafka.net.manager")
        log.addHandler(reasons)
        try:
            return client(
                bootstrap_servers=[*(address.strip() for address in self.bootstrap_servers.split(",")), *self.others],
                bootstrap_timeout_ms=int(timeout * 1000),
                reconnect_backoff_max_ms=_RECONNECT_SECONDS * 1000,
                client_id="replica-planner",
                **self._security(),
                **options,
            )
        except KafkaError as error:
            best = reasons.best or error
            advice = "" if isinstance(best, tuple(_LACKING)) else "; check the address, and section [kafka] of the conf"
            raise self.failed("cannot be reached", best, advice) from error
        finally:
            log.removeHandler(reasons)

    def failed(self, what: str, error: BaseException, advice: str = "") -> ClusterError:
        """An error for a person: which cluster, what it did not do, why, and what to do about it."""
        return ClusterError(
            f"Kafka at {self.bootstrap_servers} {what}: {reason_of(error)}{advice}",
            bootstrap_servers=self.bootstrap_servers,
        )

    def _security(self) -> dict[str, Any]:
        settings = self.settings
        return {
            "security_protocol": settings.security_protocol,
            "sasl_mechanism": settings.sasl_mechanism,
            "sasl_plain_username": settings.sasl_username,
            "sasl_plain_password": self.password,
            "ssl_cafile": settings.ssl_ca_file,
            "ssl_certfile": settings.ssl_certificate_file,
            "ssl_keyfile": settings.ssl_key_file,
        }

    def spark_options(self) -> dict[str, str]:
        """The same for Spark's Kafka source: Kafka's own names, after ``kafka.``.

        Raises:
            ConfigError: a file cannot be read.
        """
        settings = self.settings
        options = {"bootstrap.servers": self.bootstrap_servers, "security.protocol": settings.security_protocol}
        if settings.ssl_ca_file:
            options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": settings.ssl_ca_file}
        if settings.ssl_certificate_file and settings.ssl_key_file:
            options["ssl.keystore.type"] = "PEM"
            options["ssl.keystore.certificate.chain"] = _read("ssl_certificate_file", settings.ssl_certificate_file)
            options["ssl.keystore.key"] = _read("ssl_key_file", settings.ssl_key_file)
        if settings.sasl_mechanism:
            shaded = "kafkashaded." if "DATABRICKS_RUNTIME_VERSION" in os.environ else ""
            module = shaded + _LOGIN_MODULES[settings.sasl_mechanism]
            login = f"username={_quoted(settings.sasl_username or '')} password={_quoted(self.password or '')}"
            options |= {"sasl.mechanism": settings.sasl_mechanism, "sasl.jaas.config": f"{module} required {login};"}
        return {f"kafka.{name}": value for name, value in options.items()}


_LACKING: Final[Mapping[type[KafkaError], str]] = {
    ClusterAuthorizationFailedError: "the principal lacks a right on the cluster: collect needs Describe, apply also "
    "Alter, Create, DescribeConfigs and AlterConfigs",
    TopicAuthorizationFailedError: "the principal lacks a right on a topic: collect needs Describe on all of them, "
    "apply also Alter, DescribeConfigs and AlterConfigs, submit Write on the topic of events",
    SaslAuthenticationFailedError: "see sasl_username, its password and sasl_mechanism in section [kafka] of the conf",
    UnsupportedSaslMechanismError: "see sasl_mechanism in section [kafka] of the conf",
    IllegalSaslStateError: "see security_protocol in section [kafka] of the conf",
}
"""Which right or setting is missing where Kafka refuses so; it does not say itself."""


def reason_of(error: BaseException) -> str:
    """What the client says, for a sentence: without the names and numbers of its classes, and without its dumps."""
    reason = re.sub(r"^(\[Error \d+\] )?(\w+: )*", "", " ".join(str(error).split())).rstrip(".")
    if not reason or reason.isdecimal() or reason == type(error).__name__ or _DUMPED in reason:
        reason = ""
    lacking = next((text for kind, text in _LACKING.items() if isinstance(error, kind)), "")
    described = (getattr(error, "description", None) or type(error).__name__).rstrip(".")
    return "; ".join(filter(None, [reason, lacking])) or described


class _Reasons(logging.Handler):
    """Keeps why connections failed: the client only logs that, and raises that time is over."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._found: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the exceptions that the message is about."""
        arguments = record.args if isinstance(record.args, tuple) else ()
        self._found += [argument for argument in arguments if isinstance(argument, BaseException)]

    @property
    def best(self) -> BaseException | None:
        """The first refusal, else the first failure: attempts that are cut short by the end of time come last."""
        refused = [e for e in self._found if isinstance(e, tuple(_LACKING)) or "Handshake" in str(e)]
        return next(iter([*refused, *self._found]), None)


def _password(settings: Kafka, environ: Mapping[str, str]) -> Secret | None:
    if settings.sasl_mechanism is None:
        return None
    if settings.sasl_password_file:
        password = _read("sasl_password_file", settings.sasl_password_file).rstrip("\r\n")
    else:
        password = environ.get(PASSWORD_VARIABLE, "")
    if not password:
        raise ConfigError(
            f"there is no password for {settings.sasl_username}: name a sasl_password_file that holds it in the section"
            f" [kafka] of the conf, or set {PASSWORD_VARIABLE}",
            path=settings.sasl_password_file or PASSWORD_VARIABLE,
            key="kafka.sasl_password_file",
        )
    return Secret(password)


def _read(key: str, path: str | None) -> str:
    if path is None:
        return ""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"kafka.{key}: {path} cannot be read: {reason}", path=path, key=f"kafka.{key}") from error


def _quoted(text: str) -> str:
    """A value of a JAAS entry, which is read as Java reads a string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
