"""What is built: the wheel, the list of its parts, and a release that refuses what is not ready."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSION = "1.2.3"


def test_the_wheel_has_both_packages_their_files_and_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
        (scripts,) = (name for name in packed if name.endswith("entry_points.txt"))
        assert "replica-planner = streaming.cli:main" in archive.read(scripts).decode()
    files = {
        str(path.relative_to(ROOT))
        for package in ("placement", "streaming")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files <= packed
    assert "streaming/audit/sql/undone.sql" in packed, "Audit.query finds its queries where the package is installed"
    assert {name.split("/")[0] for name in packed if ".dist-info" not in name} == {"placement", "streaming"}


def test_the_list_of_parts_names_what_is_locked_with_hashes(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    shutil.copy(ROOT / "tools/sbom.sh", tmp_path / "tools")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parents[1])
    subprocess.run(["sh", "tools/sbom.sh"], cwd=tmp_path, check=True, capture_output=True)
    parts = {part["name"]: part for part in json.loads((tmp_path / "dist/sbom.json").read_text())["components"]}
    assert {"numpy", "pyspark", "delta-spark", "deltalake"} <= set(parts)
    assert parts["pyspark"]["version"] == "4.0.5"
    assert parts["pyspark"]["purl"] == "pkg:pypi/pyspark@4.0.5"


def test_the_version_is_that_of_a_release_or_of_the_work_towards_one() -> None:
    """Plans record it, so code that is not released must not bear the number of a release."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    sections = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert version in sections or (version.endswith(".dev0") and version.removesuffix(".dev0") not in sections)


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Tests", "-c", "user.email=tests@example.com"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """A project that may be released."""
    (tmp_path / "tools").mkdir()
    for name in ("release.sh", "system.sh"):
        shutil.copy(ROOT / "tools" / name, tmp_path / "tools")
    (tmp_path / "pyproject.toml").write_text(f'version = "{VERSION}"\n')
    (tmp_path / "CHANGELOG.md").write_text(f"## [{VERSION}] - 2026-01-01\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "ready")
    return tmp_path


def release(folder: Path, version: str, make: str = "true") -> subprocess.CompletedProcess[str]:
    names = ("AUTHOR", "COMMITTER")
    who = {f"GIT_{name}_{what}": "tests@example.com" for name in names for what in ("NAME", "EMAIL")}
    env = {**os.environ, **who, "VERSION": version, "MAKE": make}
    return subprocess.run(["sh", "tools/release.sh"], cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_what_is_ready_is_checked_and_tagged(ready: Path) -> None:
    done = release(ready, VERSION, make="echo make")
    assert done.stdout.splitlines()[0] == "make check test wheel sbom docs"
    assert git(ready, "tag", "--list").split() == [f"v{VERSION}"]
    assert "is there already" in release(ready, VERSION).stderr


@pytest.mark.parametrize(
    ("version", "change", "said"),
    [
        ("", "", "Say which version"),
        (VERSION, "README.md", "not committed"),
        ("1.2.4", "", "pyproject.toml has another version"),
    ],
)
def test_what_is_not_ready_is_refused(ready: Path, version: str, change: str, said: str) -> None:
    if change:
        (ready / change).write_text("changed")
    done = release(ready, version)
    assert done.returncode == 2
    assert said in done.stderr
    assert git(ready, "tag", "--list") == ""


def test_what_fails_its_tests_gets_no_tag(ready: Path) -> None:
    assert release(ready, VERSION, make="false").returncode != 0
    assert git(ready, "tag", "--list") == ""
