"""Entry point of `python -m pipelines`."""

import os
import sys
from typing import NoReturn

from pipelines.terminal.signals import end_at_signals
from pipelines.terminal.streams import checked_exit_code, use_safe_streams

_OURS = ("pipelines", "components", "estimator_core")
_EXIT_FAILED = 1


def main() -> None:
    """Runs the command line."""
    # Read by TensorFlow at import, here and in child processes.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    use_safe_streams()
    end_at_signals(has_last_line=sys.argv[1:2] == ["run"])  # before imports, which take a while
    try:
        from pipelines.cli.app import app
    except ModuleNotFoundError as error:
        _refuse_outside_environment(error)
    try:
        app(prog_name="python -m pipelines")
    except SystemExit as ending:
        sys.exit(checked_exit_code(int(ending.code or 0)))


def _refuse_outside_environment(error: ModuleNotFoundError) -> NoReturn:
    """Explains how to install a missing requirement; a missing module of this project is a bug."""
    missing = (error.name or "").partition(".")[0]
    if missing in _OURS:
        raise error
    print(
        f"The Python package {missing!r} is missing: {sys.executable} is not the environment of this "
        "project. Run `make setup`, then `.venv/bin/python -m pipelines`.",
        file=sys.stderr,
    )
    sys.exit(_EXIT_FAILED)


if __name__ == "__main__":
    main()
