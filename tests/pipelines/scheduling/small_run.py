"""Does as `python -m pipelines run`, as far as a scheduler can see it, in a quarter of a second.

    python small_run.py ROOT TICK [--resume]

Each line of ROOT/../ran.txt is a run that has got to its end: the tick. With SMALL_RUN_WAITS it waits for the
file ROOT/../release, `before` it has the lock of the root, or `inside`.
"""

import json
import os
import sys
import time
from pathlib import Path

from pipelines.root import Root
from pipelines.root.history import mark_killed, new_run, unfinished_run
from pipelines.root.records import RunRecord, utc_now


def wait_if(where, root):
    deadline = time.monotonic() + 15
    while os.environ.get("SMALL_RUN_WAITS") == where and time.monotonic() < deadline:
        if (root.parent / "release").exists():
            return
        time.sleep(0.05)


def main():
    root, tick, resume = Path(sys.argv[1]), sys.argv[2], "--resume" in sys.argv
    wait_if("before", root)
    with Root(root).lock.writing.held():
        records = Root(root).records
        unfinished = unfinished_run(Root(root)) if resume else None
        mark_killed(Root(root))
        if unfinished:
            record = unfinished.changed(attempt=unfinished.attempt + 1)
        else:
            # `new_run` refuses a tick that is done; the time is that of crashing_scheduler.py.
            record = RunRecord(
                **new_run(Root(root), tick), name="trips", status="running",
                started="2026-01-31T10:02:10+00:00", config={"name": "trips"}, data_fingerprint="",
                log=str(root / "log"),
            )  # fmt: skip
        records.write(record.changed(status="running"))
        wait_if("inside", root)
        time.sleep(0.25)
        with (root.parent / "ran.txt").open("a") as stream:
            stream.write(f"{tick}\n")
        record = record.changed(status="pushed", finished=utc_now())
        records.write(record)
    print(json.dumps(record.summary()))


if __name__ == "__main__":
    main()
