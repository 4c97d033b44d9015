"""The taxi pipeline in one process and on a Flink cluster of this machine: seconds by component.

python benchmarks/beam_engines.py [--rows 300000 3000000] [--only local flink] [--steps 1000] [--work FOLDER]

The same data and configuration run on one engine after the other, each in its own root. The cluster is the
one of `make flink-cluster`: two task managers with one slot each. On one machine it can only be faster than
one process if that leaves a processor idle: the table shows the engine's cost. Above 1x, Flink is slower.
"""

import argparse
import contextlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from benchmarks import (  # noqa: E402  (the script may be started from anywhere)
    pipeline_speed,
    tables,
)
from scripts.flink.cluster import FlinkCluster  # noqa: E402

_FLINK = REPOSITORY / ".flink"
_NUM_TASK_MANAGERS = 2
_CONFIG = REPOSITORY / "pipelines" / "examples" / "taxi" / "taxi.toml"


def on_flink(cluster: FlinkCluster) -> list[str]:
    """Returns the arguments that run a pipeline's Beam work on a cluster."""
    settings = [
        "beam.runner=flink",
        f"beam.flink.master={cluster.master}",
        f"beam.flink.job_server={_FLINK / 'job-server.jar'}",
        f"beam.flink.parallelism={_NUM_TASK_MANAGERS}",
    ]
    return ["--runner", "beam", *(word for one in settings for word in ("--set", one))]


def measure(
    data: pathlib.Path, steps: int, root: pathlib.Path, engine: list[str]
) -> pipeline_speed.Measurement:
    """Runs the pipeline once and returns its times, memory and AUC.

    Args:
      data: CSV file.
      steps: Training steps.
      root: Root of the run; is created.
      engine: Arguments that name the engine.
    """
    command = ["-m", "pipelines", "run", "--config", str(_CONFIG), "--root", str(root), *engine]
    settings = ["--set", f"data.path={data}", "--set", f"trainer.train_steps={steps}"]
    process_secs, usage, stdout = pipeline_speed.run_python([*command, *settings], root)
    line = json.loads(stdout.splitlines()[-1])
    print(f"{root.name}: {line['status']}, {line['metrics']}", file=sys.stderr, flush=True)
    component_secs = pipeline_speed.step_secs(root)
    return pipeline_speed.Measurement.of(
        process_secs, usage, component_secs, line["metrics"]["auc"]
    )


def report(rows: int, measured: dict[str, pipeline_speed.Measurement]) -> str:
    """Returns the figures of one size as a table."""

    def secs(name: str, figures: list[float]) -> list[str]:
        ratio = (
            f"{figures[-1] / figures[0]:.2f}x" if len(figures) > 1 and figures[0] >= 0.05 else "-"
        )
        return [name, *(f"{figure:.1f}" for figure in figures), ratio]

    sides = list(measured.values())
    table = [
        secs(name, [side.component_secs[name] for side in sides])
        for name in pipeline_speed.COMPONENTS
        if all(name in side.component_secs for side in sides)
    ]
    table += [
        secs("whole process", [side.process_secs for side in sides]),
        ["peak memory of it, MiB", *(f"{side.peak_bytes / 2**20:.0f}" for side in sides), ""],
        ["AUC of the model", *(f"{side.auc:.6f}" for side in sides), ""],
    ]
    header = [f"{rows:,} rows", *(f"{name}, s" for name in measured), "flink / local"]
    return tables.format_table(header, table)


def main() -> None:
    """Measures both engines at each size and prints a table for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[300_000], help="trips to generate")
    parser.add_argument("--steps", type=int, default=1000, help="training steps")
    parser.add_argument("--only", nargs="+", default=["local", "flink"], help="engines")
    parser.add_argument("--work", type=pathlib.Path, help="folder for data and roots")
    args = parser.parse_args()
    from pipelines.examples.taxi import generate

    subprocess.run(
        [REPOSITORY / "scripts" / "flink" / "setup.sh", sys.executable, _FLINK], check=True
    )
    with tempfile.TemporaryDirectory(dir=args.work) as scratch, contextlib.ExitStack() as stack:
        cluster = stack.enter_context(FlinkCluster(_FLINK, pathlib.Path(scratch, "flink")))
        for _ in range(_NUM_TASK_MANAGERS):
            cluster.add_task_manager()
        cluster.wait_for_slots(_NUM_TASK_MANAGERS)
        engines = {"local": ["--runner", "local"], "flink": on_flink(cluster)}
        for rows in args.rows:
            data = pathlib.Path(scratch, f"rows-{rows}", "taxi.csv")
            generate.write_csv(data, rows, seed=1)
            measured = {}
            for name in args.only:
                print(f"{rows} rows: {name} ...", file=sys.stderr, flush=True)
                root = pathlib.Path(scratch, f"{name}-{rows}")
                measured[name] = measure(data, args.steps, root, engines[name])
                shutil.rmtree(root)
            shutil.rmtree(data.parent)
            print(report(rows, measured), flush=True)


if __name__ == "__main__":
    main()
