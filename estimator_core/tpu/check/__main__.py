"""The command of `check_for_tpu`.

Usage: python -m estimator_core.tpu.check MODULE:FUNCTION [--topology v5e:2x2] [--mode train ...]

FUNCTION takes no arguments and returns a TPUEstimator and an input_fn. The exit code is 0 if all modes
compile and fit into the memory, 3 if not, and 2 for a bad command.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys

from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.tpu.check.check import check_for_tpu


def main() -> int:
    """Prints the report; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m estimator_core.tpu.check",
        description="Check whether a model compiles for TPU, with the real TPU compiler but without a TPU.",
    )
    parser.add_argument(
        "function",
        metavar="MODULE:FUNCTION",
        help="function without arguments that returns a TPUEstimator and an input_fn",
    )
    parser.add_argument("--topology", default="v5e:2x2", help="such as v5e:2x2 or v4:2x2x1")
    parser.add_argument(
        "--mode", choices=ModeKeys.ALL, action="append", help="default: each with a batch size"
    )
    args = parser.parse_args()
    sys.path.insert(0, os.getcwd())
    module, _, name = args.function.partition(":")
    try:
        estimator, input_fn = getattr(importlib.import_module(module), name)()
        report = check_for_tpu(estimator, input_fn, args.topology, args.mode)
    except (AttributeError, ImportError, RuntimeError, TypeError, ValueError) as error:
        parser.error(f"{args.function}: {error}")
    print(report)
    return 0 if report.compiles else 3


if __name__ == "__main__":
    sys.exit(main())
