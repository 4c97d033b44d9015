"""Entry point of `python -m pipelines`."""

import os
import sys

from pipelines.interruption import end_at_signals


def main() -> None:
    """Runs the command line."""
    # TensorFlow reads it when it is imported, here and in processes that are started.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    end_at_signals(has_last_line=sys.argv[1:2] == ["run"])  # before imports, which take a while
    from pipelines.cli import app

    app(prog_name="python -m pipelines")


if __name__ == "__main__":
    main()
