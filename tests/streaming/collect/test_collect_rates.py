"""Rates from a CSV file and from Prometheus: a real HTTP server that answers as its API does."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from streaming.amounts import Duration
from streaming.collect.rates.source import read_rates
from streaming.collect.rates.values import Rate
from streaming.config import CsvRates, PrometheusRates, parse_config
from streaming.errors import ConfigError, InputError
from tests.streaming.prometheus import labels, prometheus, vector

TOKEN = "only-a-test-knows-this-0452"


def test_without_a_source_there_are_none() -> None:
    assert read_rates(None) == {}


def test_a_csv_file_is_read_anew_each_time(tmp_path: Path) -> None:
    source = CsvRates(str(tmp_path / "rates.csv"))
    Path(source.path).write_text("topic,partition,bytes_in,bytes_out\nt,0,10,20.5\nt,1,,0\n", encoding="utf-8-sig")
    assert read_rates(source) == {("t", 0): Rate(10.0, 20.5), ("t", 1): Rate(None, 0.0)}
    Path(source.path).write_text('bytes_out,partition,topic,note\n1e3,0,"a,b",x\n')
    assert read_rates(source) == {("a,b", 0): Rate(None, 1000.0)}
    Path(source.path).write_text("topic,bytes_out\nt,7\n")
    assert read_rates(source) == {("t", None): Rate(None, 7.0)}


WRONG_FILES = {
    "": "line 1: there is no column topic",
    "topic,partition,bytes_in\nt,0,1\nt,one,1\n": "line 3: topic 't', partition 'one' is not a partition",
    "topic,partition,bytes_in\n,0,1\n": "line 2: topic '', partition '0' is not a partition",
    "topic,bytes_in\nt,1\nt,2\n": "line 3: topic t is there twice",
    "topic,partition,bytes_in\nt,0,-1\n": "line 2: bytes_in is '-1', and not a number of bytes a second",
    "topic,partition,bytes_out\nt,0,nan\n": "line 2: bytes_out is 'nan', and not a number of bytes a second",
    "topic,partition\nt,0\nt,0\n": "line 3: partition t-0 is there twice",
    "topic,partition\nt,0\n\xff\n": "is not a CSV file in UTF-8",
}


@pytest.mark.parametrize(("text", "reason"), WRONG_FILES.items())
def test_a_csv_file_that_is_none_is_refused_with_its_line(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "rates.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as caught:
        read_rates(CsvRates(str(path)))
    assert str(caught.value).startswith(f"{path}: {reason}")


def test_a_csv_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"rates.csv: cannot be read: No such file"):
        read_rates(CsvRates(str(tmp_path / "rates.csv")))


def test_prometheus_is_asked_for_each_quantity(tmp_path: Path) -> None:
    """Several series of a partition are added up; one without a value now is left out."""
    answers = {
        "in": vector((labels("0"), "10"), (labels("1"), "NaN"), (labels("2"), "+Inf"), ({"topic": "u"}, "8")),
        "rate(out{a=~'b|c'}[5m])": vector((labels("0", broker="1"), "1.5"), (labels("0", broker="2"), "2")),
    }
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    with prometheus(answers) as (url, asked):
        source = PrometheusRates(f"{url}/base/", "in", "rate(out{a=~'b|c'}[5m])", str(token))
        assert read_rates(source) == {("t", 0): Rate(10.0, 3.5), ("u", None): Rate(8.0)}
    path = "/base/api/v1/query"
    assert asked == [(path, query, f"Bearer {TOKEN}") for query in answers]
    assert TOKEN not in repr(source)


REFUSALS = {
    "an error": (
        400,
        {"status": "error", "errorType": "bad_data", "error": "1:5: parse error: unexpected <op:*>"},
        "query bytes_in: 1:5: parse error: unexpected <op:*>",
    ),
    "no JSON": (502, b"<html>Bad Gateway</html>", "HTTP status 502 Bad Gateway"),
    "something else": (
        200,
        {"a": 1},
        "the response is not one of its HTTP API: Object missing required field `status`",
    ),
    "a redirection": (302, b"", "HTTP status 302 Found"),
    "another type of result": (
        200,
        {"status": "success", "data": {"resultType": "scalar", "result": [1.5, "2"]}},
        "query bytes_in: the result is of type 'scalar', and not an instant vector",
    ),
    "no topic": (
        200,
        vector(({"partition": "1"}, "1")),
        "query bytes_in: the labels {'partition': '1'} name no topic or partition",
    ),
}


@pytest.mark.parametrize(("status", "answer", "reason"), REFUSALS.values(), ids=REFUSALS)
def test_what_prometheus_refuses_is_said_in_a_sentence(tmp_path: Path, status: int, answer: Any, reason: str) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    with prometheus({"in": answer}, status) as (url, asked), pytest.raises(InputError) as caught:
        read_rates(PrometheusRates(url, "in", token_file=str(token)))
    assert str(caught.value).startswith(f"Prometheus at {url} gives no rates: {reason}")
    assert len(asked) == 1


def test_a_prometheus_that_is_not_there_or_hangs(tmp_path: Path) -> None:
    with prometheus({}) as (url, _):
        pass
    with pytest.raises(InputError, match=r"gives no rates: .*Connection refused"):
        read_rates(PrometheusRates(url, "in"))
    with pytest.raises(InputError, match=r"token: cannot be read: No such file"):
        read_rates(PrometheusRates(url, "in", token_file=str(tmp_path / "token")))
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as hangs, pytest.raises(InputError) as caught:
        read_rates(PrometheusRates(f"http://127.0.0.1:{hangs.server_port}", "in", timeout=Duration("100ms")))
    assert str(caught.value).endswith("gives no rates: timed out")


def test_a_token_of_several_lines_is_refused_and_not_shown(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\nmore")
    with pytest.raises(InputError) as caught:
        read_rates(PrometheusRates("http://localhost:1", "in", token_file=str(token)))
    assert str(caught.value) == f"{token}: holds something else than a token"


WRONG_CONFS = {
    'loads = "often"': "'often' is not a duration",
    '[collect.rates]\ntype = "prometheus"\nurl = "localhost:9090"\nbytes_in = "x"': "url is not an address",
    '[collect.rates]\ntype = "prometheus"\nurl = "http://me:secret@h"\nbytes_in = "x"': "neither user and password",
    '[collect.rates]\ntype = "prometheus"\nurl = "http://h"': "a query is needed: bytes_in, bytes_out or both",
    '[collect.rates]\ntype = "csv"\nurl = "http://h"': "unknown field `url`",
    '[collect.capacities]\ndisk = "much"': "'much' is not an amount of bytes",
    "[collect.capacities.brokers.one]\ncpu = 1": "'one' is not a broker id",
    '[collect.capacities.brokers.1]\ndisk = "1 PB"': "'1 PB' is not an amount of bytes",
}


@pytest.mark.parametrize(("text", "reason"), WRONG_CONFS.items())
def test_a_conf_that_cannot_be_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(f"[collect]\n{text}", "x.toml")
    assert reason in str(caught.value)
    assert "secret" not in str(caught.value)
