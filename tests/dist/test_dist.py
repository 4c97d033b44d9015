"""The content of the wheel and the sdist, and faults that the check of it sees."""

import email.message
import hashlib
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("dist_check", ROOT / "scripts/dist/check.py")
check = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(check)

VERSION = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)[1]
UV = ROOT / ".uv" / "bin" / "uv"


def metadata(**changes):
    message = email.message.Message()
    headers = {
        "Name": "estimator-pipelines",
        "License-Expression": "Apache-2.0",
        "License-File": "LICENSE",
        **changes,
    }
    for key, value in headers.items():
        message[key] = value
    for extra in check.EXTRAS:
        message["Provides-Extra"] = extra
    for line in ("numpy>=1.26", "tensorflow<2.22,>=2.16", "rich>=13; extra == 'pipelines'"):
        message["Requires-Dist"] = line
    return message


def test_a_missing_file_and_one_too_many_are_seen():
    files = [*check.MUST, "pipelines/stray.py"]
    assert check.faults_of_files(files, [*check.MUST, "pipelines/runs/run.py"], {"LICENSE"}) == [
        "LICENSE is missing",
        "pipelines/runs/run.py is missing",
        "pipelines/stray.py does not belong into it",
    ]
    assert check.faults_of_files([*check.MUST, "LICENSE"], check.MUST, {"LICENSE"}) == []


def test_a_file_that_git_has_lost_is_seen():
    files = [name for name in check.MUST if not name.endswith(".css")]
    assert check.faults_of_files(files, files, set()) == ["pipelines/report/templates/style.css is missing"]


def test_faults_of_the_metadata_are_seen():
    assert check.faults_of_metadata(metadata()) == []
    (fault,) = check.faults_of_metadata(metadata(Name="other"))
    assert "Name is 'other'" in fault
    more = metadata()
    more["Requires-Dist"] = "pandas"
    (fault,) = check.faults_of_metadata(more)
    assert "the core needs TensorFlow and NumPy only" in fault


CHANGELOG = """# Changelog

## [Unreleased]

## [0.2.0] - 2027-01-31

Faster.

## [0.1.0] - 2026-11-25
"""


def test_a_tagged_commit_has_its_version_and_its_section_in_the_changelog():
    def faults(changelog, *tags_here, version="0.2.0"):
        return check.faults_of_release(version, changelog, ["v0.1.0", *tags_here], tags_here)

    assert faults(CHANGELOG, "v0.2.0", "checked") == []
    assert faults(CHANGELOG, "v0.2.1") == ["the tag is v0.2.1, and the version 0.2.0"]
    for heading in ("## [0.2.0]", "## [0.2] - 2027-01-31", "## [0x2.0] - 2027-01-31"):
        assert faults(CHANGELOG.replace("## [0.2.0] - 2027-01-31", heading), "v0.2.0") == [
            "CHANGELOG.md has no section [0.2.0] with a date"
        ]
    for more in ("## [Unreleased]\n\n### Fixed", "## [Unreleased]\nMore."):
        assert faults(CHANGELOG.replace("## [Unreleased]", more), "v0.2.0") == [
            "CHANGELOG.md has lines under [Unreleased]: move them to [0.2.0]"
        ]


def test_another_commit_may_not_have_the_version_of_a_tag():
    assert check.faults_of_release("0.2.0", "", ["v0.1.0"], []) == []
    assert check.faults_of_release("0.1.0", "", ["v0.1.0"], ["checked"]) == [
        "0.1.0 is the version of another commit (tag v0.1.0): raise it"
    ]


@pytest.mark.slow
@pytest.mark.skipif(not UV.exists(), reason="uv is named by `make setup UV=...`")
def test_the_wheel_and_the_sdist_are_complete_and_the_same_each_time(tmp_path):
    sums = []
    for name in ("one", "two"):
        command = [UV, "build", "--quiet", "--out-dir", tmp_path / name]
        subprocess.run(command, cwd=ROOT, check=True)
        assert check.check(tmp_path / name) == []
        files = sorted((tmp_path / name).glob("*-*"))
        sums.append([(file.name, hashlib.sha256(file.read_bytes()).digest()) for file in files])
    assert sums[0] == sums[1]
    assert [name for name, _ in sums[0]] == [
        f"estimator_pipelines-{VERSION}-py3-none-any.whl",
        f"estimator_pipelines-{VERSION}.tar.gz",
    ]


@pytest.mark.slow
@pytest.mark.skipif(not UV.exists(), reason="uv is named by `make setup UV=...`")
def test_a_file_that_git_does_not_know_is_seen_in_a_build(tmp_path):
    copy = tmp_path / "project"
    subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, copy], check=True)
    (copy / "pipelines" / "stray.py").write_text("")
    (copy / "components" / "py.typed").unlink()
    subprocess.run([UV, "build", "--quiet", "--out-dir", "dist"], cwd=copy, check=True)
    ran = subprocess.run(
        [sys.executable, copy / "scripts/dist/check.py", copy / "dist"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 1
    assert "dist: pipelines/stray.py does not belong into it" in ran.stderr
    assert "dist: sdist: components/py.typed is missing" in ran.stderr
    shutil.rmtree(copy)
