"""From the taxi CSV to a pushed model: our nine components compared with stock TFX's nine.

make bench-pipeline BENCH="--rows 15000 300000 --rounds 3"
python benchmarks/taxi_pipeline.py [--data CSV] [--steps 1000] [--rows 15000] [--rounds 3]

The sides run one after the other, each in its own process: the same data, `preprocessing_fn`, features,
layers, batch size, steps, metrics and slices; a Keras model with a `run_fn` there, an Estimator with
a `trainer_fn` here. Neither has Transform compute statistics. The order of the sides alternates from
round to round, since the second finds a warm page cache. Component times are from the executions in ML
Metadata; the rest of the process is imports and the like. The ServingCheck is ours alone. Each number of
rows has a table with the medians of the rounds; the ratio of each round is printed below. Above 1x, we are
faster. On a busy machine, compare the processor's time.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from benchmarks import tables  # noqa: E402  (the script may be started from anywhere)

COMPONENTS = (
    "CsvExampleGen",
    "StatisticsGen",
    "SchemaGen",
    "ExampleValidator",
    "Transform",
    "Resolver",
    "Trainer",
    "Evaluator",
    "Pusher",
)
_MEBIBYTE = 1 << 20


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One side of the comparison.

    Attributes:
      process_secs: Wall time of the whole process.
      cpu_secs: Processor time of the process and of those that it started.
      component_secs: Wall time of each component.
      peak_bytes: Largest resident size of the process.
      auc: AUC of the pushed model, on the evaluation split.
    """

    process_secs: float
    cpu_secs: float
    component_secs: dict[str, float]
    peak_bytes: int
    auc: float

    @classmethod
    def of(
        cls,
        process_secs: float,
        usage: resource.struct_rusage,
        component_secs: dict[str, float],
        auc: float,
    ) -> "Measurement":
        """Returns the measurement of a process that has ended with this usage."""
        cpu_secs = usage.ru_utime + usage.ru_stime
        return cls(process_secs, cpu_secs, component_secs, usage.ru_maxrss * 1024, auc)

    @property
    def rest_secs(self) -> float:
        """Wall time outside of the components: imports, above all."""
        return self.process_secs - sum(self.component_secs.values())


def measure_stock(data: pathlib.Path, steps: int, root: pathlib.Path) -> Measurement:
    """Runs stock TFX on a folder with one CSV."""
    command = ["-m", "benchmarks.stock_pipeline", "--data", str(data), "--steps", str(steps)]
    process_secs, usage, _ = run_python([*command, "--root", str(root)], root)
    evaluation = next(root.glob("artifacts/Evaluator/evaluation/*"))
    return Measurement.of(
        process_secs, usage, component_secs(root / "metadata.sqlite"), _auc(evaluation)
    )


def measure_ours(data: pathlib.Path, steps: int, root: pathlib.Path) -> Measurement:
    """Runs `python -m pipelines run` on a folder with one CSV."""
    config = REPOSITORY / "pipelines" / "examples" / "taxi" / "taxi.toml"
    command = ["-m", "pipelines", "run", "--config", str(config), "--root", str(root)]
    settings = [f"data.path={data}", f"trainer.train_steps={steps}"]
    process_secs, usage, stdout = run_python(
        [*command, *(word for setting in settings for word in ("--set", setting))], root
    )
    outcome = json.loads(stdout.splitlines()[-1])
    metadata = root / "metadata" / "metadata.sqlite"
    return Measurement.of(process_secs, usage, component_secs(metadata), outcome["metrics"]["auc"])


def run_python(
    arguments: list[str], root: pathlib.Path
) -> tuple[float, resource.struct_rusage, str]:
    """Runs Python to its end and returns its wall time, what it used, and stdout.

    Raises:
      SystemExit: The process failed; its log is printed.
    """
    root.mkdir()
    log = root / "benchmark.log"
    with log.open("w") as stderr, tempfile.TemporaryFile("w+") as stdout:
        start = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=REPOSITORY, stdout=stdout, stderr=stderr
        )
        _, status, usage = os.wait4(process.pid, 0)
        process_secs = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            print(log.read_text()[-5000:], file=sys.stderr)
            raise SystemExit(f"exit code {process.returncode} of: python {' '.join(arguments)}")
        stdout.seek(0)
        return process_secs, usage, stdout.read()


