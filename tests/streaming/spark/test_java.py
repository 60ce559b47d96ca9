"""Java is looked for where Spark looks, and what is wrong with it is said in one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.errors import JavaError
from streaming.spark.java import find_java


def a_java(home: Path, *, version: str | None, exit_code: int = 0) -> Path:
    """A stand-in for ``java`` that says what a Java of that version says."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    says = f"    java.specification.version = {version}" if version else "segmentation fault"
    executable.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {exit_code}\n", "utf-8")
    executable.chmod(0o755)
    return executable


@pytest.mark.parametrize("version", ["17", "21"])
def test_finds_the_versions_that_spark_runs_on(tmp_path: Path, version: str) -> None:
    executable = a_java(tmp_path, version=version)
    java = find_java({"PATH": str(executable.parent)})
    assert (java.executable, java.version) == (executable, version)


@pytest.mark.parametrize("version", ["1.8", "11", "25"])
def test_refuses_other_versions(tmp_path: Path, version: str) -> None:
    executable = a_java(tmp_path, version=version)
    with pytest.raises(JavaError, match=f"is Java {version}, and Spark needs 17 or 21") as refused:
        find_java({"PATH": str(executable.parent)})
    assert (refused.value.executable, refused.value.version) == (executable, version)


def test_java_home_wins_over_path(tmp_path: Path) -> None:
    on_path = a_java(tmp_path / "on a path", version="17")
    at_home = a_java(tmp_path / "at home", version="21")
    environ = {"PATH": str(on_path.parent), "JAVA_HOME": str(tmp_path / "at home")}
    assert find_java(environ).executable == at_home


def test_a_java_home_without_java_is_not_passed_over(tmp_path: Path) -> None:
    on_path = a_java(tmp_path, version="17")
    with pytest.raises(JavaError, match=r"JAVA_HOME is /no/such/place, but /no/such/place/bin/java cannot be run"):
        find_java({"PATH": str(on_path.parent), "JAVA_HOME": "/no/such/place"})


def test_says_what_to_install_where_there_is_no_java(tmp_path: Path) -> None:
    with pytest.raises(JavaError, match="apt-get install openjdk-17-jre-headless"):
        find_java({"PATH": str(tmp_path)})


def test_a_java_that_does_not_run_is_named(tmp_path: Path) -> None:
    executable = a_java(tmp_path, version=None, exit_code=139)
    with pytest.raises(JavaError, match=r"does not say which version it is \(exit code 139\)") as refused:
        find_java({"PATH": str(executable.parent)})
    assert refused.value.executable == executable


def test_the_command_answers_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "streaming.spark.java"]
    good = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)
    assert (good.returncode, good.stderr, len(good.stdout.splitlines())) == (0, "", 1)
    bad = subprocess.run(
        command, env={**os.environ, "JAVA_HOME": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (bad.returncode, bad.stdout, len(bad.stderr.splitlines())) == (2, "", 1)
