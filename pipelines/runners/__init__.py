"""Runners: each one file that holds only the order and the place in which components run."""

from pipelines.runners.registry import RUNNERS, find_runner
from pipelines.runners.runner import Runner

__all__ = ["RUNNERS", "Runner", "find_runner"]
