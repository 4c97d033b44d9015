"""Runs a step in its container: `python -m pipelines.kubeflow.step COMPONENT ...`.

Kubeflow's launcher calls it with the paths of its local copies, so nothing here depends on the store of
the artifacts. The log goes to standard error; its last line is the reason of a failure.
"""

import argparse
import json
import os
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from pipelines.errors import BadInputError, RunFailedError
from pipelines.kubeflow.compile.dag import END, PLAN, RECORD
from pipelines.kubeflow.passing_errors import tried_again
from pipelines.kubeflow.run_folder import RunFolder, StepEnd, kubeflow_run_of
from pipelines.kubeflow.step_environment import retries_of, set_umask
from pipelines.root import Root
from pipelines.root.signs_of_life import giving_signs
from pipelines.terminal.ending import end_process
from pipelines.terminal.signals import (
    ignore_signals,
    raise_at_signals,
    signal_has_come,
    stop_raising,
)

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2

_STOPPED = (
    "stopped by a signal: the run was terminated, the step took too long, or its pod was evicted"
)
_LOCK_SECS = 60.0
_LOCK_SECS_AT_SIGNAL = 10.0
"""Times to wait for the root's lock, to record a failure. Kubernetes kills a pod 30 s after its signal."""


def main(
    arguments: Sequence[str] | None = None, sleep: Callable[[float], None] = time.sleep
) -> int:
    """Runs a step and returns its exit code.

    After an error that may pass, the step is tried again, as often as its environment says.

    Args:
      arguments: Arguments of the command line. Default: `sys.argv`'s.
      sleep: Function that waits between two tries.
    """
    args = _parser().parse_args(arguments)
    start = time.monotonic()
    attempt = _Attempt(args)

    def say(error: BaseException, delay_secs: float, number: int) -> None:
        traceback.print_exception(error)
        text = f"this may pass. Retry {number} of {retries} in {delay_secs:g} s"
        print(f"{args.component}: {_reason(error)[0]}: {text}", file=sys.stderr, flush=True)

    with ExitStack() as alive:
        try:
            try:
                retries = retries_of(os.environ)
                if args.component != END:
                    folder = _folder(args)
                    alive.enter_context(giving_signs(folder.path, args.component))
                    folder.forget_step(args.component)  # a failure of an earlier try
                tried_again(attempt.run, retries, say, sleep)
            finally:
                stop_raising()
        except BaseException as error:  # the user's code may raise SystemExit, too
            if signal_has_come():
                ignore_signals()  # a second one must not end the process before the record is written
            with suppress(OSError):  # a signal ends KFP's launcher, which reads the output, first
                traceback.print_exc()
            reason, is_bad_input = _reason(error)
            end = StepEnd(
                args.component,
                time.monotonic() - start,
                reason,
                is_bad_input,
                attempt.findings.as_json() if attempt.findings else "[]",
                has_outputs=_is_of_check(error),
                is_interrupted=signal_has_come(),
            )
            _keep_failure(args, end)
            with suppress(OSError):
                print(f"{args.component}: {reason}", file=sys.stderr, flush=True)
            return EXIT_BAD_INPUT if is_bad_input else EXIT_FAILED
        if attempt.findings is not None:
            _folder(args).write_step(StepEnd(args.component, time.monotonic() - start))
    return 0


class _Attempt:
    """A try of a step.

    Args:
      args: Arguments of the step.

    Attributes:
      findings: Findings of the component's check in the last try; None for a step that is not a component.
    """

    def __init__(self, args: argparse.Namespace):
        self._args = args
        self.findings: Any = None

    def run(self) -> None:
        """Runs the step."""
        steps: dict[str, Callable[[argparse.Namespace], None]] = {
            PLAN: _plan,
            RECORD: _record,
            END: _end,
        }
        if self._args.component in steps:
            steps[self._args.component](self._args)
            return
        from pipelines.kubeflow.steps.kept_findings import KeptFindings

        self.findings = KeptFindings()
        for _, output in self._args.output:
            shutil.rmtree(output, ignore_errors=True)  # of an earlier try
        _component(self._args, self.findings)


def _plan(args: argparse.Namespace) -> None:
    from pipelines.kubeflow.compile.parameters import configuration_of_run
    from pipelines.kubeflow.steps.plan_step import plan_on_kubeflow

    config = configuration_of_run(args.config, args.parameter)
    plans = plan_on_kubeflow(args.root, config, args.run)
    for role, file in args.plan_of:
        _write(file, plans[role])


def _record(args: argparse.Namespace) -> None:
    from pipelines.kubeflow.steps.record_steps import record_run

    record = record_run(args.root, args.run, dict(args.findings_of), args.outcome)
    print(json.dumps(record.summary(), allow_nan=False), file=sys.stderr)


