"""The end of a process that does not wait for its threads, and the temporary files that go with it."""

import os
import shutil
import sys
import tempfile
from atexit import register
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from typing import NoReturn

_AUTOGRAPH = "__autograph_generated_file"

_folders: list[Path] = []


def temporary_folder(prefix: str) -> Path:
    """Returns a new folder that is removed when the process ends, also by `end_process`."""
    if not _folders:
        register(remove_temporary_files)
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    _folders.append(folder)
    return folder


def remove_temporary_files() -> None:
    """Removes the temporary folders, and the modules that TensorFlow's AutoGraph wrote."""
    while _folders:
        shutil.rmtree(_folders.pop(), ignore_errors=True)
    for name, module in list(sys.modules.items()):
        if name.startswith(_AUTOGRAPH) and module.__file__:
            Path(module.__file__).unlink(missing_ok=True)
            compiled = Path(cache_from_source(module.__file__))
            compiled.unlink(missing_ok=True)
            # Another process has compiled its own there, or nothing was compiled.
            with suppress(OSError):
                compiled.parent.rmdir()


def end_process(code: int) -> NoReturn:
    """Ends the process immediately: threads of Beam and gRPC neither keep it alive nor change its exit code.

    Functions registered with `atexit` are not called.
    """
    remove_temporary_files()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # its reader may have ended
            stream.flush()
    os._exit(code)
