"""Writes the reference pages from the code: ``make reference``. A test fails where they are not what it writes."""

from __future__ import annotations

import re
import types
from collections import Counter
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import click
import msgspec
import pyarrow as pa

from streaming import config
from streaming.amounts import Duration, Written
from streaming.cli import cli
from streaming.events import EVENT_TYPES
from streaming.record.comments import COLUMN_COMMENTS, TABLE_COMMENTS
from streaming.record.schemas import TABLES, Table, sql_type

ROOT: Final = Path(__file__).parents[1]
GENERATED: Final = "<!-- Written by `make reference` from the code. -->\n\n"
SECTIONS: Final[dict[str, type[Any]]] = {
    '`[source]` with `type = "files"`': config.FilesSource,
    '`[source]` with `type = "kafka"`': config.KafkaSource,
    '`[source]` with `type = "delta"`': config.DeltaSource,
    "`[tables]`": config.Tables,
    "`[job]`": config.Job,
    "`[monitoring]`": config.Monitoring,
    "`[policy]`, and `[clusters.NAME]` for one cluster": config.Policy,
    "`[policy.loads]`, and `[clusters.NAME.loads]` for one cluster": config.LoadPolicy,
    "`[kafka]`": config.Kafka,
    "`[collect]`": config.Collect,
    "`[collect.capacities]`": config.Capacities,
    "`[collect.capacities.brokers.ID]`": config.Capacity,
    '`[collect.rates]` with `type = "csv"`': config.CsvRates,
    '`[collect.rates]` with `type = "prometheus"`': config.PrometheusRates,
}


def pages() -> dict[str, str]:
    """Every generated page by its path below ``docs``."""
    return {
        "reference/conf.md": conf_page(),
        "reference/events.md": events_page(),
        "reference/tables.md": tables_page(),
        "reference/commands.md": commands_page(),
        "licences.md": licences_page(),
    }