def component_secs(metadata: pathlib.Path) -> dict[str, float]:
    """Returns the wall time of each execution in ML Metadata, by the name of its component."""
    import ml_metadata
    from ml_metadata.proto import metadata_store_pb2

    connection = metadata_store_pb2.ConnectionConfig()
    connection.sqlite.filename_uri = str(metadata)
    store = ml_metadata.MetadataStore(connection)
    names = {kind.id: kind.name.rpartition(".")[2] for kind in store.get_execution_types()}
    return {
        names[execution.type_id]: (
            execution.last_update_time_since_epoch - execution.create_time_since_epoch
        )
        / 1000
        for execution in store.get_executions()
    }


def _auc(evaluation: pathlib.Path) -> float:
    """Returns the AUC over the whole data set from TFMA's result."""
    from components.tfx import compat as tfx_compat

    tfx_compat.install()
    import tensorflow_model_analysis as tfma

    result = tfma.load_eval_result(str(evaluation))
    overall = next(metrics for keys, metrics in result.slicing_metrics if not keys)
    return overall[""][""]["auc"]["doubleValue"]


def median(measurements: list[Measurement]) -> Measurement:
    """Returns the median of each figure."""
    return Measurement(
        statistics.median(item.process_secs for item in measurements),
        statistics.median(item.cpu_secs for item in measurements),
        {
            name: statistics.median(item.component_secs[name] for item in measurements)
            for name in measurements[0].component_secs
        },
        round(statistics.median(item.peak_bytes for item in measurements)),
        statistics.median(item.auc for item in measurements),
    )


def report(stock: Measurement, ours: Measurement) -> str:
    """Returns the comparison as a table."""

    def secs(name: str, theirs: float, mine: float) -> list[str]:
        ratio = f"{theirs / mine:.2f}x" if min(theirs, mine) >= 0.05 else "-"
        return [name, f"{theirs:.2f}", f"{mine:.2f}", ratio]

    rows = [
        secs(name, stock.component_secs[name], ours.component_secs[name]) for name in COMPONENTS
    ]
    rows += [
        ["ServingCheck", "-", f"{ours.component_secs['ServingCheck']:.2f}", "-"],
        secs("imports and the rest", stock.rest_secs, ours.rest_secs),
        secs("whole process", stock.process_secs, ours.process_secs),
        secs("its processor time", stock.cpu_secs, ours.cpu_secs),
        [
            "peak memory, MiB",
            f"{stock.peak_bytes / _MEBIBYTE:.0f}",
            f"{ours.peak_bytes / _MEBIBYTE:.0f}",
            f"{stock.peak_bytes / ours.peak_bytes:.2f}x",
        ],
        ["AUC of the model", f"{stock.auc:.4f}", f"{ours.auc:.4f}", ""],
    ]
    return tables.format_table(["", "stock TFX, s", "ours, s", "stock / ours"], rows)


def main() -> None:
    """Measures both sides and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=pathlib.Path, help="taxi CSV; default: generated trips")
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[15_000], help="trips to generate without --data"
    )
    parser.add_argument("--steps", type=int, default=1000, help="training steps")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each side")
    args = parser.parse_args()
    if args.data:
        compare(args.data, args.steps, args.rounds)
        return
    from pipelines.examples.taxi import generate

    for rows in args.rows:
        with tempfile.TemporaryDirectory() as folder:
            facts = generate.write_csv(pathlib.Path(folder, "taxi.csv"), rows, seed=1)
            print(f"{facts['rows']} generated trips, best reachable AUC {facts['best_auc']:.4f}")
            compare(pathlib.Path(folder, "taxi.csv"), args.steps, args.rounds)


def compare(csv: pathlib.Path, steps: int, rounds: int) -> None:
    """Runs both sides on a CSV, several times, and prints the table."""
    sides = {"stock": measure_stock, "ours": measure_ours}
    measured: dict[str, list[Measurement]] = {side: [] for side in sides}
    with tempfile.TemporaryDirectory() as scratch:
        data = pathlib.Path(scratch, "data")
        data.mkdir()
        shutil.copy(csv, data / "taxi.csv")
        for number in range(rounds):
            for side in list(sides)[:: -1 if number % 2 else 1]:
                print(f"round {number + 1} of {rounds}: {side} ...", file=sys.stderr)
                root = pathlib.Path(scratch, f"{side}-{number}")
                measured[side].append(sides[side](data, steps, root))
                shutil.rmtree(root)
    print(report(median(measured["stock"]), median(measured["ours"])))
    pairs = list(zip(measured["stock"], measured["ours"], strict=True))
    for what, name in (("process_secs", "whole process"), ("cpu_secs", "its processor time")):
        ratios = [f"{getattr(stock, what) / getattr(ours, what):.2f}x" for stock, ours in pairs]
        print(f"{name}, by round: {', '.join(ratios)}")


if __name__ == "__main__":
    main()
