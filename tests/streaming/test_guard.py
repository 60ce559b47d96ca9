"""Two jobs never write to the same tables."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from streaming.errors import JobError
from streaming.guard import only_writer


def test_a_second_job_is_told_who_the_first_is(tmp_path: Path) -> None:
    program = f"""
        from streaming.guard import only_writer
        with only_writer({str(tmp_path)!r}):
            print("mine", flush=True)
            input()
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "mine\n"
        said = rf"another job writes to these tables \(process {first.pid} on"
        with pytest.raises(JobError, match=said), only_writer(str(tmp_path)):
            pass
        first.kill()
    with only_writer(str(tmp_path)):
        pass


def test_a_folder_that_cannot_be_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JobError, match="the tables cannot be written here"), only_writer(str(tmp_path / "file")):
        pass
