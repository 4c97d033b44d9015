import os
import subprocess
import sys

import pytest

# A process of its own: pytest has its own hold on the streams.
PROGRAM = """
import os, sys
from pipelines.terminal.streams import checked_exit_code, use_safe_streams

use_safe_streams()
print("column \\U0001f600")
print("said", file=sys.stderr)
for descriptor in (1, 2):
    os.close(os.dup(descriptor))
sys.exit(checked_exit_code(int(sys.argv[1])))
"""


def run(redirection, code=0, **variables):
    """Runs the program in a shell, and returns its exit code, and its output."""
    command = f'"$0" -c "$1" {code} {redirection}'
    words = ["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}", sys.executable, PROGRAM]
    ran = subprocess.run(words, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout, ran.stderr


@pytest.mark.parametrize("code", [0, 2])
@pytest.mark.parametrize("redirection", ["| true", "2>&1 | true", ">&-", "2>&-", ">&- 2>&-", "2>/dev/full"])
def test_a_stream_that_nobody_reads_changes_no_exit_code(redirection, code):
    found, _, stderr = run(redirection, code)
    assert found == code
    assert stderr == ("" if "2>" in redirection else "said\n")


@pytest.mark.parametrize(("code", "ends_with"), [(0, 1), (3, 3)])
def test_output_that_is_lost_on_a_full_disk_is_a_failure(code, ends_with):
    found, _, stderr = run("> /dev/full", code)
    assert found == ends_with
    assert stderr.splitlines()[1:] == ["Standard output cannot be written: No space left on device."]


def test_what_the_terminal_has_no_character_for_is_written_as_python_does():
    ran = run("", PYTHONIOENCODING="ascii")
    assert ran[:2] == (0, "column \\U0001f600\n")
