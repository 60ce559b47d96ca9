"""Rates from Prometheus' HTTP API."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import urlencode

import msgspec
from msgspec import Struct, field

from streaming.collect.rates.values import QUANTITIES, Rate, Rated, Rates, rate_of, rated_of
from streaming.config import PrometheusRates
from streaming.errors import InputError

_SHOWN: Final = 200
"""Characters of a reason that are shown."""


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


def rates_in_prometheus(source: PrometheusRates) -> Rates:
    """The rates that its queries have now; several series of a partition are added up.

    Raises:
        InputError: it does not answer, or something else than rates.
    """
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
        with urllib.request.build_opener(_Stay).open(request, timeout=source.timeout.seconds) as response:
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


def _series(source: PrometheusRates, name: str, answer: _Answer) -> Iterator[tuple[Rated, float]]:
    """The rates of a query; series that have none now (``NaN``) are left out."""
    if answer.status != "success":
        raise _refused(source, f"query {name}: {answer.error or answer.status}")
    kind = _decoded(source, bytes(answer.data), dict[str, Any]).get("resultType")
    if kind != "vector":
        raise _refused(source, f"query {name}: the result is of type {kind!r}, and not an instant vector")
    for series in _decoded(source, bytes(answer.data), _Data).result:
        rated = rated_of(series.metric.get("topic"), series.metric.get("partition"))
        if rated is None:
            raise _refused(source, f"query {name}: the labels {series.metric} name no topic or partition")
        rate = rate_of(series.value[1])
        if rate is not None:
            yield rated, rate


def _decoded(source: PrometheusRates, text: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError as error:
        raise _refused(source, f"the response is not one of its HTTP API: {error}") from error


def _refused(source: PrometheusRates, reason: str) -> InputError:
    return InputError(f"Prometheus at {source.url} gives no rates: {reason[:_SHOWN]}", path=source.url)
