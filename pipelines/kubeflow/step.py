"""Runs a step in its container: `python -m pipelines.kubeflow.step COMPONENT ...`.

The log goes to standard error; its last line is the reason of a failure.
"""

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from pipelines.errors import BadInputError, RunFailedError
from pipelines.kubeflow.compile.dag import END, PLAN, RECORD
from pipelines.kubeflow.passing_errors import tried_again
from pipelines.kubeflow.run_folder import RunFolder, StepEnd, current_kubeflow_run
from pipelines.kubeflow.step_environment import configured_retries, set_umask
from pipelines.root import Root
from pipelines.root.signs_of_life import giving_signs
from pipelines.terminal.ending import end_process
from pipelines.terminal.signals import (
    ignore_further_signals,
    ignore_signals,
    raise_at_signals,
    signal_has_come,
)

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2

_STOPPED = "stopped by a signal: the run was terminated, the step took too long, or its pod was evicted"
_LOCK_SECS = 60.0
_LOCK_SECS_AT_SIGNAL = 10.0
"""Times to wait for the root's lock, to record a failure. Kubernetes kills a pod 30 s after its signal."""


def main(arguments: Sequence[str] | None = None, sleep: Callable[[float], None] = time.sleep) -> int:
    """Runs a step and returns its exit code.

    After an error that may pass, the step is tried again, as often as its environment says.
    """
    args = _parsed(arguments)
    start = time.monotonic()
    run = {PLAN: _plan, RECORD: _record, END: _end}.get(args.component, _component)

    def say(error: BaseException, delay_secs: float, number: int) -> None:
        traceback.print_exception(error)
        text = f"this may be temporary. Retry {number} of {retries} in {delay_secs:g} s"
        print(f"{args.component}: {_reason(error)[0]}: {text}", file=sys.stderr, flush=True)

    with ExitStack() as alive:
        try:
            try:
                retries = configured_retries(os.environ)
                if args.component != END:
                    folder = _folder(args)
                    alive.enter_context(giving_signs(folder.path, args.component))
                    folder.forget_step(args.component)  # a failure of an earlier try
                end = tried_again(lambda: run(args, start), retries, say, sleep)
            finally:
                ignore_further_signals()
        except BaseException as error:  # the user's code may raise SystemExit, too
            if signal_has_come():
                ignore_signals()  # a second one must not end the process before the record is written
            with suppress(OSError):  # a signal ends KFP's launcher, which reads the output, first
                traceback.print_exc()
            reason, is_bad_input = _reason(error)
            elapsed_secs = time.monotonic() - start
            end = StepEnd(
                args.component, elapsed_secs, reason, is_bad_input, is_interrupted=signal_has_come()
            )
            _keep_failure(args, end)
            with suppress(OSError):
                print(f"{args.component}: {reason}", file=sys.stderr, flush=True)
            return EXIT_BAD_INPUT if is_bad_input else EXIT_FAILED
        if end is not None:
            _folder(args).write_step(end)
    return 0


def _plan(args: argparse.Namespace, start: float) -> None:
    from pipelines.kubeflow.compile.parameters import configuration_of_run
    from pipelines.kubeflow.steps.plan_step import plan_on_kubeflow

    config = configuration_of_run(args.config, args.parameter)
    keys = plan_on_kubeflow(args.root, config, args.run, [name for name, _ in args.key_of])
    for name, file in args.key_of:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(keys[name], encoding="utf-8")


def _record(args: argparse.Namespace, start: float) -> None:
    from pipelines.kubeflow.steps.record_steps import record_run

    record = record_run(args.root, args.run)
    print(json.dumps(record.summary(), allow_nan=False), file=sys.stderr)


def _end(args: argparse.Namespace, start: float) -> None:
    from pipelines.kubeflow.steps.record_steps import end_run

    record = end_run(args.root, args.run)
    if record is None:
        print("The run ended before its record was written: see the step Plan.", file=sys.stderr)
    else:
        print(f"run {record.run_id}: {record.status}", file=sys.stderr)


def _component(args: argparse.Namespace, start: float) -> StepEnd:
    import components  # noqa: F401  - before anything of TFX: it makes TFDV importable
    from pipelines.kubeflow.steps.component_step import run_component
    from pipelines.kubeflow.steps.record_steps import reopen_run
    from pipelines.kubeflow.steps.step_code import check_code, user_code

    folder = _folder(args)
    planned = folder.read_plan()
    reopen_run(args.root, folder, args.component)
    with user_code(planned):
        check_code(planned.step(args.component), args.root)
        return run_component(args.root, folder, planned, args.component, start)


def keep_interruption(arguments: Sequence[str] | None = None) -> None:
    """Records that a signal stops this step: the step's main thread may have no time to.

    Kubernetes grants 30 s, but Argo stops the container 0.5 to 1.5 s after the end of KFP's launcher, which
    the same signal ends.
    """
    args = _parsed(arguments)
    if args.component == END or args.component in {end.component for end in _folder(args).failures()}:
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
            print(f"The reason could not be saved in {args.root}: {error}", file=sys.stderr)


def _folder(args: argparse.Namespace) -> RunFolder:
    return RunFolder(args.root, args.run or current_kubeflow_run(args.executor_input))


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    options = list(sys.argv[1:] if arguments is None else arguments)
    parameters = []
    while "--parameter" in options:  # a value may begin with '-', and argparse would refuse it
        start = options.index("--parameter")
        parameters.append(options[start + 1 : start + 3])
        del options[start : start + 3]
    args = _parser().parse_args(options)
    args.parameter = parameters
    return args


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m pipelines.kubeflow.step", description=__doc__)
    parser.add_argument("component")
    parser.add_argument("--root", type=lambda text: Root(Path(text)), required=True)
    parser.add_argument("--run", default="")
    parser.add_argument("--executor-input", default="")
    parser.add_argument("--key", help="Makes the arguments of equal steps equal, for KFP's cache.")
    parser.add_argument("--config", default="")
    parser.add_argument("--key-of", nargs=2, action="append", default=[])
    return parser


if __name__ == "__main__":
    set_umask(os.environ)
    raise_at_signals(keep_interruption)  # so that a training job is ended with the step
    code = main()
    ignore_signals()
    end_process(code)
