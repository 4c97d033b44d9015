"""Entry point of the command line: of `python -m pipelines`, and of `estimator-pipelines`."""

import gc
import os
import sys
from pathlib import Path
from typing import NoReturn

_OURS = ("pipelines", "components", "estimator_core")
_EXIT_FAILED = 1
_GC_THRESHOLD = 100_000


def main(program: str = "python -m pipelines") -> None:
    """Runs the command line."""
    _put_own_packages_first()
    # Read by TensorFlow at import, here and in child processes.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # Imports make a million objects that stay. To search them at every 700th takes a seventh of the time.
    gc.set_threshold(_GC_THRESHOLD)
    from pipelines.terminal.signals import end_at_signals
    from pipelines.terminal.streams import checked_exit_code, use_safe_streams

    use_safe_streams()
    end_at_signals(has_last_line=sys.argv[1:2] == ["run"])  # before imports, which take a while
    try:
        from pipelines.cli.app import run_app
    except ModuleNotFoundError as error:
        _refuse_outside_environment(error)
    try:
        run_app(program)
    except SystemExit as ending:
        sys.exit(checked_exit_code(int(ending.code or 0)))


def _put_own_packages_first() -> None:
    """Moves folders with packages of our names to the end of the path, which child processes inherit."""
    own = Path(__file__).resolve().parents[1]
    for folder in list(sys.path):
        path = Path(folder).resolve()
        names = [path / name for name in _OURS]
        if path != own and any(
            (name / "__init__.py").exists() or name.with_suffix(".py").exists() for name in names
        ):
            sys.path.remove(folder)
            sys.path.append(folder)


def _refuse_outside_environment(error: ModuleNotFoundError) -> NoReturn:
    """Explains how to install a missing requirement; a missing module of this project is a bug."""
    missing = (error.name or "").partition(".")[0]
    if missing in _OURS:
        raise error
    print(
        f"The Python package {missing!r} is missing from the environment of {sys.executable}: the commands "
        "need the extra `pipelines`. In a clone of the project, run `make setup`, then "
        "`.venv/bin/python -m pipelines`; docs/install.md there has other ways.",
        file=sys.stderr,
    )
    sys.exit(_EXIT_FAILED)


if __name__ == "__main__":
    main()
