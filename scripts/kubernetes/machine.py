"""Changes of a cluster for tests to the machine itself, which end with it."""

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

_HIERARCHIES = Path("/sys/fs/cgroup")
_CPU_SHARES = 4096
"""Weight of all pods together; a process that is in no group has 1024."""
# The kubelet changes these for the whole machine.
_SYSCTLS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
)


@contextlib.contextmanager
def kept_sysctls() -> Iterator[None]:
    """Restores the kernel's settings."""
    files = [path for name in _SYSCTLS if (path := Path("/proc/sys") / name).exists()]
    former = {path: path.read_text() for path in files}
    try:
        yield
    finally:
        for path, text in former.items():
            if path.read_text() != text:
                path.write_text(text)


@contextlib.contextmanager
def new_folders(paths: Iterable[str]) -> Iterator[None]:
    """Makes folders to mount on; removes those that did not exist."""
    new = [path for path in map(Path, paths) if not path.exists()]
    for path in new:
        path.mkdir(parents=True)
    try:
        yield
    finally:
        for path in new:
            path.rmdir()


@contextlib.contextmanager
def new_cgroups(name: str) -> Iterator[None]:
    """Makes a control group in each hierarchy of version 1, and removes it in the end."""
    hierarchies = [path.parent for path in _HIERARCHIES.glob("*/cgroup.procs")]
    if not (_HIERARCHIES / "memory/cgroup.procs").exists():
        raise RuntimeError("The cluster has only been made for machines with version 1 of cgroups.")
    groups = [path / name for path in hierarchies]
    _remove(groups)
    for group in groups:
        group.mkdir()
    for file in ("cpuset.cpus", "cpuset.mems"):  # a new group has none
        text = (_HIERARCHIES / "cpuset" / file).read_text()
        (_HIERARCHIES / "cpuset" / name / file).write_text(text)
    (_HIERARCHIES / "cpu" / name / "cpu.shares").write_text(str(_CPU_SHARES))
    try:
        yield
    finally:
        _remove(groups)


def _remove(groups: Sequence[Path]) -> None:
    """Removes groups with all groups in them."""
    # A group whose last process has just ended is busy for a moment.
    deadline = time.monotonic() + 30
    for group in groups:
        inner = [path.parent for path in group.rglob("cgroup.procs")]
        for path in sorted(inner, key=lambda path: len(path.parts), reverse=True):
            while True:
                try:
                    path.rmdir()
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.2)
