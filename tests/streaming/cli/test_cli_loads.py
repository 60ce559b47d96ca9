"""``replan --loads``: a plan by bytes from files, and what it says of files that are wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from streaming.cli import cli

CURRENT = {"version": 1, "partitions": [{"topic": "t", "partition": p, "replicas": [1]} for p in range(4)]}
DISKS = [{"path": "/d1", "limit": 500, "used": 499}, {"path": "/d2", "limit": 500}]
LOADS = {
    "partitions": [{"topic": "t", "partition": p, "size": s, "bytes_in": s} for p, s in enumerate([30, 10, 10, 10])],
    "brokers": [
        {"id": 2, "disk": 1000, "log_dirs": [{"path": "/d1", "limit": 500, "used": 499}, {"path": "/d2", "limit": 500}]}
    ],
}


def planned(folder: Path, loads: object) -> Result:
    for name, document in (("C", CURRENT), ("B", [{"id": 1}, {"id": 2}]), ("L", loads)):
        (folder / f"{name}.json").write_text(json.dumps(document))
    names = {"--current": "C", "--brokers": "B", "--loads": "L", "--out": "P", "--summary": "S"}
    options = [part for option, name in names.items() for part in (option, str(folder / f"{name}.json"))]
    return CliRunner().invoke(cli, ["replan", "--mode", "rebalance", *options])


def test_half_of_the_bytes_go_to_a_named_disk(tmp_path: Path) -> None:
    result = planned(tmp_path, LOADS)
    assert result.exit_code == 0, result.output
    plan = json.loads((tmp_path / "P.json").read_text())
    sizes = [30, 10, 10, 10]
    assert sum(sizes[entry["partition"]] for entry in plan["partitions"]) == 30
    assert {(tuple(e["replicas"]), tuple(e["log_dirs"])) for e in plan["partitions"]} == {((2,), ("/d2",))}
    summary = json.loads((tmp_path / "S.json").read_text())["loads"]
    assert summary["moved_bytes"] == 30
    assert summary["load_after"]["disk"]["maximum"] == 30


@pytest.mark.parametrize(
    ("loads", "said"),
    [
        ({"partitions": [{"topic": "t", "partition": 0, "size": -5}]}, "partition t-0: size is -5"),
        ({"partitions": [{"topic": "t"}]}, "$.partitions[0]: the partition is missing"),
        ({"partitions": [{"topic": "t", "partition": 0, "bytes": 1}]}, "unknown field 'bytes'"),
        ({"brokers": [{"id": 1, "disk": "x"}]}, "$.brokers[0].disk: is 'x', not of type int"),
        ({"brokers": [{"id": 1}, {"id": 1}]}, "$.brokers[1].id: broker 1 is given more than once"),
        ([], "expected an object with partitions and brokers"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(tmp_path: Path, loads: object, said: str) -> None:
    result = planned(tmp_path, loads)
    assert result.exit_code != 0
    assert said in str(result.exception) + result.output
