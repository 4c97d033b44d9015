"""The environment of a run: versions, host, and the commit of the working directory."""

import contextlib
import os
import platform
import subprocess
import tempfile
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
_GIT_PLACES = ("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")
"""Variables that git sets for its hooks; they would replace the folder that is asked about."""
_CHANGED = ", with changes that are not committed"


def describe_environment(folder: Path | None = None) -> dict[str, str]:
    """Returns facts about the environment, by name; unknown ones are left out."""
    facts = {
        "host": platform.node(),
        "system": platform.platform(),
        "processor": f"{platform.machine()}, {counted(os.cpu_count() or 1, 'core')}",
        "python": platform.python_version(),
    }
    for library in _LIBRARIES:
        try:
            facts[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    commit = git_commit(folder or Path.cwd())
    if commit:
        facts["git commit"] = commit
    return facts


def git_commit(folder: Path) -> str:
    """Returns the commit that is checked out, with a note if files differ from it; empty without git.

    No program that the repository's own configuration or hooks name is run.
    """
    questions = ("HEAD", "--show-toplevel", "--git-path", "objects", "--git-path", "index")
    answers = (_git(folder, "rev-parse", *questions, "--show-object-format") or "").split("\n")
    if not answers[0]:
        return ""
    is_changed = None
    if len(answers) == 5:  # else there is a line break in a path
        with contextlib.suppress(OSError):
            is_changed = _is_changed(folder, *answers)
    if is_changed is None:
        return f"{answers[0]}; git cannot tell whether files differ from it"
    return f"{answers[0]}{_CHANGED if is_changed else ''}"


def _is_changed(
    folder: Path, commit: str, top: str, objects: str, index: str, object_format: str
) -> bool | None:
    """Returns whether files of a working tree differ from its commit; None if git cannot tell."""
    with tempfile.TemporaryDirectory(prefix="pipelines-git-") as empty:
        # `git status` runs hooks, and the programs that `.git/config` names: core.fsmonitor, filters, a fetch
        # of missing objects. In an archive that somebody else has packed they can be anything, so git gets
        # an empty repository that uses the objects and the index of the real repository.
        for name in ("refs", "objects"):
            Path(empty, name).mkdir()
        Path(empty, "HEAD").write_text(f"{commit}\n")
        Path(empty, "config").write_text(
            # Not all file systems keep the mode: that alone is not a change.
            "[core]\n repositoryFormatVersion = 1\n fileMode = false\n"
            f"[extensions]\n objectFormat = {object_format}\n"
        )
        environment = {
            "GIT_DIR": empty,
            "GIT_WORK_TREE": top,
            "GIT_OBJECT_DIRECTORY": os.path.abspath(folder / objects),
            "GIT_INDEX_FILE": os.path.abspath(folder / index),
            "GIT_OPTIONAL_LOCKS": "0",  # leaves the index as it is
        }
        # git would use the configuration of a submodule, so submodules are compared separately.
        options = ("--porcelain", "--untracked-files=no", "--ignore-submodules=dirty")
        changes = _git(Path(top), "status", *options, **environment)
        files = _git(Path(top), "ls-files", "--stage", "-z", **environment)
    if changes is None or files is None:
        return None
    submodules = [line.split("\t", 1)[1] for line in files.split("\0") if line.startswith("160000")]
    real_top = Path(os.path.realpath(top))
    return bool(changes) or any(
        git_commit(real_top / name).endswith(_CHANGED)
        for name in submodules
        # A link could lead back to this working tree, and so would a submodule without a `.git`.
        if os.path.realpath(real_top / name / ".git") == str(real_top / name / ".git")
        and (real_top / name / ".git").exists()
    )


def _git(folder: Path, *arguments: str, **environment: str) -> str | None:
    """Returns the output of git; None if it is missing, fails, or takes too long."""
    inherited = {name: value for name, value in os.environ.items() if name not in _GIT_PLACES}
    try:
        result = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=_GIT_TIMEOUT_SECS,
            check=False,
            env={**inherited, **environment},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None
