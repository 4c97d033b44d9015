"""Measures bands on the reference: how far each program moves under other conditions.

A process of its own runs all programs again under each variant. The bands go to `bands.json`, but for
those that no tolerance could tell from a fault: these are named, and the exit code is 1. The
generators call this; alone it measures what is committed (see README.md for the environment):

    python -m tests.oracle.measure_bands [NAME...]
"""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from tests.oracle import bands
from tests.oracle.programs import MODEL_DIRS, PROGRAMS, SCENARIOS

HERE = pathlib.Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class Variant:
    """Conditions under which a processor rounds otherwise.

    Args:
        environment: Environment variables of the process.
        arguments: Arguments of `variant.py`.
    """

    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    arguments: tuple[str, ...] = ()


VARIANTS = {
    "last_bit": Variant(arguments=("--last_bit",)),
    "sse41": Variant(
        {
            "ONEDNN_MAX_CPU_ISA": "SSE41",
            "TF_NUM_INTRAOP_THREADS": "1",
            "TF_NUM_INTEROP_THREADS": "1",
        }
    ),
}
PROCESSES = 2  # at a time


def run_variants(names, expected_dir, output_dir):
    """Runs each variant in a process of its own, `PROCESSES` at a time.

    Raises:
        RuntimeError: If a process fails.
    """
    waiting, running = list(VARIANTS.items()), []
    while waiting or running:
        while waiting and len(running) < PROCESSES:
            name, variant = waiting.pop(0)
            command = [sys.executable, "-m", "tests.oracle.variant", *variant.arguments]
            command += [str(expected_dir), str(output_dir / name), *names]
            log = output_dir / f"{name}.log"
            with open(log, "w") as file:
                process = subprocess.Popen(
                    command,
                    env={**os.environ, **variant.environment},
                    stdout=file,
                    stderr=subprocess.STDOUT,
                )
            running.append((name, process, log))
        name, process, log = running.pop(0)
        if process.wait() != 0:
            for _, other, _ in running:
                other.terminate()
                other.wait()
            raise RuntimeError(f"Variant {name} failed:\n{log.read_text()[-4000:]}")
        print(f"{name}: done", flush=True)


def expected_of(name, expected_dir):
    """Returns the expected values of a program, a scenario or a model directory."""
    if name.startswith("model_dirs/"):
        return json.loads((expected_dir / name / "expected.json").read_text())
    expected = json.loads((expected_dir / "expected" / f"{name}.json").read_text())
    return {"numbers": expected} if name in SCENARIOS else expected


def measure(names, expected_dir=HERE):
    """Adds the bands of these to `bands.json`; prints why others are refused.

    Args:
        names: Names of programs, scenarios, or model directories with "model_dirs/" before them.
        expected_dir: Directory of `expected/` and `model_dirs/`.

    Returns:
        The names that are refused.
    """
    measured, refused = {}, []
    with tempfile.TemporaryDirectory() as directory:
        output_dir = pathlib.Path(directory)
        run_variants(names, expected_dir, output_dir)
        for name in names:
            runs = [
                json.loads((output_dir / variant / f"{name}.json").read_text())
                for variant in VARIANTS
            ]
            try:
                measured[name] = bands.band_of(runs, expected_of(name, expected_dir))
                reason = bands.refusal(name, measured[name])
            except bands.DifferentError as error:
                reason = f"{name}: not the same under every variant: {error}"
            if reason:
                refused.append(name)
                measured.pop(name, None)
                print(reason, file=sys.stderr, flush=True)
    bands.write({**bands.read(), **measured})
    print("\n".join(bands.table(measured)), flush=True)
    return refused


def main():
    everything = [*PROGRAMS, *SCENARIOS, *(f"model_dirs/{name}" for name in MODEL_DIRS)]
    return 1 if measure(sys.argv[1:] or everything) else 0


if __name__ == "__main__":
    sys.exit(main())
