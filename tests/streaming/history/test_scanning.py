"""Local Parquet files read by the class behind pyarrow's ``ParquetFile``, which is no public name of pyarrow."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from streaming.history.scanning import read_files

MOVE = pa.struct([("topic", pa.string()), ("after", pa.list_(pa.int32()))])
ROWS = pa.table(
    {
        "version": pa.array([1, 2, 3], pa.int64()),
        "moves": pa.array([[{"topic": "t", "after": [1, 2]}], [], None], pa.list_(MOVE)),
        "note": pa.array(["a", None, "c"]),
    }
)


def test_reads_what_the_public_reader_reads(tmp_path: Path) -> None:
    """A new pyarrow comes with a new cap in pyproject.toml, and with this."""
    files = [str(tmp_path / "one.parquet"), str(tmp_path / "two.parquet")]
    pq.write_table(ROWS, files[0], row_group_size=1)
    pq.write_table(ROWS.slice(1), files[1], compression="zstd")
    expected = pa.concat_tables([pq.ParquetFile(file).read() for file in files])
    assert read_files(files, ROWS.schema).equals(expected)


def test_reads_single_fields_of_structs_in_lists(tmp_path: Path) -> None:
    file = str(tmp_path / "one.parquet")
    pq.write_table(ROWS, file)
    topics = pa.schema([("moves", pa.list_(pa.struct([("topic", pa.string())])))])
    assert read_files([file], topics).to_pydict() == {"moves": [[{"topic": "t"}], [], None]}


def test_what_a_file_lacks_is_null_for_as_many_rows_as_it_has(tmp_path: Path) -> None:
    file = str(tmp_path / "one.parquet")
    pq.write_table(ROWS, file)
    assert read_files([file], pa.schema([("wave", pa.int32())])).to_pydict() == {"wave": [None, None, None]}
