"""Where events come from, and how Kafka is talked to."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from streaming.amounts import PositiveByteAmount
from streaming.config.kinds import Count, Text


class FilesSource(Struct, frozen=True, forbid_unknown_fields=True, tag="files", tag_field="type"):
    """A folder of JSON-lines files, or of such files compressed as .gz, .bz2 or .zst; each new file is read once.

    A batch reads files up to either limit, bytes counted after decompression. A larger file is read by several batches.
    Behind a URL Spark reads: it takes whole files, and goes by the bytes alone unless the number of files is not the
    default.
    """

    path: Text = ".data/events"
    max_files_per_trigger: Count = 1000
    max_bytes_per_trigger: PositiveByteAmount = PositiveByteAmount("16MiB")


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

    A batch reads so many records at most; their bytes are bounded by the topic's ``max.message.bytes`` alone.
    ``kafka`` says how its brokers are talked to, where that differs from the conf's section ``[kafka]``.
    """

    bootstrap_servers: Text
    topic: Text
    max_offsets_per_trigger: Count = 50_000
    starting_offsets: Text = "earliest"
    kafka: Kafka | None = None
    options: dict[str, str] = field(default_factory=dict)


class DeltaSource(Struct, frozen=True, forbid_unknown_fields=True, tag="delta", tag_field="type"):
    """An append-only Delta table with a string column ``value`` that holds one event a row.

    A batch reads files of the table up to either limit, and one at least, whole.
    """

    path: Text
    max_files_per_trigger: Count = 1
    max_bytes_per_trigger: PositiveByteAmount = PositiveByteAmount("16MiB")


Source = FilesSource | KafkaSource | DeltaSource
