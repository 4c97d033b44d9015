"""Real runs over growing spans, one of them killed together with its scheduler: none is lost or doubled."""

import re
import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_run_is_lost_and_none_is_doubled(tmp_path):
    words = [sys.executable, "-m", "benchmarks.campaigns.scheduled_runs", "--work", str(tmp_path)]
    words += ["--ticks", "3", "--kills", "2=both"]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=1700)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "ticks done: 3 of 3, in 2 schedulers" in ended.stdout
    assert "runs: 3, of different ticks: 3; lost: 0; doubled: 0" in ended.stdout
    assert "spans read: 1..3, each once: True" in ended.stdout
    pushed, gated = re.search(r"versions pushed: (\d+), gated: (\d+)", ended.stdout).groups()
    assert pushed == gated >= "1"
