"""``collect`` on the loads of a real cluster: its numbers against what was produced, and against the brokers' disks."""

from __future__ import annotations

import json
import shutil
import signal
import time
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, TopicPartition
from msgspec.structs import replace

from examples.local_kafka import LocalKafka
from streaming.amounts import Duration
from streaming.collect.collector import Collector
from streaming.collect.load_watch import LoadWatch
from streaming.config import Collect, CsvRates, Kafka
from streaming.errors import ClusterError, InputError
from streaming.events import AnyEvent, LoadObserved, decode
from streaming.kafka.connection import Connection
from tests.live_kafka.cluster import PASSWORD, RACKS, alive, wait_until
from tests.live_kafka.planned import RECORD, fill, held
from tests.live_kafka.watched import CLUSTER, Watched, create
from tests.streaming.prometheus import prometheus, vector

pytestmark = pytest.mark.kafka

NEAR = 0.02
"""How far a rate may be from what was written to the disk: the look itself takes a moment."""

_LOOKS = 20


class Loads:
    """A collector that looks at loads whenever it is asked to."""

    def __init__(self, servers: str, folder: Path, **settings: Any) -> None:
        self.servers = servers
        self.settings = Collect(**{"state": str(folder / "collect"), "loads": Duration("1ms")} | settings)
        self.sent: list[bytes] = []
        self.said: list[str] = []
        self.failure: InputError | None = None

    def deliver(self, lines: bytes) -> None:
        self.sent.append(lines)
        if self.failure:
            raise self.failure

    def collector(self) -> Collector:
        loads = partial(LoadWatch, settings=self.settings, deliver=self.deliver, say=self.said.append)
        connection = Connection.to(self.servers, Kafka())
        return Collector(connection, CLUSTER, self.settings.state, self.deliver, loads)

    def observed_at(self) -> datetime:
        """When the last look that was handed over was."""
        found = [decode(line).event for lines in self.sent for line in lines.splitlines()]
        return [event for event in found if isinstance(event, LoadObserved)][-1].occurred_at


@pytest.fixture
def loads(kafka: LocalKafka, tmp_path: Path) -> Loads:
    return Loads(kafka.bootstrap_servers(), tmp_path)


def observed(events: list[AnyEvent]) -> LoadObserved:
    (found,) = (event for event in events if isinstance(event, LoadObserved))
    return found


def looked(collector: Collector) -> list[AnyEvent]:
    """What a look finds; one that is sent on to a broker that has just died fails, and then the next one counts."""
    for _ in range(_LOOKS):
        with suppress(ClusterError):
            return collector.poll()
    return collector.poll()


def by_place(event: LoadObserved) -> dict[str, tuple[int | None, int | None, int | None]]:
    found = {f"{p.topic}-{p.partition}": (p.size, p.bytes_in, p.bytes_out) for p in event.partitions or ()}
    return {place: values for place, values in found.items() if not place.startswith("__")}


def sizes_on_disk(admin: KafkaAdminClient) -> dict[str, int]:
    """The size of the largest replica of each partition."""
    found: dict[str, int] = {}
    for logs in held(admin, *alive(admin)).values():
        for place, size in logs.items():
            found[place] = max(size, found.get(place, 0))
    return found


def test_sizes_rates_and_disks_are_those_of_the_brokers(
    kafka: LocalKafka, admin: KafkaAdminClient, loads: Loads
) -> None:
    create(admin, "t", [1, 2], [2, 3], [4, 5])
    fill(loads.servers, "t", 2, megabytes=3)
    with loads.collector() as collector:
        before = observed(collector.poll())
        assert by_place(before) == {place: (size, None, None) for place, size in sizes_on_disk(admin).items()}
        assert by_place(before)["t-0"][0] > 3_000_000

        fill(loads.servers, "t", 1, megabytes=5)
        time.sleep(1)
        now = observed(collector.poll())
    seconds = (now.occurred_at - before.occurred_at).total_seconds()
    written = {place: size - (by_place(before)[place][0] or 0) for place, size in sizes_on_disk(admin).items()}
    assert written["t-0"] > 5_000_000
    for place, (_, bytes_in, bytes_out) in by_place(now).items():
        assert bytes_in == pytest.approx(written[place] / seconds, rel=NEAR, abs=1)
        assert bytes_out is None

    volume = shutil.disk_usage(kafka.folder)
    for broker in now.brokers or ():
        assert broker.log_dirs is not None
        assert [one.path for one in broker.log_dirs] == [str(path) for path in kafka.brokers[broker.broker_id].log_dirs]
        assert {one.limit for one in broker.log_dirs} == {volume.total}
        assert all(0 < (one.used or 0) < volume.total for one in broker.log_dirs)
    assert [broker.broker_id for broker in now.brokers or ()] == sorted(RACKS)
    assert loads.said == []