def _end(args: argparse.Namespace) -> None:
    from pipelines.kubeflow.steps.record_steps import end_run

    record = end_run(args.root, args.run)
    if record is None:
        print("The run ended before its record was begun: see the step Plan.", file=sys.stderr)
    else:
        print(f"run {record.run_id}: {record.status}", file=sys.stderr)


def _component(args: argparse.Namespace, findings: Any) -> None:
    import components  # noqa: F401  - before anything of TFX: it makes TFDV importable
    from pipelines.kubeflow.component_plan import read_component_plan
    from pipelines.kubeflow.steps.component_step import run_component
    from pipelines.kubeflow.steps.record_steps import reopen_run
    from pipelines.kubeflow.steps.served_baseline import keep_statistics
    from pipelines.kubeflow.steps.step_call import StepCall
    from pipelines.kubeflow.steps.step_code import check_code, make_module_importable

    folder = _folder(args)
    run_id = folder.require_run_id()
    call = StepCall(
        args.root,
        json.loads(args.executor_input),
        dict(args.input),
        dict(args.output),
        folder.read_beam_options(),
    )
    plan = read_component_plan(args.root, args.plan)
    reopen_run(args.root, folder, args.component)
    if plan.code is not None:
        check_code(plan.code, plan.component)
        make_module_importable(plan.code)
    if plan.push is None:
        try:
            metadata = run_component(call, plan, findings)
        finally:
            findings.write_details(args.root, run_id)
            if findings.has_anomalies:  # `schema accept` may need them
                keep_statistics(call, run_id)
    else:
        from pipelines.kubeflow.steps.push_step import run_pusher

        metadata, outcome = run_pusher(call, plan, run_id)
        _write(args.outcome_file, outcome)
    _write(args.findings, findings.write(args.root))
    _write(call.executor_input["outputs"]["outputFile"], json.dumps(metadata))


def keep_interruption(arguments: Sequence[str] | None = None) -> None:
    """Records that a signal stops this step: the step's main thread may have no time to.

    Kubernetes grants 30 s, but Argo stops the container 0.5 to 1.5 s after the end of KFP's launcher, which
    the same signal ends.
    """
    args = _parser().parse_args(arguments)
    if args.component == END or args.component in {
        end.component for end in _folder(args).failures()
    }:
        return
    _keep_failure(args, StepEnd(args.component, 0.0, _STOPPED, is_interrupted=True))


def _reason(error: BaseException) -> tuple[str, bool]:
    if signal_has_come():
        return _STOPPED, False
    if isinstance(error, RunFailedError):
        return str(error), error.is_bad_input
    if isinstance(error, BadInputError):
        return str(error), True
    from pipelines.steps.causes import describe_cause, is_setting_error

    return describe_cause(error), is_setting_error(error)


def _is_of_check(error: BaseException) -> bool:
    if not isinstance(error, RunFailedError):
        return False
    from pipelines.kubeflow.steps.component_step import CheckFailedError

    return isinstance(error, CheckFailedError)


def _keep_failure(args: argparse.Namespace, end: StepEnd) -> None:
    """Writes the reason, and closes the run's record; an error here must not hide the reason."""
    try:
        folder = _folder(args)
        folder.write_step(end)
        if args.component != END:
            from pipelines.kubeflow.steps.record_steps import close_failed_run

            wait_secs = _LOCK_SECS_AT_SIGNAL if end.is_interrupted else _LOCK_SECS
            close_failed_run(args.root, folder.kubeflow_run, args.component, wait_secs)
    except Exception as error:
        with suppress(OSError):
            print(f"The reason could not be kept in {args.root}: {error}", file=sys.stderr)


def _folder(args: argparse.Namespace) -> RunFolder:
    if args.run:
        return RunFolder(args.root, args.run)
    given = json.loads(args.executor_input) if args.executor_input else {}
    outputs = given.get("outputs", {}).get("artifacts", {}).values()
    uris = [artifact["uri"] for output in outputs for artifact in output["artifacts"]]
    return RunFolder(args.root, kubeflow_run_of(uris))


def _write(file: str, text: str) -> None:
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text(text, encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m pipelines.kubeflow.step", description=__doc__)
    parser.add_argument("component")
    parser.add_argument("--root", type=lambda text: Root(Path(text)), required=True)
    parser.add_argument("--run", default="")
    parser.add_argument("--executor-input", default="")
    parser.add_argument("--plan", default="")
    parser.add_argument("--config", default="")
    parser.add_argument("--findings", default="")
    parser.add_argument("--outcome", default="")
    parser.add_argument("--outcome-file", default="")
    for name in ("--input", "--output", "--plan-of", "--findings-of"):
        parser.add_argument(name, nargs=2, action="append", default=[])
    parser.add_argument("--parameter", nargs=2, action="append", default=[])
    return parser


if __name__ == "__main__":
    set_umask(os.environ)
    raise_at_signals(keep_interruption)  # so that a training job is ended with the step
    code = main()
    ignore_signals()
    end_process(code)
