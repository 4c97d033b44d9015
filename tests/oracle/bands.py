"""The distances by which the numbers of each program move when floating point is rounded otherwise.

`measure_bands.py` measures these bands on the reference, and `bands.json` keeps them. A band far
below the tolerance of the tests proves that no processor can fail them by its rounding, and that a
test that fails has found a difference. Prints all bands, the largest share of a tolerance first:

    python -m tests.oracle.bands [NAME...]
"""

import dataclasses
import json
import math
import pathlib
import sys

PATH = pathlib.Path(__file__).parent / "bands.json"
# The measurement is a sample: other processors round otherwise again.
SAFETY_FACTOR = 4.0


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """Accepts a number within `relative * abs(expected)`, or within `absolute` if that is more."""

    relative: float
    absolute: float = 0.0

    def deviation(self, seen, expected):
        """Returns the difference as a fraction of the expected value.

        Below `absolute / relative` the expected value counts as that large, so that a deviation of
        `relative` is just within the tolerance, whatever the value.
        """
        if seen == expected or (math.isnan(seen) and math.isnan(expected)):
            return 0.0
        scale = max(abs(expected), self.absolute / self.relative)
        deviation = abs(seen - expected) / scale if scale else math.inf
        return math.inf if math.isnan(deviation) else deviation


TOLERANCES = {
    "losses": Tolerance(1e-5),
    "metrics": Tolerance(1e-5, 1e-6),
    "predictions": Tolerance(1e-4, 1e-6),
    "final_norms": Tolerance(1e-4, 1e-6),
    "numbers": Tolerance(1e-5, 1e-6),  # of a scenario
}


class DifferentError(ValueError):
    """A text, a whole number or a shape differs, for which there is no band."""


def deviations(tolerance, seen, expected, where=""):
    """Yields the deviation of each number with a fraction; all else has to be equal.

    Args:
        tolerance: A `Tolerance`.
        seen: Plain data, as JSON has it.
        expected: Plain data that `seen` should equal.
        where: The path so far, for the error.

    Raises:
        DifferentError: If anything but a number with a fraction differs.
    """
    if isinstance(expected, dict) and isinstance(seen, dict) and seen.keys() == expected.keys():
        for key in expected:
            yield from deviations(tolerance, seen[key], expected[key], f"{where}.{key}")
    elif isinstance(expected, list) and isinstance(seen, list) and len(seen) == len(expected):
        for index, pair in enumerate(zip(seen, expected, strict=True)):
            yield from deviations(tolerance, *pair, f"{where}[{index}]")
    elif isinstance(expected, float) and isinstance(seen, float):
        yield tolerance.deviation(seen, expected)
    elif seen != expected:
        raise DifferentError(f"{where}: {seen!r} instead of {expected!r}")


def band_of(runs, expected):
    """Returns the band of a program, a scenario or a model directory.

    Args:
        runs: Observations of each run under other conditions.
        expected: Committed observation: a dict with some of the keys of `TOLERANCES`. The losses get a
            band for each step, all other numbers one band for the key.
    """
    band = {}
    for key, tolerance in TOLERANCES.items():
        if key in expected:
            found = [list(deviations(tolerance, run[key], expected[key], key)) for run in runs]
            if key == "losses":
                band[key] = [_two_digits(max(step)) for step in zip(*found, strict=True)]
            else:
                band[key] = _two_digits(max((max(run, default=0.0) for run in found), default=0.0))
    return band


def _two_digits(number):
    return float(f"{number:.1e}")


def largest(band):
    """Returns (share of the tolerance, key, step, width) of the worst place of a band.

    The step counts from 1, and is None for all but losses.
    """
    places = []
    for key, value in band.items():
        steps = enumerate(value, 1) if isinstance(value, list) else [(None, value)]
        places += [(width / TOLERANCES[key].relative, key, step, width) for step, width in steps]
    return max(places, key=lambda place: place[0], default=(0.0, "", None, 0.0))


def refusal(name, band):
    """Returns why a program with this band cannot be used; None when it can."""
    share, key, step, width = largest(band)
    if share * SAFETY_FACTOR <= 1.0:
        return None
    at = f"{key} of step {step}" if step else key
    limit = TOLERANCES[key].relative / SAFETY_FACTOR
    return (
        f"{name}: {at} moves by {width:.1e} when floating point is rounded otherwise; the limit is "
        f"{limit:.1e}, {1 / SAFETY_FACTOR:g} of the test's tolerance. Give the program a smaller "
        "learning rate or better conditioning (smaller inputs, another seed, fewer units, a smooth "
        "activation, a loss that stays away from 0) and generate it again."
    )


def read():
    """Returns the committed bands by name."""
    return json.loads(PATH.read_text()) if PATH.exists() else {}


def write(bands):
    """Commits bands to the file, one line for each name."""
    lines = [f"{json.dumps(name)}: {json.dumps(bands[name])}" for name in sorted(bands)]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def table(bands):
    """Returns the lines of a table of bands, the largest share of a tolerance first."""
    rows = sorted(((*largest(band), name) for name, band in bands.items()), key=lambda row: -row[0])
    lines = [f"{'name':44} {'what':12} {'step':>4} {'band':>8}  share of the tolerance"]
    for share, key, step, width, name in rows:
        lines.append(f"{name:44} {key:12} {step or '':>4} {width:8.1e}  {share:.1%}")
    return lines


def main():
    bands = read()
    print("\n".join(table({name: bands[name] for name in sys.argv[1:] or bands})))


if __name__ == "__main__":
    main()
