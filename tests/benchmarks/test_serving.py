import os
import pathlib
import subprocess
import sys
import time

from benchmarks.serving import Measurement, table
from benchmarks.serving_contestants import contestants, cpu_secs, resident_bytes, sample_rows

TYPES = {"fare": "FLOAT", "hour": "INT", "company": "BYTES"}


def test_rows_have_the_types_of_the_columns(tmp_path):
    file = tmp_path / "trips.csv"
    file.write_text("tips,fare,hour,company\n1,12,7,\n0,,8,Prairie Cab\n1,3,4,x\n")
    assert sample_rows(file, TYPES, 2) == [
        {"fare": 12.0, "hour": 7, "company": None},
        {"fare": None, "hour": 8, "company": "Prairie Cab"},
    ]


def test_every_server_is_asked_for_the_same_row_and_gives_the_scores():
    answers = {
        "serve, TensorFlow Serving's REST": {"predictions": [{"scores": [0.3, 0.7]}]},
        "serve, Open Inference Protocol": {
            "outputs": [
                {"name": "class", "data": ["1"]},
                {"name": "probability", "data": [0.7]},
                {"name": "probability_0", "data": [0.3]},
                {"name": "probability_1", "data": [0.7]},
            ]
        },
        "MLServer": {"outputs": [{"name": "scores", "data": [0.3, 0.7]}]},
        "LitServe": {"scores": [0.3, 0.7]},
        "BentoML": [[0.3, 0.7]],
    }
    row = {"fare": 12.0, "hour": None}
    tensors = {
        "inputs": [
            {"name": "fare", "shape": [1], "datatype": "FP32", "data": [12.0]},
            {"name": "hour", "shape": [1], "datatype": "INT64", "data": [None]},
        ]
    }
    servers = contestants(TYPES)
    assert {server.kind for server in servers} == {"ours", "mlserver", "litserve", "bentoml"}
    for server in servers:
        assert server.scores(answers[server.name.removesuffix(", batches")]) == [0.3, 0.7]
        assert (server.batch > 0) == server.name.endswith(", batches")
        assert server.body(row) in (tensors, {"instances": [row]}, {"row": row}, {"rows": [row]})


def test_the_table_has_medians_and_all_errors():
    rounds = [Measurement(1_000.0 * number, 2.0 * number, 9.0, number, 0.5, 700.0) for number in (1, 2, 6)]
    *_, last = table({"serve": rounds}).splitlines()
    assert last.split() == ["serve", "2,000", "4.0", "9.0", "9", "0.50", "700"]


def test_processor_time_and_memory_are_those_of_all_processes_of_a_server():
    work = "sum(range(10**7)); input()"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {work!r}])"
    process = subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 30
        while True:
            own = int(pathlib.Path(f"/proc/{process.pid}/statm").read_text().split()[1])
            both = resident_bytes(process.pid) > 1.5 * own * os.sysconf("SC_PAGE_SIZE")
            if both and cpu_secs(process.pid) > 0.1:
                break
            assert process.poll() is None
            assert time.monotonic() < deadline  # the parent alone may need a while to start
    finally:
        process.communicate(b"\n", timeout=30)
