"""Runs `python -m pipelines` many times without importing TensorFlow and TFX each time.

A process of its own imports them once and forks for each command. The child is as the process of a
user: its own signals, working directory, standard streams and exit code.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

_SERVER = """
import json, os, sys

import components
import pipelines.__main__, pipelines.cli.app, pipelines.runs.run
import pipelines.report.files, pipelines.report.page
import pipelines.runs.definitions.csv_to_serving, pipelines.steps.running
import tensorflow_model_analysis, tensorflow_transform

for line in sys.stdin:
    arguments, folder, stdout, stderr = json.loads(line)
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    os.chdir(folder)
    for number, name in ((1, stdout), (2, stderr)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv[1:] = arguments
    code = 0
    try:
        pipelines.__main__.main()
    except SystemExit as error:
        code = error.code or 0
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
"""


class WarmCommand:
    """`python -m pipelines`, as a function of its arguments."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __call__(
        self, *arguments: object, cwd: str | Path | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Runs a command to its end.

        Args:
          arguments: Words of the command line.
          cwd: Working directory; that of the tests by default.
        """
        words = [str(argument) for argument in arguments]
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder, name) for name in ("stdout", "stderr")]
            request = [words, str(cwd or os.getcwd()), *map(str, files)]
            self._server.stdin.write(json.dumps(request) + "\n")
            self._server.stdin.flush()
            code = self._server.stdout.readline()
            assert code, "the process that imports everything has died"
            stdout, stderr = (file.read_text(encoding="utf-8") for file in files)
        print(stderr)  # pytest shows it when the test fails
        return subprocess.CompletedProcess(words, int(code), stdout, stderr)

    def close(self) -> None:
        """Ends the process."""
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()