def test_what_is_deleted_makes_no_rate_negative(admin: KafkaAdminClient, loads: Loads) -> None:
    """Records of one size come in while others are deleted: the rate is that of the records."""
    create(admin, "t", [1, 2])
    fill(loads.servers, "t", 1, megabytes=2)
    with loads.collector() as collector:
        before = observed(collector.poll())
        fill(loads.servers, "t", 1, megabytes=4)
        admin.delete_records({TopicPartition("t", 0): 30})
        time.sleep(1)
        now = observed(collector.poll())
    seconds = (now.occurred_at - before.occurred_at).total_seconds()
    assert by_place(now)["t-0"][1] == pytest.approx(40 * len(RECORD) / seconds, rel=NEAR)


def test_after_a_restart_rates_go_on_and_nothing_is_told_twice(admin: KafkaAdminClient, loads: Loads) -> None:
    """It ends between the writing down of a look and its delivery, and is started again twice."""
    create(admin, "t", [1, 2])
    with loads.collector() as collector:
        collector.poll()
        fill(loads.servers, "t", 1, megabytes=5)
        loads.failure = InputError("the disk is full", path="x")
        with pytest.raises(InputError, match="the disk is full"):
            collector.poll()
    refused, loads.failure = loads.sent[-1], None
    loads.settings = replace(loads.settings, loads=Duration("1h"))
    for _ in range(2):
        with loads.collector() as collector:
            assert collector.poll() == []  # it is too early for another look
    assert loads.sent[-2:] == [refused, refused]
    assert loads.sent.count(refused) == 2

    before, held_before = loads.observed_at(), sizes_on_disk(admin)["t-0"]
    fill(loads.servers, "t", 1, megabytes=3)
    time.sleep(1)
    loads.settings = replace(loads.settings, loads=Duration("1s"))
    with loads.collector() as collector:
        now = observed(collector.poll())
    seconds = (now.occurred_at - before).total_seconds()
    grown = sizes_on_disk(admin)["t-0"] - held_before
    assert grown > 3_000_000
    assert by_place(now)["t-0"][1] == pytest.approx(grown / seconds, rel=NEAR)


def test_a_broker_and_a_disk_that_fail_are_left_out_and_said_once(
    kafka: LocalKafka, admin: KafkaAdminClient, loads: Loads
) -> None:
    kafka.add_broker(6, "c")
    create(admin, "t", [6, 1], [2, 5], [5, 3])
    fill(loads.servers, "t", 3, megabytes=1)
    with loads.collector() as collector:
        sizes = by_place(observed(collector.poll()))
        assert loads.said == []

        stays, gone = kafka.brokers[6].log_dirs  # the broker lives as long as the first one, which has its metadata
        shutil.rmtree(gone)
        create(admin, "u", *[[6]] * 8)  # half of them would be there
        path = f"log directory {gone} of broker 6 is left out: "
        wait_until(lambda: (collector.poll(), [s for s in loads.said if s.startswith(path)])[1], "the disk has failed")
        found = observed(collector.poll())
        (broker,) = (one for one in found.brokers or () if one.broker_id == 6)
        assert [one.path for one in broker.log_dirs or ()] == [str(stays)]
        assert len([s for s in loads.said if s.startswith(path)]) == 1

        loads.said.clear()
        kafka.kill_broker(5)
        found = observed(looked(collector))
        assert loads.said[0].startswith("broker 5 does not say all that it holds: ")
        assert 5 not in {one.broker_id for one in found.brokers or ()}
        assert by_place(found)["t-1"][:1] == sizes["t-1"][:1]
        for _ in range(3):
            looked(collector)
        assert len(loads.said) == 1
        wait_until(lambda: 5 not in alive(admin), "broker 5 is fenced")
        wait_until(lambda: by_place(observed(looked(collector)))["t-2"][0] == sizes["t-2"][0], "broker 3 leads t-2")
    kafka.unregister(6)


def test_rates_of_a_file_are_told_and_a_wrong_file_stops_nothing(
    admin: KafkaAdminClient, loads: Loads, tmp_path: Path
) -> None:
    create(admin, "t", [1, 2], [2, 3])
    path = tmp_path / "rates.csv"
    path.write_text("topic,partition,bytes_in,bytes_out\nt,0,1000,5000\n")
    loads.settings = replace(loads.settings, rates=CsvRates(str(path)))
    with loads.collector() as collector:
        assert by_place(observed(collector.poll()))["t-0"] == (0, 1000, 5000)
        path.write_text("nonsense")
        assert by_place(observed(collector.poll()))["t-0"] == (0, 0, None)
    assert loads.said == [f"rates are left out: {path}: line 1: there is no column topic"]


