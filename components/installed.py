"""A process in which `components.install()` was called before anything else.

Workers of Beam import this module. As a command, `python -m components.installed MODULE ARGUMENTS` runs
another module afterwards, as `python -m MODULE ARGUMENTS` would.
"""

import runpy
import sys

from components.installation import install

install()

if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit("Usage: python -m components.installed MODULE [ARGUMENTS]")
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
