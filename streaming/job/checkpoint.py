"""What a checkpoint says of itself, and whether it belongs to the tables that are there.

Spark numbers the batches of a query in its checkpoint, and the tables have those numbers. If one of the two is
replaced, a number may stand for other lines. The job notes in the checkpoint which tables it has planned into, and how
far; in the tables' commits it notes what each batch has read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import AnalysisException

from streaming.errors import JobError
from streaming.events import Line
from streaming.job.folder_log import NEW_CHECKPOINT
from streaming.job.tables import Tables
from streaming.record.schemas import PLANS, PROGRESS, QUARANTINE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NOTE: Final = "planned.json"
_RECORDS: Final = (PLANS, QUARANTINE, PROGRESS)
_LATEST: Final = 100
"""Commits to look through for a batch that has come again."""


def checkpoint_identity(spark: SparkSession, checkpoint: str) -> str:
    """The id that Spark gave the query when its checkpoint was new.

    Transactions are numbered per checkpoint: with a fresh one the numbers start again, and must not be taken for
    repeats of the old ones.

    Raises:
        JobError: there is none.
    """
    path = f"{checkpoint.rstrip('/')}/metadata"
    line = spark.read.text(path).first()
    if line is None:
        raise JobError(f"{path}: this file of the checkpoint is empty; {NEW_CHECKPOINT}")
    return str(json.loads(line[0])["id"])


def damaged_file(checkpoint: str) -> str:
    """The newest file of Spark's in a checkpoint that cannot be read, with a colon; empty where there is none.

    What Spark says of a damaged file names no file. Behind a URL they are not looked at.
    """
    folder = Path(checkpoint)
    logs = [folder / "offsets", folder / "commits", *folder.glob("sources/[0-9]*")]
    newest = (file for log in logs for file in sorted(log.glob("[0-9]*"), key=_number)[-2:])
    for path in (folder / "metadata", *newest):
        if path.exists() and not _is_whole(path):
            return f"{path}: this file of the checkpoint cannot be read: "
    return ""


def _is_whole(path: Path) -> bool:
    """Whether a file is JSON: all of ``metadata``, and each line of a log after the one with the version."""
    try:
        lines = path.read_bytes().lstrip(b"\0").decode().splitlines()
        entries = lines if path.name == "metadata" else lines[1:]
        for entry in entries:
            json.loads("0" if entry == "-" else entry)  # of a source that has given nothing yet
    except (OSError, ValueError):
        return False
    return bool(entries)


def _number(path: Path) -> int:
    return int(path.name.partition(".")[0])


def check_tables(spark: SparkSession, tables: Tables, checkpoint: str) -> dict[str, str]:
    """See that the tables are those that the checkpoint was planned into; their ids, by name.

    Raises:
        JobError: they are others.
    """
    ids = {table.name: tables.identity(spark, table) for table in _RECORDS}
    noted = _read(spark, checkpoint)
    others = [name for name, known in noted["tables"].items() if ids.get(name, known) != known] if noted else []
    if others:
        raise JobError(
            f"{tables.root}: {' and '.join(others)} {'is' if len(others) == 1 else 'are'} not what the checkpoint "
            f"{checkpoint} was planned into; nothing was written: put the tables of then back, or {NEW_CHECKPOINT}"
        )
    return ids


def check_reached(spark: SparkSession, tables: Tables, checkpoint: str, ids: Mapping[str, str], reached: int) -> None:
    """See that the tables with these ids have all that the checkpoint has planned into them.

    Args:
        reached: the last batch of the checkpoint's query of which the tables know; -1 where there is none.

    Raises:
        JobError: they were set back.
    """
    noted = _read(spark, checkpoint)
    if noted is not None and noted["batch"] > reached:
        raise JobError(
            f"{tables.root}: the checkpoint {checkpoint} has planned up to batch {noted['batch']}, of which these "
            f"tables have {f'none after {reached}' if reached >= 0 else 'none'}; nothing was written: "
            f"{NEW_CHECKPOINT}"
        )
    if noted is None or "://" in checkpoint:
        note(spark, checkpoint, ids, reached)


def note(spark: SparkSession, checkpoint: str, ids: Mapping[str, str], batch: int) -> None:
    """Note up to which batch the tables with these ids know what the checkpoint has planned."""
    text = json.dumps({"tables": dict(ids), "batch": batch})
    if "://" in checkpoint:
        spark.createDataFrame([(text,)], "value string").coalesce(1).write.mode("overwrite").text(_path(checkpoint))
        return
    written = Path(f"{_path(checkpoint)}.new")
    written.write_text(text, encoding="utf-8")
    written.replace(_path(checkpoint))


def _read(spark: SparkSession, checkpoint: str) -> Any:
    try:
        if "://" not in checkpoint:
            text = Path(_path(checkpoint)).read_text(encoding="utf-8")
        else:
            row = spark.read.text(_path(checkpoint)).first()
            text = "null" if row is None else str(row[0])
        return json.loads(text)
    except (FileNotFoundError, AnalysisException):
        return None
    except ValueError as error:
        raise JobError(f"{_path(checkpoint)}: this file is damaged: {error}; {NEW_CHECKPOINT}") from error


def _path(checkpoint: str) -> str:
    return f"{checkpoint.rstrip('/')}/{_NOTE}"


def digest_of(lines: Iterable[Line], parts: str) -> str:
    """What a batch read: a digest of its lines, and of the ``parts`` of files that it names."""
    content = b"\n".join(line.raw for line in lines)
    return sha256(content + parts.encode()).hexdigest()[:32]


def check_repeated(spark: SparkSession, tables: Tables, app_id: str, batch_id: int, read: str, *, empty: bool) -> None:
    """See that a batch whose number the tables know has read what it read then.

    Raises:
        JobError: it has read something else: a part of the checkpoint was deleted, and Spark numbers batches anew.
    """
    found = []
    for table in _RECORDS:
        for commit in tables.commits(spark, table, _LATEST):
            known = json.loads(commit["userMetadata"] or "{}")
            if (known.get("app"), known.get("batch")) == (app_id, batch_id):
                found.append(known.get("read", read))  # earlier releases did not note it
    if any(known != read for known in found) or not (found or empty):
        raise JobError(
            f"{tables.root}: these tables have a batch {batch_id} of this checkpoint that has read something else, or "
            f"later ones; parts of the checkpoint are gone or of another time. Nothing was written: {NEW_CHECKPOINT}"
        )
