"""Commands about keys and consumers, and Kafka's own reassignment proposal. On files alone, like ``place``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from placement import PlacementError, assign_consumers, partition_for_key
from placement.assignors.what_if import WhatIf, topics_of, what_if
from placement.kafka.generate import PROPOSERS
from placement.kafka.generate import generate as generate_proposal
from placement.kafka.key_skew import key_skew, skew_chart, skew_table
from streaming.cli.main import json_option
from streaming.cli.offline.offline import read_assignment, read_brokers, read_json, read_text
from streaming.errors import InputError

ASSIGNORS = click.Choice(["range", "roundrobin", "sticky", "cooperative-sticky"])


@click.command()
@click.option("--topics-to-move-json-file", "topics_file", metavar="T.json", required=True)
@click.option("--broker-list", metavar="0,2", required=True, help="The brokers to place the topics on.")
@click.option("--current", "current_file", metavar="CURRENT.json", required=True, help="The layout now.")
@click.option("--brokers", "brokers_file", metavar="B.json", required=True, help="The cluster's brokers.")
@click.option("--disable-rack-aware", is_flag=True)
@click.option("--strategy", type=click.Choice(list(PROPOSERS)), default="adminutils", show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Seeds the draw that Kafka makes at random.")
def generate(
    topics_file: str,
    broker_list: str,
    current_file: str,
    brokers_file: str,
    disable_rack_aware: bool,
    strategy: str,
    seed: int,
) -> None:
    """Print what kafka-reassign-partitions --generate prints: the current assignment and a proposed one.

    \b
    Example:
      replica-planner generate --topics-to-move-json-file T.json --broker-list 0,2 --current C.json --brokers B.json
    """
    current, brokers = read_assignment(current_file), read_brokers(brokers_file)
    try:
        proposal = generate_proposal(
            read_text(topics_file),
            broker_list,
            current,
            brokers,
            rack_aware=not disable_rack_aware,
            seed=seed,
            strategy=strategy,
        )
    except PlacementError as error:
        raise InputError(f"{topics_file}: {error}", path=topics_file) from error
    click.echo(proposal.text, nl=False)


@click.command()
@click.option("--key", help="One key: print its partition.")
@click.option("--keys-file", metavar="F", help="One key a line, or a .parquet file or Delta table.")
@click.option("--column", help="The column of a table; the first one without it.")
@click.option("--partitions", "counts", type=click.IntRange(min=1), multiple=True, required=True)
@json_option
def partition(
    key: str | None, keys_file: str | None, column: str | None, counts: tuple[int, ...], as_json: bool
) -> None:
    """Say to which partition Kafka's producer sends a key, or how evenly a file of keys will be spread.

    Give --partitions more than once to compare counts.

    \b
    Examples:
      replica-planner partition --key order-17 --partitions 12
      replica-planner partition --keys-file keys.txt --partitions 12 --partitions 24
    """
    if (key is None) == (keys_file is None):
        raise click.UsageError("give --key or --keys-file")
    if key is not None:
        found = [partition_for_key(key, n) for n in counts]
        click.echo(json.dumps(dict(zip(counts, found, strict=True))) if as_json else "\n".join(map(str, found)))
        return
    skews = key_skew(read_keys(str(keys_file), column), counts)
    if as_json:
        rows = [
            {"partitions": s.partitions, "largest": s.largest, "smallest": s.smallest, "mean": s.mean}
            | {"heaviest_key": s.heaviest_key, "without_key": s.without_key, "records": list(s.records)}
            for s in skews
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    click.echo(skew_table(skews))
    click.echo()
    click.echo(skew_chart(skews[0]))


def read_keys(path: str, column: str | None = None) -> Any:
    """The keys of a text file, or a column of a Parquet file or a Delta table.

    Raises:
        InputError: it cannot be read, or has no such column.
    """
    is_table = Path(path, "_delta_log").is_dir()
    if not is_table and not path.endswith(".parquet"):
        return read_text(path).splitlines()
    import pyarrow as pa
    import pyarrow.dataset as ds

    try:
        if is_table:
            from streaming.history.scanning import dataset

            source = dataset(path)
        else:
            source = ds.dataset(path, format="parquet")
        names = source.schema.names
        chosen = column or names[0]
        if chosen not in names:
            raise InputError(f"{path}: has no column {chosen!r}: there are {', '.join(names)}", path=path)
        return source.to_table(columns=[chosen])[chosen].combine_chunks()
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{path}: cannot be read as a table: {error}", path=path) from error


@click.command()
@click.option("--assignor", type=ASSIGNORS, required=True)
@click.option("--members", "members_file", metavar="M.json", required=True, help='{"c1": {"topics": ["t"]}, ...}')
@click.option("--partitions-per-topic", "topics_file", metavar="P.json", help='{"t": 6, ...}')
@click.option("--current", "current_file", metavar="CURRENT.json", help="A layout instead: gives counts and racks.")
@click.option("--brokers", "brokers_file", metavar="B.json", help="The brokers of that layout.")
@click.option("--joining", "joining_file", metavar="M.json", help="What if these members join?")
@click.option("--leaving", multiple=True, metavar="MEMBER", help="What if this member leaves?")
@json_option
def assign(
    assignor: str,
    members_file: str,
    topics_file: str | None,
    current_file: str | None,
    brokers_file: str | None,
    joining_file: str | None,
    leaving: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say which member of a consumer group consumes what, now and if members join or leave.

    \b
    Examples:
      replica-planner assign --assignor range --members M.json --partitions-per-topic P.json
      replica-planner assign --assignor sticky --members M.json --partitions-per-topic P.json --leaving c1
    """
    members = _object(members_file)
    if topics_file is not None:
        counts, racks = _object(topics_file), None
    elif current_file is not None and brokers_file is not None:
        counts, racks = topics_of(read_assignment(current_file), read_brokers(brokers_file))
    else:
        raise click.UsageError("give --partitions-per-topic, or --current with --brokers")
    joining = _object(joining_file) if joining_file else {}
    if joining or leaving:
        change = what_if(assignor, members, counts, joining=joining, leaving=leaving, partition_racks=racks)
        _print_change(change, as_json=as_json)
    else:
        found = assign_consumers(assignor, members, counts, partition_racks=racks)
        click.echo(json.dumps(found) if as_json else _consumption(found))


def _object(path: str) -> dict[str, Any]:
    return read_json(path, dict, "an object")


def _consumption(found: Any) -> str:
    return "\n".join(f"{member}\t{_listed(partitions)}" for member, partitions in sorted(found.items()))


def _listed(partitions: Iterable[tuple[str, int]]) -> str:
    return " ".join(f"{topic}-{number}" for topic, number in partitions) or "-"


def _print_change(change: WhatIf, *, as_json: bool) -> None:
    if as_json:
        handovers = [{"partition": list(h.partition), "before": h.before, "after": h.after} for h in change.handovers]
        document = {"before": change.before, "after": change.after, "handovers": handovers}
        click.echo(json.dumps(document | {"rebalances": change.rebalances}, indent=2))
        return
    click.echo(f"before\n{_consumption(change.before)}\nafter\n{_consumption(change.after)}")
    click.echo(f"{len(change.handovers)} partitions change hands, in {change.rebalances} rebalances")