def test_the_command_looks_as_often_as_the_conf_says(
    kafka: LocalKafka, admin: KafkaAdminClient, tmp_path: Path
) -> None:
    create(admin, "t", [1, 2])
    fill(kafka.bootstrap_servers(), "t", 1, megabytes=1)
    watched = Watched(tmp_path, kafka.bootstrap_servers())
    watched.conf.write_text(watched.conf.read_text().replace("[collect]", '[collect]\nloads = "1s"'))
    watched.start()
    try:
        wait_until(lambda: len(of_type(watched)) >= 3, "it looks three times")
    finally:
        assert watched.stop() == 0
    moments = [event["occurred_at"] for event in of_type(watched)]
    assert moments == sorted(set(moments))
    sizes = [{p["topic"]: p["size"] for p in event["partitions"]} for event in of_type(watched)]
    assert {one["t"] for one in sizes} == {sizes_on_disk(admin)["t-0"]}
    assert any("loads of 1 partitions and limits of 5 brokers observed; sent" in line for line in watched.said())


def test_killed_and_started_again_its_rates_add_up_to_what_was_written(
    kafka: LocalKafka, admin: KafkaAdminClient, tmp_path: Path
) -> None:
    """No look counts twice, none is missing: rates times seconds are the bytes on the disk."""
    create(admin, "t", [1, 2])
    watched = Watched(tmp_path, kafka.bootstrap_servers())
    watched.conf.write_text(watched.conf.read_text().replace("[collect]", '[collect]\nloads = "1s"'))

    def await_looks(count: int) -> None:
        wait_until(lambda: len({event["event_id"] for event in of_type(watched)}) >= count, f"{count} looks")

    watched.start()
    try:
        await_looks(1)
        for looks in (3, 5, 7):
            fill(watched.servers, "t", 1, megabytes=2)
            await_looks(looks)
            watched.stop(signal.SIGKILL)
            fill(watched.servers, "t", 1, megabytes=1)
            watched.start()
        await_looks(9)
    finally:
        watched.kill()
    events = {event["event_id"]: event for event in of_type(watched)}
    assert len({line for line in watched.lines() if b"load_observed" in line}) == len(events)
    moments = [datetime.fromisoformat(event["occurred_at"]) for event in events.values()]
    seconds = [(later - earlier).total_seconds() for earlier, later in pairwise(moments)]
    assert min(seconds) > 0.99
    rates = [event["partitions"][0].get("bytes_in") for event in events.values()]
    assert rates[0] is None
    written = sum(rate * duration for rate, duration in zip(rates[1:], seconds, strict=True))
    assert written == pytest.approx(sizes_on_disk(admin)["t-0"], rel=NEAR)


def test_prometheus_says_what_is_read_and_its_token_is_written_nowhere(
    kafka: LocalKafka, admin: KafkaAdminClient, tmp_path: Path
) -> None:
    """By topic, as brokers tell it; and what was produced is still seen by looking."""
    create(admin, "t", [1, 2], [2, 3])
    token = tmp_path / "token"
    token.write_text(PASSWORD)
    query = "sum by (topic) (rate(kafka_server_brokertopicmetrics_bytesout_total[5m]))"
    with prometheus({query: vector(({"topic": "t"}, "600"))}) as (url, asked):
        rates = f'[collect.rates]\ntype = "prometheus"\nurl = "{url}"\nbytes_out = "{query}"\ntoken_file = "{token}"'
        watched = Watched(tmp_path, kafka.bootstrap_servers(), rates)
        watched.conf.write_text(watched.conf.read_text().replace("[collect]", '[collect]\nloads = "1s"'))
        watched.start()
        try:
            fill(watched.servers, "t", 1, megabytes=1)
            wait_until(
                lambda: [e for e in of_type(watched) if e["partitions"][0].get("bytes_in")], "it has seen records"
            )
        finally:
            assert watched.stop() == 0
    busy = next(event for event in of_type(watched) if event["partitions"][0].get("bytes_in"))
    assert [p["bytes_out"] for p in busy["partitions"] if p["topic"] == "t"] == [600, 0]
    assert [p["bytes_out"] for p in of_type(watched)[0]["partitions"] if p["topic"] == "t"] == [300, 300]
    assert {credentials for _, _, credentials in asked} == {f"Bearer {PASSWORD}"}
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path != token]
    assert [path for path in written if PASSWORD in path.read_text()] == []
    assert watched.log in written


def of_type(watched: Watched) -> list[dict[str, Any]]:
    return [event for event in map(json.loads, watched.lines()) if event["type"] == "load_observed"]
