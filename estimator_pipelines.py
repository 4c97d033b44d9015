"""The command `estimator-pipelines`; `python -m estimator_pipelines` is the same.

Many projects have a folder `pipelines` or `components` of their own, and Python may find that one first. This
module has a name of its own, and finds our packages beside itself.
"""

import sys
from pathlib import Path

PROGRAM = "estimator-pipelines"


def main() -> None:
    """Runs the command line."""
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import pipelines  # noqa: F401 - later imports of its modules go through this one

    del sys.path[0]
    from pipelines.__main__ import main as run_command_line

    run_command_line(PROGRAM)


if __name__ == "__main__":
    main()
