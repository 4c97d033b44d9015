"""`pytest --cpu-budget`: a test that needs much processor time fails; and which files need most."""

import collections
import gc
import os
import sys
import time

import pytest

BUDGET_SECS = 2.0
"""Of a test's body, in this process and in those that it waited for; fixtures are not counted."""

LOOP_SECS = 0.13
"""CPU of `_loop_secs` on an idle machine. Where it takes longer, the machine is slower or busy."""

CROWDING = max(1.0, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) / (os.cpu_count() or 1))
"""Workers on a processor. They share its caches, so that each needs more CPU for the same work."""

NEW_MODULES = 50
"""The test that happens to import a library first is not to blame for it."""

_SECS_BEFORE = pytest.StashKey[float]()
_collector_secs = [0.0]
"""CPU of Python's garbage collector. A collection frees the graphs of many tests: up to 1.2 s."""
_secs_by_file: collections.Counter[str] = collections.Counter()


def pytest_addoption(parser):
    parser.addoption(
        "--cpu-budget", action="store_true", help=f"fail tests that need over {BUDGET_SECS} s of CPU"
    )


def _cpu_secs():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _loop_secs():
    before = _cpu_secs()
    sum(number * number for number in range(3_000_000))
    return _cpu_secs() - before


def _count_collection(phase, info):
    _collector_secs[0] += time.process_time() * (1 if phase == "stop" else -1)


def pytest_configure(config):
    if config.getoption("cpu_budget"):
        gc.callbacks.append(_count_collection)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item):
    before, modules = _cpu_secs() - _collector_secs[0], len(sys.modules)
    result = yield
    spent = _cpu_secs() - _collector_secs[0] - before
    if (
        item.config.getoption("cpu_budget")
        and spent > BUDGET_SECS
        and len(sys.modules) - modules < NEW_MODULES
        and not item.get_closest_marker("end_to_end")
        and spent > BUDGET_SECS * CROWDING * max(1, _loop_secs() / LOOP_SECS)
    ):
        pytest.fail(
            f"took {spent:.1f} s of CPU, and the budget is {BUDGET_SECS} s: make it cheaper, "
            "or mark it with pytest.mark.more",
            pytrace=False,
        )
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    item.stash[_SECS_BEFORE] = _cpu_secs()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    now = _cpu_secs()
    report.cpu_secs = now - item.stash[_SECS_BEFORE]  # travels from a worker to the controller
    item.stash[_SECS_BEFORE] = now
    return report


def pytest_runtest_logreport(report):
    # The last test's teardown ends the processes of the session, whose time is counted when they end.
    where = "what the session shares" if report.when == "teardown" else report.nodeid.split("::")[0]
    _secs_by_file[where] += report.cpu_secs


def pytest_terminal_summary(terminalreporter, config):
    if config.getoption("cpu_budget"):
        terminalreporter.section(f"CPU: {_secs_by_file.total():.0f} s, of which in")
        for file, secs in _secs_by_file.most_common(10):
            terminalreporter.line(f"{secs:6.1f} s  {file}")
