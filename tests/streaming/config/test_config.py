"""The conf file: defaults, a cluster's own policy, and errors that name file, key and reason."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from streaming.config import FilesSource, KafkaSource, load_config, parse_config
from streaming.errors import ConfigError


def test_the_shipped_conf_is_what_is_built_in() -> None:
    shipped = Path("conf/local.toml").read_text(encoding="utf-8")
    assert parse_config(shipped, "conf/local.toml") == parse_config("", "")


def test_the_kafka_conf_is_read() -> None:
    source = parse_config(Path("conf/kafka.toml").read_text(encoding="utf-8"), "conf/kafka.toml").source
    assert isinstance(source, KafkaSource)
    assert source.topic == "replica-planner-events"


def test_a_cluster_takes_what_it_leaves_out_from_the_general_policy() -> None:
    config = parse_config(
        '[policy]\ngrace = "10m"\nmax_moves = 5\n[clusters.east]\ngrace = "1h"\napproval = ["heal"]\n', "x.toml"
    )
    assert config.policy_for("west").grace.time == timedelta(minutes=10)
    east = config.policy_for("east")
    assert (east.grace.time, east.max_moves, east.approval) == (timedelta(hours=1), 5, ("heal",))


def test_a_cluster_takes_what_it_leaves_out_of_the_loads_from_the_general_policy() -> None:
    config = parse_config('[policy.loads]\nplan = true\nweight = 1\n[clusters.east.loads]\nevery = "5m"\n', "x.toml")
    east, west = (config.policy_for(name).loads for name in ("east", "west"))
    assert (east.plan, east.weight, str(east.every), str(west.every)) == (True, 1.0, "5m", "1h")


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        ("a =", "", "not TOML"),
        ("foo = 1", "", "unknown field `foo`"),
        ('[source]\ntype = "rabbit"', "source.type", "'rabbit'"),
        ('[source]\ntype = "files"\npath = 3', "source.path", "Expected `str`"),
        ('[source]\ntype = "kafka"', "source", "`bootstrap_servers`"),
        ('[job]\ninterval = "soon"', "job.interval", "'soon' is not a duration"),
        ('[policy]\ngrace = "1y"', "policy.grace", "'1y' is not a duration"),
        ('[policy]\nstrategy = "random"', "policy.strategy", "'random'"),
        ("[policy]\nmax_moves = 0", "policy.max_moves", ">= 1"),
        ("[policy.loads]\nsettle = 0.3", "policy.loads", "settle is 0.3 and trigger 0.15"),
        ("[policy.loads]\nweight = 0", "policy.loads.weight", ">= 0.001"),
        ('[policy.loads]\nmax_bytes = "much"', "policy.loads.max_bytes", "'much' is not an amount of bytes"),
        ('[clusters.east.loads]\nevery = "1x"', "clusters.east.loads.every", "'1x' is not a duration"),
        ('[clusters.east]\napproval = ["all"]', "clusters.east.approval[0]", "'all'"),
    ],
)
def test_a_bad_value_is_refused_with_file_key_and_reason(text: str, key: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "conf/x.toml")
    assert str(caught.value).startswith("conf/x.toml: ")
    assert caught.value.key == key
    assert key in str(caught.value)
    assert reason in str(caught.value)


def test_the_conf_is_looked_for_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REPLICA_PLANNER_CONF", raising=False)
    assert load_config().source == FilesSource(".data/events")
    for name in ("conf/local.toml", "env.toml", "given.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f'[source]\ntype = "files"\npath = "{name}"\n', encoding="utf-8")
    assert load_config().source == FilesSource("conf/local.toml")
    monkeypatch.setenv("REPLICA_PLANNER_CONF", "env.toml")
    assert load_config().source == FilesSource("env.toml")
    assert load_config("given.toml").source == FilesSource("given.toml")


def test_a_named_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_config(tmp_path / "nothing.toml")
