"""Runners: one file each, which holds only the order and the place in which components run."""

from pipelines.runners.registry import KUBEFLOW, RUNNER_NAMES, RUNNERS, find_runner
from pipelines.runners.runner import Runner

__all__ = ["KUBEFLOW", "RUNNERS", "RUNNER_NAMES", "Runner", "find_runner"]
