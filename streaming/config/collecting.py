"""How real clusters are watched, and what is known of them besides."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta, Struct, field

from streaming.amounts import ByteAmount, Duration
from streaming.config.kinds import Text


class Capacity(Struct, frozen=True, forbid_unknown_fields=True):
    """What a broker can take, as far as that is known: bytes, bytes a second, CPU in hundredths of a byte a second."""

    disk: ByteAmount | None = None
    bytes_in: ByteAmount | None = None
    bytes_out: ByteAmount | None = None
    cpu: Annotated[int, Meta(ge=0, le=2**50)] | None = None


class Capacities(Capacity, frozen=True, forbid_unknown_fields=True):
    """What every broker can take, and, by its id, what one broker can take where that is something else."""

    brokers: dict[str, Capacity] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reject names that are no broker ids."""
        for name in self.brokers:
            if not name.isdecimal():
                raise ValueError(f"brokers.{name}: {name!r} is not a broker id")


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
    timeout: Duration = Duration("5s")

    def __post_init__(self) -> None:
        """Reject what could not be asked, and passwords, while file and key are still known."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("url is not an address: write it as in 'http://localhost:9090'")
        if parts.username is not None or parts.query or parts.fragment:
            raise ValueError("url must hold neither user and password nor a query; name a token_file")
        if not (self.bytes_in or self.bytes_out):
            raise ValueError("a query is needed: bytes_in, bytes_out or both")


class Collect(Struct, frozen=True, forbid_unknown_fields=True):
    """How real clusters are watched: how often, and where the last look is kept.

    ``loads`` is how often loads are looked at, which is off without it; ``capacities`` and ``rates`` say what the
    cluster itself does not. Without rates of what is read, ``bytes_out_per_byte_in`` may say how often.
    """

    interval: Duration = Duration("400ms")
    state: Text = ".data/collect"
    loads: Duration | None = None
    bytes_out_per_byte_in: Annotated[float, Meta(ge=0, le=1000)] | None = None
    capacities: Capacities = field(default_factory=Capacities)
    rates: CsvRates | PrometheusRates | None = None
