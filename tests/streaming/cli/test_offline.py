"""Commands on files, without tables."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result
from deltalake import write_deltalake

Run = Callable[..., Result]
COMMAND = Path(sys.executable).parent / "replica-planner"
BROKERS = [{"id": i, "rack": f"r{i % 3}"} for i in range(1, 7)]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "B.json").write_text(json.dumps(BROKERS), encoding="utf-8")
    rows = [{"topic": "t", "partition": p, "replicas": [p % 3 + 1, (p + 1) % 3 + 1]} for p in range(6)]
    (tmp_path / "CURRENT.json").write_text(json.dumps({"version": 1, "partitions": rows}), encoding="utf-8")
    return tmp_path


def test_place_prints_kafkas_layout(run: Run, files: Path) -> None:
    args = ("--brokers", "B.json", "--partitions", 3, "--replication-factor", 2, "--fixed-start-index", 0)
    plain = run("place", *args, "--disable-rack-aware", "--topic", "t", "--start-partition-id", 4)
    partitions = json.loads(plain.stdout)["partitions"]
    assert [(p["partition"], p["replicas"]) for p in partitions] == [(4, [5, 6]), (5, [6, 1]), (6, [1, 3])]
    for strategy in ("striped", "balanced"):
        args = ("--brokers", "B.json", "--partitions", 3, "--replication-factor", 2, "--strategy", strategy)
        assert len(json.loads(run("place", *args).stdout)["partitions"]) == 3


def test_replan_and_verify_work_on_files(run: Run, files: Path) -> None:
    names = ("--current", "CURRENT.json", "--brokers", "B.json")
    args = ("--mode", "rebalance", "--out", "PLAN.json", "--rollback", "BACK.json", "--summary", "SUMMARY.json")
    result = run("replan", *names, *args)
    assert "6 replicas move (proved least)" in result.stderr
    summary = json.loads((files / "SUMMARY.json").read_text(encoding="utf-8"))
    assert (summary["moved_replicas"], summary["lower_bound"], summary["optimal"]) == (6, 6, True)
    assert run("verify", "--plan", "PLAN.json", *names).exit_code == 0
    plan = json.loads((files / "PLAN.json").read_text(encoding="utf-8"))
    back = json.loads((files / "BACK.json").read_text(encoding="utf-8"))
    assert [(p["topic"], p["partition"]) for p in plan["partitions"]] == [
        (p["topic"], p["partition"]) for p in back["partitions"]
    ]
    plan["partitions"][0]["replicas"] = [1, 99]
    (files / "PLAN.json").write_text(json.dumps(plan), encoding="utf-8")
    broken = run("verify", "--plan", "PLAN.json", *names)
    assert broken.exit_code == 1
    assert "not alive" in broken.stdout


def test_a_plan_that_leaves_undone_what_could_be_done_is_unsound_unless_it_had_a_budget(run: Run, files: Path) -> None:
    brokers = json.loads((files / "B.json").read_text(encoding="utf-8"))
    brokers[0]["state"] = "dead"
    (files / "B.json").write_text(json.dumps(brokers), encoding="utf-8")
    (files / "PLAN.json").write_text('{"version": 1, "partitions": []}', encoding="utf-8")
    args = ("verify", "--plan", "PLAN.json", "--current", "CURRENT.json", "--brokers", "B.json")
    result = run(*args)
    assert result.exit_code == 1
    assert result.stdout.startswith("0 partitions checked: unsound\n")
    assert "keeps a lost replica" in result.stdout
    assert run(*args, "--partial").stdout == "0 partitions checked: sound\n"


@pytest.mark.parametrize(
    ("brokers", "said"),
    [
        ("{", "B.json: is not JSON"),
        ("{}", "B.json: $: expected a list of brokers"),
        ("[1]", "B.json: $[0]: expected an object with an id"),
        ('[{"rack": "a"}]', "B.json: $[0]: the id is missing"),
        ('[{"id": 1, "size": 3}]', "B.json: $[0]: unknown field 'size'"),
        ('[{"id": 1, "capacity": -1}]', "B.json: $[0]: broker 1 has capacity -1"),
        ('[{"id": 1}, {"id": 1}]', "[1]"),
        ('[{"id": 1, "rack": "a"}, {"id": 2}]', "rack"),
        ("[]", "0"),
    ],
)
def test_bad_brokers_are_refused_in_one_line(run: Run, tmp_path: Path, brokers: str, said: str) -> None:
    (tmp_path / "B.json").write_text(brokers, encoding="utf-8")
    result = run("place", "--brokers", "B.json", "--partitions", 1, "--replication-factor", 1)
    assert result.exit_code == 2, result.stdout
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not result.stdout


def test_generate_prints_kafkas_two_blocks(run: Run, files: Path) -> None:
    (files / "T.json").write_text('{"topics": [{"topic": "t"}], "version": 1}', encoding="utf-8")
    names = ("--current", "CURRENT.json", "--brokers", "B.json", "--topics-to-move-json-file", "T.json")
    lines = run("generate", *names, "--broker-list", "1,2,4").stdout.splitlines()
    assert [line[:20] for line in lines] == [
        "Current partition re",
        '{"version":1,"partit',
        "",
        "Proposed partition r",
        '{"version":1,"partit',
    ]
    proposed = json.loads(lines[4])["partitions"]
    assert {b for p in proposed for b in p["replicas"]} == {1, 2, 4}
    refused = run("generate", *names, "--broker-list", "1,1")
    assert refused.exit_code == 2
    assert len(refused.stderr.splitlines()) == 1


def test_partition_says_where_a_key_goes_and_how_keys_spread(run: Run, tmp_path: Path) -> None:
    assert run("partition", "--key", "a", "--partitions", 12, "--partitions", 7).stdout == "4\n5\n"
    (tmp_path / "keys.txt").write_text("".join(f"user-{n}\n" for n in range(1000)), encoding="utf-8")
    (skew,) = json.loads(run("partition", "--keys-file", "keys.txt", "--partitions", 6, "--json").stdout)
    assert sum(skew["records"]) == 1000
    assert skew["largest"] == max(skew["records"])
    assert "█" in run("partition", "--keys-file", "keys.txt", "--partitions", 6).stdout
    keys = pa.table({"id": [1, 2], "key": ["a", None]})
    pq.write_table(keys, tmp_path / "keys.parquet")
    args = ("partition", "--keys-file", "keys.parquet", "--partitions", 12, "--json")
    assert json.loads(run(*args, "--column", "key").stdout)[0]["without_key"] == 1
    write_deltalake(tmp_path / "keys", keys)
    table = run("partition", "--keys-file", "keys", "--partitions", 12, "--json", "--column", "key")
    assert json.loads(table.stdout)[0]["without_key"] == 1
    missing = run(*args, "--column", "no")
    assert (missing.exit_code, "has no column 'no': there are id, key" in missing.stderr) == (2, True)


def test_assign_says_who_consumes_what_and_what_changes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "M.json").write_text('{"c1": {"topics": ["t"]}, "c2": {"topics": ["t"]}}', encoding="utf-8")
    (tmp_path / "P.json").write_text('{"t": 5}', encoding="utf-8")
    args = ("--members", "M.json", "--partitions-per-topic", "P.json")
    assert run("assign", "--assignor", "range", *args).stdout == "c1\tt-0 t-1 t-2\nc2\tt-3 t-4\n"
    left = run("assign", "--assignor", "sticky", *args, "--leaving", "c1").stdout
    assert "3 partitions change hands, in 1 rebalances" in left
    refused = run("assign", "--assignor", "range", "--members", "P.json", "--partitions-per-topic", "P.json")
    assert refused.exit_code == 2
    assert len(refused.stderr.splitlines()) == 1


def test_offline_commands_import_no_spark(files: Path) -> None:
    code = (
        "import sys; from streaming.cli import cli;"
        "cli.main(['place', '--brokers', 'B.json', '--partitions', '1', '--replication-factor', '1'],"
        " standalone_mode=False);"
        "sys.exit(bool({'pyspark', 'pyarrow', 'deltalake', 'pandas'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=files, check=False, capture_output=True).returncode == 0
