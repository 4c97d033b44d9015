"""The environment of a run: versions, host, and the commit of the working directory."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

from pipelines.errors import counted

_LIBRARIES = (
    "estimator-pipelines",
    "tensorflow",
    "keras",
    "tfx",
    "tensorflow-transform",
    "tensorflow-model-analysis",
    "tensorflow-data-validation",
    "apache-beam",
    "lightgbm",
    "numpy",
)
_GIT_TIMEOUT_SECS = 5.0


def describe_environment(folder: Path | None = None) -> dict[str, str]:
    """Returns facts about the environment, by name; unknown ones are left out.

    Args:
      folder: Folder whose git commit is recorded. Default: the working directory.
    """
    found = {
        "host": platform.node(),
        "system": platform.platform(),
        "processor": f"{platform.machine()}, {counted(os.cpu_count() or 1, 'core')}",
        "python": platform.python_version(),
    }
    for library in _LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    commit = git_commit(folder or Path.cwd())
    if commit:
        found["git commit"] = commit
    return found


def git_commit(folder: Path) -> str:
    """Returns the commit that is checked out, with a note if files differ from it; empty without git.

    Args:
      folder: Folder, in a working tree or not.
    """
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return ""
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return commit if changed == "" else f"{commit}, with changes that are not committed"


def _git(folder: Path, *arguments: str) -> str | None:
    """Returns the output of git; None if it is missing, fails, or takes too long."""
    try:
        result = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT_SECS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None
