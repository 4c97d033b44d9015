"""Measures bands on the reference: how far each program moves under other conditions.

A process of its own runs all programs again under each variant. The bands go to `bands.json`, but for
those that no tolerance could tell from a fault: these are named, and the exit code is 1. The
generators call this; alone it measures the committed files (see README.md for the environment):

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
    """Conditions under which numbers are rounded otherwise.

    Args:
        environment: Environment variables of the process.
        last_bit: True to add a `LastBitHook`. Scenarios, which have no place for one, are left
            out then.
    """

    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    last_bit: bool = False

    def names(self, names):
        """Returns those of the names that this variant runs."""
        return [name for name in names if not (self.last_bit and name in SCENARIOS)]


VARIANTS = {
    "last_bit": Variant(last_bit=True),
    "sse41": Variant(
        {"ONEDNN_MAX_CPU_ISA": "SSE41", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
    ),
}


def run_variants(names, expected_dir, output_dir):
    """Runs each variant in a process of its own, all at the same time.

    Raises:
        RuntimeError: If a process fails.
    """
    running = []
    for label, variant in VARIANTS.items():
        command = [sys.executable, "-m", "tests.oracle.variant", str(expected_dir)]
        command += [str(output_dir / label), *variant.names(names)]
        log = output_dir / f"{label}.log"
        with open(log, "w") as file:
            process = subprocess.Popen(
                command + ["--last_bit"] * variant.last_bit,
                env={**os.environ, **variant.environment},
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        running.append((label, process, log))
    for _, process, _ in running:
        process.wait()
    for label, process, log in running:
        if process.returncode != 0:
            raise RuntimeError(f"Variant {label} failed:\n{log.read_text()[-4000:]}")


def expected_of(name, expected_dir):
    """Returns the expected values of a program, a scenario or a model directory."""
    if name.startswith("model_dirs/"):
        return json.loads((expected_dir / name / "expected.json").read_text())
    expected = json.loads((expected_dir / "expected" / f"{name}.json").read_text())
    return {"numbers": expected} if name in SCENARIOS else expected


def collect(names, expected_dir, output_dir):
    """Adds bands to `bands.json` from the files of the variants; prints the reason why others are refused.

    Returns:
        The names that are refused.
    """
    measured, refused = {}, []
    for name in names:
        runs = [
            json.loads((output_dir / label / f"{name}.json").read_text())
            for label, variant in VARIANTS.items()
            if variant.names([name])
        ]
        try:
            band = bands.band_of(runs, expected_of(name, expected_dir))
            reason = bands.refusal(name, band)
        except bands.DifferentError as error:
            reason = f"{name} shows something else under one of the variants: {error}"
        if reason is None:
            measured[name] = band
        else:
            refused.append(name)
            print(reason, file=sys.stderr, flush=True)
    bands.write({**bands.read(), **measured})
    print("\n".join(bands.table(measured)), flush=True)
    return refused


def measure(names, expected_dir=HERE):
    """Measures the bands of these, and adds them to `bands.json`.

    Args:
        names: Names of programs, scenarios, or model directories with "model_dirs/" before them.
        expected_dir: Directory of `expected/` and `model_dirs/`.

    Returns:
        The names that are refused.
    """
    with tempfile.TemporaryDirectory() as directory:
        output_dir = pathlib.Path(directory)
        run_variants(names, expected_dir, output_dir)
        return collect(names, expected_dir, output_dir)


def main():
    everything = [*PROGRAMS, *SCENARIOS, *(f"model_dirs/{name}" for name in MODEL_DIRS)]
    return 1 if measure(sys.argv[1:] or everything) else 0


if __name__ == "__main__":
    sys.exit(main())
