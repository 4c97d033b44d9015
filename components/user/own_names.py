"""Explains errors of user code that means its own `components` or `pipelines`, but gets this project's."""

from collections.abc import Iterable
from pathlib import Path

_OURS = ("components", "estimator_core", "pipelines")


def name_taken(error: BaseException, folders: Iterable[str]) -> str | None:
    """Returns a message if an error is due to a folder with the name of one of our packages; else None.

    `error`: error of an import in the user's code, or of an attribute of an imported package.
    """
    if isinstance(error, ImportError):
        module = error.name or ""
    else:
        module = getattr(getattr(error, "obj", None), "__name__", "")
    name = str(module).partition(".")[0]
    if name not in _OURS:
        return None
    own = Path(__file__).resolve().parents[2] / name
    for folder in folders:
        if all(Path(folder, ours).is_dir() for ours in _OURS):
            continue  # this project, or another version of it
        for theirs in (Path(folder, name).resolve(), Path(folder, f"{name}.py").resolve()):
            if theirs.exists():
                return (
                    f"{error}. {name!r} is a package of estimator-pipelines ({own}), so {theirs} can't be "
                    f"imported by this name. Rename it, for example to my_{theirs.name}, or move it into a "
                    "package of your own, and change the import."
                )
    return None
