"""Checks the contents of the wheel and the sdist: `check.py FOLDER`.

The code in them is what git tracks: a file that somebody forgot to add is missing for everybody else, and one
that lies around does not belong to a release. A tag vX.Y.Z makes a release: of one commit alone, with the
version X.Y.Z and its section in the changelog.
"""

import email.message
import email.parser
import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE = ("components", "estimator_core", "estimator_pipelines.py", "pipelines")
MUST = (
    "components/py.typed",
    "estimator_core/py.typed",
    "estimator_pipelines.py",
    "pipelines/examples/own_data/README.md",
    "pipelines/examples/project/pipeline.toml",
    "pipelines/examples/recommender/recommender.toml",
    "pipelines/examples/taxi/taxi.toml",
    "pipelines/py.typed",
    "pipelines/report/templates/page.html.j2",
    "pipelines/report/templates/style.css",
)
OF_SDIST = {".gitignore", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
EXTRAS = {"boosted-trees", "pipelines", "tpu-check"}


def faults_of_files(files: Iterable[str], tracked: Iterable[str], others: set[str]) -> list[str]:
    """Returns the faults of a list of files."""
    present, expected = set(files), {*tracked, *others}
    return [
        *(f"{name} is missing" for name in sorted({*expected, *MUST} - present)),
        *(f"{name} does not belong into it" for name in sorted(present - expected)),
    ]


def faults_of_metadata(metadata: email.message.Message) -> list[str]:
    """Returns the faults of the metadata."""
    wanted = {"Name": "estimator-pipelines", "License-Expression": "Apache-2.0", "License-File": "LICENSE"}
    faults = [
        f"{key} is {metadata[key]!r}, not {value!r}"
        for key, value in wanted.items()
        if metadata[key] != value
    ]
    if set(metadata.get_all("Provides-Extra", [])) != EXTRAS:
        faults.append(f"the extras are {metadata.get_all('Provides-Extra')}, not {sorted(EXTRAS)}")
    core = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    if sorted(line.split("<")[0].split(">")[0] for line in core) != ["numpy", "tensorflow"]:
        faults.append(f"the core needs TensorFlow and NumPy only, not {core}")
    return faults


def faults_of_release(
    version: str, changelog: str, tags: Iterable[str], tags_here: Iterable[str]
) -> list[str]:
    """Returns the faults of the version and the changelog."""
    releases = [tag for tag in tags_here if re.fullmatch(r"v\d.*", tag)]
    if not releases:
        taken = f"v{version}" in tags
        return [f"{version} is the version of another commit (tag v{version}): raise it"] if taken else []
    faults = [f"the tag is {tag}, and the version {version}" for tag in releases if tag != f"v{version}"]
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.M):
        faults.append(f"CHANGELOG.md has no section [{version}] with a date")
    if re.search(r"^## \[Unreleased\]\n+(?!## )\S", changelog, re.M):
        faults.append(f"CHANGELOG.md has lines under [Unreleased]: move them to [{version}]")
    return faults


def _git(*arguments: str) -> list[str]:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()


def check(folder: pathlib.Path) -> list[str]:
    """Returns the faults of the wheel and the sdist in a folder."""
    tracked = _git("ls-files", *CODE)
    (wheel,), (sdist,) = folder.glob("*-py3-none-any.whl"), folder.glob("*.tar.gz")
    faults = faults_of_release(
        wheel.name.split("-")[1],
        (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
        _git("tag"),
        _git("tag", "--points-at", "HEAD"),
    )
    with zipfile.ZipFile(wheel) as archive:
        info = f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"
        names = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
        of_wheel = {f"{info}/{name}" for name in names}
        faults += faults_of_files(archive.namelist(), tracked, of_wheel)
        text = archive.read(f"{info}/METADATA").decode()
        faults += faults_of_metadata(email.parser.Parser().parsestr(text))
    with tarfile.open(sdist) as archive:
        files = [name.partition("/")[2] for name in archive.getnames()]
        faults += [f"sdist: {fault}" for fault in faults_of_files(files, tracked, OF_SDIST)]
    return faults


if __name__ == "__main__":
    faults = check(pathlib.Path(sys.argv[1]))
    if faults:
        sys.exit("dist: " + "\ndist: ".join(faults))
