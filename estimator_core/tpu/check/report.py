"""The results of the check, by mode."""

from __future__ import annotations

import collections
import dataclasses
import math
import re
from collections.abc import Mapping

_GIB = 1 << 30
_FORM = re.compile(r"(v\d+[ep]?):(\d+x\d+(?:x\d+)?)")


@dataclasses.dataclass(frozen=True)
class RefusedOperation:
    """An operation that a TPU can't run."""

    type: str  # Type of the operation, such as "PyFunc"
    name: str  # Name of the operation in the graph
    made_at: str  # "file:line" of the model's code that made it, and that line; "" if it is unknown

    def __str__(self) -> str:
        where = f", made at {self.made_at}" if self.made_at else ""
        return f"operation {self.type!r} (node {self.name!r}{where})"


@dataclasses.dataclass(frozen=True)
class ModeReport:
    """The compiler's results for the step of one core in one mode."""

    mode: str
    topology: Topology  # Topology that it was compiled for
    error: str | None = None  # Error of the compilation; None if it succeeds
    # Operations that cause the error, as far as they are known.
    operations: tuple[RefusedOperation, ...] = ()
    # Bytes on one core by use: "arguments" (variables and the batch), "outputs", "aliases" (outputs
    # in the memory of arguments), "temporaries" and "code".
    memory: Mapping[str, int] = dataclasses.field(default_factory=dict)
    # (kind, bytes on one core) of each operation that synchronizes the cores.
    collectives: tuple[tuple[str, int], ...] = ()
    flops: float = 0.0  # Floating-point operations of a step on one core, by the compiler's count
    # Bytes that a step reads and writes in the memory of one core, by its count.
    bytes_accessed: float = 0.0
    compile_secs: float = 0.0  # Seconds of the compilation

    @property
    def compiles(self) -> bool:
        """True if it compiles for the TPU."""
        return self.error is None

    @property
    def memory_bytes(self) -> int:
        """Maximum memory of one core."""
        memory = self.memory
        return sum(memory.values()) - 2 * memory.get("aliases", 0) if memory else 0

    @property
    def fits(self) -> bool:
        """True if the memory of the core is large enough."""
        return self.memory_bytes <= self.topology.chip.memory_bytes

    @property
    def step_secs(self) -> float:
        """Lower bound of the time of a step: the longer one of its arithmetic and its memory accesses.

        It excludes the collectives, the input and the host. No step was run.
        """
        chip = self.topology.chip
        return max(self.flops / chip.flops_per_sec, self.bytes_accessed / chip.bytes_per_sec)

    def __str__(self) -> str:
        if not self.compiles:
            lines = [f"{self.mode}: does not compile for {self.topology.name}"]
            lines += [f"  {operation}" for operation in self.operations]
            return "\n".join([*lines, f"  {self.error}"])
        meetings = collections.Counter(kind for kind, _ in self.collectives)
        meeting = ", ".join(f"{count} {kind}" for kind, count in meetings.items()) or "none"
        total = sum(size for _, size in self.collectives)
        return (
            f"{self.mode}: compiles for {self.topology.name} ({self.topology.num_cores} cores)\n"
            f"  memory per core: {_size(self.memory_bytes)} of {_size(self.topology.chip.memory_bytes)}"
            f"{'' if self.fits else ': TOO MUCH'}\n"
            f"  collectives: {meeting}, {_size(total)} per step\n"
            f"  per step and core: {self.flops:.3g} flops, {_size(self.bytes_accessed)} of memory traffic: "
            f"at least {1e6 * self.step_secs:.3g} us"
        )


@dataclasses.dataclass(frozen=True)
class Report:
    """The results of the check. `str` of it is a text for people."""

    modes: Mapping[str, ModeReport]  # The report of each mode that was compiled

    @property
    def compiles(self) -> bool:
        """True if there are modes, and all of them compile and fit into the memory."""
        return bool(self.modes) and all(mode.compiles and mode.fits for mode in self.modes.values())

    def __str__(self) -> str:
        return "\n".join(map(str, self.modes.values()))


def _size(num_bytes: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if num_bytes < 1024:
            return f"{num_bytes:.4g} {unit}"
        num_bytes /= 1024
    return f"{num_bytes:.4g} GiB"


@dataclasses.dataclass(frozen=True)
class Chip:
    """The resources of one core of a chip."""

    cores: int
    memory_bytes: int  # High-bandwidth memory of a core
    flops_per_sec: float  # Peak of bfloat16 multiplications and additions
    bytes_per_sec: float  # Peak bandwidth of the memory


def _chip(cores: int, gib: float, teraflops: float, gigabytes_per_sec: float) -> Chip:
    return Chip(cores, int(gib * _GIB) // cores, teraflops * 1e12 / cores, gigabytes_per_sec * 1e9 / cores)


# Source: Google Cloud's documentation of each TPU version, per chip. The compiler decides whether a chip
# is one device or two.
CHIPS = {
    "v2": _chip(2, 16, 46, 700),
    "v3": _chip(2, 32, 123, 900),
    "v4": _chip(2, 32, 275, 1228),
    "v5e": _chip(1, 16, 197, 819),
    "v5p": _chip(1, 95, 459, 2765),
    "v6e": _chip(1, 32, 918, 1640),
}


@dataclasses.dataclass(frozen=True)
class Topology:
    """TPU chips in a grid."""

    name: str  # Name of the topology, such as "v5e:2x2"
    chip: Chip  # Resources of one core
    num_cores: int


def topology_named(name: str) -> Topology:
    """Returns the topology of a name, such as "v5e:2x2" or "v4:2x2x1"."""
    form = _FORM.fullmatch(name)
    if not form or form[1] not in CHIPS:
        raise ValueError(
            'topology must be a chip and its grid, such as "v5e:2x2" or "v4:2x2x1"; chips are '
            f"{', '.join(CHIPS)}. Received: topology={name!r}"
        )
    chip = CHIPS[form[1]]
    return Topology(name, chip, chip.cores * math.prod(map(int, form[2].split("x"))))
