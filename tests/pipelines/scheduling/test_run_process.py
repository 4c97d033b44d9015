import json
import os
import signal
import sys
import time

from pipelines.scheduling.run_process import Launch, RunProcess, last_line, output_tail, run_command
from pipelines.scheduling.ticks import Tick
from tests.pipelines.scheduling.conftest import START


def start(tmp_path, code):
    stdout, stderr = tmp_path / "output" / "1.out", tmp_path / "output" / "1.err"
    command = (sys.executable, "-c", code)
    process = RunProcess(Launch(command, str(tmp_path), stdout, stderr))
    return process, stdout, stderr


def test_the_command_has_the_settings_of_the_schedule(make_schedule, root):
    schedule = make_schedule(settings=("trainer.seed=7",), runner="beam")
    tick = Tick("trips", "span-8", START, spans="last 2 to 8")
    command = run_command(schedule, tick, root, True)
    assert command[1:5] == ("-m", "estimator_pipelines", "run", "--config")
    assert command[5:] == (
        *(schedule.config, "--set", "trainer.seed=7", "--set", "data.spans=last 2 to 8"),
        *("--root", str(root), "--runner", "beam", "--scheduled-by", "trips/span-8", "--resume"),
    )
    plain = run_command(make_schedule(config=None), Tick("trips", "span-8", START), root, False)
    words = ("run", "--root", str(root), "--runner", "local", "--scheduled-by", "trips/span-8")
    assert plain[3:] == words


def test_a_process_prints_to_files(tmp_path):
    code = "import os,sys; print(os.getcwd()); print('oh', file=sys.stderr); sys.exit(3)"
    process, stdout, stderr = start(tmp_path, code)
    while (code := process.wait(0.5)) is None:
        pass
    assert code == 3
    assert stdout.read_text() == f"{tmp_path}\n"
    assert stderr.read_text() == "oh\n"


def test_a_process_is_stopped(tmp_path):
    code = (
        "import signal,time\nsignal.signal(15, lambda *_: exit(130))\n"
        "print('ready', flush=True)\ntime.sleep(60)"
    )
    process, stdout, _ = start(tmp_path, code)
    while not stdout.read_text():
        assert process.wait(0.05) is None
    process.stop()
    assert process.wait(30) == 130


def test_a_process_is_killed_with_what_it_has_started(tmp_path):
    code = (
        "import subprocess,signal,time\nsignal.signal(15, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '60'])\nprint(child.pid, flush=True)\ntime.sleep(60)"
    )
    process, stdout, _ = start(tmp_path, code)
    while not stdout.read_text():
        time.sleep(0.05)
    assert os.getsid(process.pid) == process.pid  # it is in a session of its own
    process.kill()
    assert process.wait(1) == -signal.SIGKILL
    state = ""
    while os.path.exists(f"/proc/{stdout.read_text().strip()}/stat") and "Z" not in state:
        with open(f"/proc/{stdout.read_text().strip()}/stat") as stream:
            state = stream.read().split()[2]
        time.sleep(0.05)


def test_the_last_line_and_words_of_the_output_and_a_pipe_in_its_place(tmp_path):
    file = tmp_path / "out"
    assert last_line(file) is None
    line = {"run_id": "r", "status": "pushed"}
    for text in ("", "\n", json.dumps(line), json.dumps(line)[:-3] + "\n", "[]\n", "{}\n"):
        file.write_text(text)
        assert last_line(file) is None
    file.write_text("noise\n" + json.dumps(line) + "\n")
    assert last_line(file) == line
    file = tmp_path / "err"
    assert output_tail(file) == ""
    file.write_text("x" * 9_000 + "\nfirst\nMemoryError: no\n")
    assert output_tail(file).endswith("first | MemoryError: no")
    assert len(output_tail(file, 20)) == 20
    (tmp_path / "output").mkdir()
    os.mkfifo(tmp_path / "output" / "1.out")
    process, stdout, _ = start(tmp_path, 'print("done")')
    assert process.wait(60) == 0
    assert stdout.read_text() == "done\n"
