import json
import subprocess
import sys

# A process of its own: pytest has its own hold on the descriptors.
SCRIPT = """
import json, logging, os, subprocess, sys, warnings
from pathlib import Path
from pipelines.terminal.output_capture import captured_output

log = Path(sys.argv[1])
logging.getLogger().setLevel(logging.ERROR)
with captured_output() as capture:
    print("before, from Python")
    os.write(2, b"before, from a library\\n")
    assert not log.parent.exists()
    if sys.argv[2] == "keep":
        capture.move_output(log)
    logging.getLogger("some.library").info("after, %s", "logged")
    subprocess.run(["echo", "after, from another process"])
    warnings.warn("after, a warning")
print(json.dumps({"level": logging.getLogger().level, "handlers": len(logging.getLogger().handlers)}))
print("the end", file=sys.stderr)
"""


def capture(tmp_path, what):
    log = tmp_path / "logs" / "run.log"
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(log), what], capture_output=True, text=True, check=True
    )
    assert result.stderr == "the end\n"
    # The level and the handlers are those of before.
    assert json.loads(result.stdout) == {"level": 40, "handlers": 0}
    return log


def test_everything_goes_to_the_file_and_nothing_to_the_terminal(tmp_path):
    text = capture(tmp_path, "keep").read_text()
    lines = text.splitlines()
    assert lines.index("before, from Python") < lines.index("after, from another process")
    assert "before, from a library" in lines
    assert " INFO some.library: after, logged\n" in text
    assert "after, a warning" in text


def test_a_run_that_is_refused_leaves_no_log(tmp_path):
    assert not capture(tmp_path, "refuse").parent.exists()
