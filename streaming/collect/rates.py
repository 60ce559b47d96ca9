"""Rates that the admin API does not have, of partitions or of whole topics, from a CSV file or from Prometheus."""

from __future__ import annotations

import csv
import math
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, assert_never
from urllib.parse import urlencode

import msgspec
from msgspec import Struct, field

from streaming.config import CsvRates, PrometheusRates, parse_duration
from streaming.errors import InputError

QUANTITIES: Final = ("bytes_in", "bytes_out")

_SHOWN: Final = 200


class Rate(NamedTuple):
    """Bytes a second that producers write and consumers read; ``None`` is not known."""

    bytes_in: float | None = None
    bytes_out: float | None = None


Rated = tuple[str, int | None]
"""A topic and a partition id, or ``None`` for all partitions of the topic together."""

Rates = Mapping[Rated, Rate]


def read_rates(source: CsvRates | PrometheusRates | None) -> Rates:
    """What the source says now; nothing without one.

    Raises:
        InputError: it cannot be read, or says something else than rates; names place and reason.
    """
    match source:
        case None:
            return {}
        case CsvRates():
            return _from_csv(Path(source.path))
        case PrometheusRates():
            return _from_prometheus(source)
        case _:
            assert_never(source)


def _from_csv(path: Path) -> Rates:
    found: dict[Rated, Rate] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if "topic" not in (rows.fieldnames or ()):
                raise _csv_error(path, 1, "there is no column topic")
            for row in rows:
                rated = _rated(row.get("topic"), row.get("partition"))
                if rated is None:
                    names = f"topic {row.get('topic')!r}, partition {row.get('partition')!r}"
                    raise _csv_error(path, rows.line_num, f"{names} is no partition")
                if rated in found:
                    raise _csv_error(path, rows.line_num, f"{_name(rated)} is there twice")
                found[rated] = Rate(*(_csv_rate(path, rows.line_num, name, row.get(name)) for name in QUANTITIES))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}", path=str(path)) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: is no CSV file in UTF-8: {error}", path=str(path)) from error
    return found


def _rated(topic: str | None, partition: str | None) -> Rated | None:
    """What a row or a series is about; ``None`` where it does not say."""
    number = (partition or "").strip()
    if not topic or (number and not (number.isascii() and number.isdecimal())):
        return None
    return topic, int(number) if number else None


def _name(rated: Rated) -> str:
    topic, partition = rated
    return f"topic {topic}" if partition is None else f"partition {topic}-{partition}"


def _csv_rate(path: Path, line: int, name: str, text: str | None) -> float | None:
    if text is None or not text.strip():
        return None
    rate = _rate(text)
    if rate is None:
        raise _csv_error(path, line, f"{name} is {text!r}, and not a number of bytes a second")
    return rate


def _csv_error(path: Path, line: int, reason: str) -> InputError:
    return InputError(f"{path}: line {line}: {reason}", path=str(path))


def _rate(text: str) -> float | None:
    """A rate, if the text is one: finite, and not below 0."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


class _Series(Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(Struct):
    result_type: str = field(name="resultType")
    result: list[_Series]


class _Answer(Struct):
    """What the HTTP API answers to an instant query."""

    status: str
    data: msgspec.Raw = msgspec.Raw()
    error: str = ""


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: the token is for the address of the conf alone."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Nowhere."""


def _from_prometheus(source: PrometheusRates) -> Rates:
    queries = {name: query for name in QUANTITIES if (query := getattr(source, name))}
    token = _token(source)
    found: dict[str, dict[Rated, float]] = {name: {} for name in QUANTITIES}
    for name, query in queries.items():
        for rated, rate in _series(source, name, _asked(source, query, token)):
            found[name][rated] = found[name].get(rated, 0.0) + rate
    everything = found["bytes_in"] | found["bytes_out"]
    return {rated: Rate(*(found[name].get(rated) for name in QUANTITIES)) for rated in everything}


def _token(source: PrometheusRates) -> str:
    if source.token_file is None:
        return ""
    try:
        token = Path(source.token_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"{source.token_file}: cannot be read: {reason}", path=source.token_file) from error
    if not (token.isascii() and token.isprintable()):  # else the HTTP client would refuse it, and print it
        raise InputError(f"{source.token_file}: holds something else than a token", path=source.token_file)
    return token


def _asked(source: PrometheusRates, query: str, token: str) -> _Answer:
    request = urllib.request.Request(
        f"{source.url.rstrip('/')}/api/v1/query", data=urlencode({"query": query}).encode()
    )
    if token:
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.build_opener(_Stay).open(request, timeout=_seconds(source)) as response:
            text = response.read()
    except urllib.error.HTTPError as error:
        with error:
            text = error.read()
        if not text.lstrip().startswith(b"{"):
            raise _refused(source, f"HTTP status {error.code} {error.reason}") from error
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise _refused(source, str(reason) or type(error).__name__) from error
    answer: _Answer = _decoded(source, text, _Answer)
    return answer


def _seconds(source: PrometheusRates) -> float:
    return parse_duration(source.timeout).total_seconds()


def _series(source: PrometheusRates, name: str, answer: _Answer) -> Iterator[tuple[Rated, float]]:
    """The rates of a query; series that have none now (``NaN``) are left out."""
    if answer.status != "success":
        raise _refused(source, f"query {name}: {answer.error or answer.status}")
    kind = _decoded(source, bytes(answer.data), dict[str, Any]).get("resultType")
    if kind != "vector":
        raise _refused(source, f"query {name}: the result is of type {kind!r}, and not an instant vector")
    for series in _decoded(source, bytes(answer.data), _Data).result:
        rated = _rated(series.metric.get("topic"), series.metric.get("partition"))
        if rated is None:
            raise _refused(source, f"query {name}: the labels {series.metric} name no topic or partition")
        rate = _rate(series.value[1])
        if rate is not None:
            yield rated, rate


def _decoded(source: PrometheusRates, text: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as error:
        raise _refused(source, f"the answer is none of its API: {error}") from error


def _refused(source: PrometheusRates, reason: str) -> InputError:
    return InputError(f"Prometheus at {source.url} gives no rates: {reason[:_SHOWN]}", path=source.url)