def type_text(kind: Any) -> str:  # noqa: PLR0911 - one case a kind of type
    """A type as people write it in TOML or JSON."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return type_text(arguments[0])
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(type_text(each) for each in arguments if each is not type(None))
    if origin in (list, tuple):
        return f"list of {type_text(arguments[0])}"
    if origin is dict:
        return "object"
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return "object"
    if isinstance(kind, type) and issubclass(kind, Written):
        return "duration" if issubclass(kind, Duration) else "amount of bytes"
    names = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "anything"}
    return names.get(kind, getattr(kind, "__name__", str(kind)))


def default_text(field: msgspec.structs.FieldInfo) -> str:
    """The default, or that the field is needed."""
    if field.required:
        return "needed"
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if isinstance(value, msgspec.Struct) or value is None or value in ({}, ()):
        return "-"
    shown = list(value) if isinstance(value, tuple) else value
    return f"`{msgspec.json.encode(shown, enc_hook=str).decode()}`"


def _sentences(cls: type[Any]) -> str:
    return re.sub(r"``", "`", re.sub(r"\n +", "\n", (cls.__doc__ or "").strip()))


def _fields(cls: type[Any]) -> str:
    hints = get_type_hints(cls, include_extras=True)
    rows = [
        f"| `{field.name}` | {type_text(hints[field.name])} | {default_text(field)} |"
        for field in msgspec.structs.fields(cls)
    ]
    return "\n".join(["| key | value | default |", "| --- | --- | --- |", *rows])


def conf_page() -> str:
    """Every key of the conf, and the two files that explain them by example."""
    parts = ["# Conf", "A TOML file. Without one, these defaults hold. Unknown keys are refused, with their place."]
    for title, cls in SECTIONS.items():
        parts += [f"## {title}", _sentences(cls), _fields(cls)]
    parts += ["## `[spark]`", "Any setting of Spark's, as text."]
    for name in ("local.toml", "kafka.toml"):
        parts += [f"## conf/{name}", f"```toml\n{(ROOT / 'conf' / name).read_text()}```"]
    return GENERATED + "\n\n".join(parts) + "\n"


def events_page() -> str:
    """Every event type and its fields."""
    common = ("event_id", "cluster_id", "occurred_at")
    parts = [
        "# Events",
        "One JSON object a line. Every event has `type`, `event_id` (unique in its cluster), `cluster_id` and "
        "`occurred_at` (RFC 3339); fields that are not listed are ignored.",
    ]
    for name, cls in EVENT_TYPES.items():
        hints = get_type_hints(cls, include_extras=True)
        rows = [
            f"| `{field.name}` | {type_text(hints[field.name])} | {'yes' if field.required else 'no'} |"
            for field in msgspec.structs.fields(cls)
            if field.name not in common
        ]
        parts += [f"## {name}", _sentences(cls)]
        if rows:
            parts.append("\n".join(["| field | value | needed |", "| --- | --- | --- |", *rows]))
    return GENERATED + "\n\n".join(parts) + "\n"


def tables_page() -> str:
    """Every column of every table."""
    parts = ["# Tables", "Delta tables under `[tables] root`. Times are UTC."]
    for table in TABLES:
        kind = "Rows are only ever added." if table.append_only else "Rows are merged; it can be thrown away."
        rows = [f"| `{name}` | `{kind_}` | {COLUMN_COMMENTS[name]} |" for name, kind_ in _columns(table)]
        body = "\n".join(["| column | type | |", "| --- | --- | --- |", *rows])
        parts += [f"## {table.name}", f"{TABLE_COMMENTS[table.name]} {kind}", body]
    return GENERATED + "\n\n".join(parts) + "\n"


def _columns(table: Table) -> Iterator[tuple[str, str]]:
    for field in table.schema:
        nested = field.type.value_type if pa.types.is_list(field.type) else field.type
        if not pa.types.is_struct(nested):
            yield field.name, sql_type(field.type)
            continue
        yield field.name, "array of struct" if nested is not field.type else "struct"
        for inner in nested:
            yield f"{field.name}.{inner.name}", sql_type(inner.type)


def commands_page() -> str:
    """What every command prints when it is asked for help."""
    parts = ["# Commands", "`-h` prints the same. Exit codes: 0 done, 1 the answer is no, 2 the input cannot be used."]
    group = click.Context(cli, info_name="replica-planner", max_content_width=100, terminal_width=100)
    for name in cli.list_commands(group):
        command = cli.get_command(group, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=group, max_content_width=100, terminal_width=100)
        parts += [f"## {name}", f"```text\n{command.get_help(context)}\n```"]
    return GENERATED + "\n\n".join(parts) + "\n"


def licences_page() -> str:
    """The licences of what a running job needs, from the metadata of what is installed."""
    rows = [f"| {name} | {licence} |" for name, licence in sorted(_runtime().items(), key=lambda row: row[0].lower())]
    parts = [
        "# Licences",
        "Replica Planner is under Apache-2.0. It needs these, under the licences that they name themselves; "
        "versions are locked in `requirements/`.",
        "\n".join(["| package | licence |", "| --- | --- |", *rows]),
        "Spark's own JARs, Delta Lake's and the Kafka connector's are under Apache-2.0.",
    ]
    return GENERATED + "\n\n".join(parts) + "\n"


def _runtime() -> dict[str, str]:
    """Licences of all packages that are locked for a running job, whatever its Python, by name."""
    locked = (ROOT / "requirements/runtime.txt").read_text()
    found = re.findall(r"^([a-z0-9.-]+)==\S+( ;.*)? \\$", locked, re.MULTILINE)
    named = Counter(name for name, _ in found)
    always = {name for name, marker in found if not marker or named[name] > 1}
    return {name: _licence(name) for name in sorted(always)}


_SPDX = {"Apache Software License": "Apache-2.0", "MIT License": "MIT"}
"""Names of older metadata, as newer releases of the same packages give them."""


def _licence(name: str) -> str:
    about = metadata.metadata(name)
    stated = about.get("License-Expression") or ""
    classified = [
        line.rsplit(" :: ", 1)[-1] for line in about.get_all("Classifier") or [] if line.startswith("License")
    ]
    text = (about.get("License") or "").strip().splitlines()
    found = stated or ", ".join(classified) or (text[0] if text else "see its page")
    return _SPDX.get(found, found)


def main() -> None:
    """Write the pages."""
    for path, text in pages().items():
        target = ROOT / "docs" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


if __name__ == "__main__":
    main()
