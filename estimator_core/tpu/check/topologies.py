"""TPU chips and grids of chips."""

from __future__ import annotations

import dataclasses
import math
import re

_GIB = 1 << 30
_FORM = re.compile(r"(v\d+[ep]?):(\d+x\d+(?:x\d+)?)")


@dataclasses.dataclass(frozen=True)
class Chip:
    """The resources of one core of a chip."""

    cores: int
    memory_bytes: int  # High-bandwidth memory of a core
    flops_per_sec: float  # Peak of bfloat16 multiplications and additions
    bytes_per_sec: float  # Peak bandwidth of the memory


def _of_chip(cores: int, gib: float, teraflops: float, gigabytes_per_sec: float) -> Chip:
    return Chip(
        cores,
        int(gib * _GIB) // cores,
        teraflops * 1e12 / cores,
        gigabytes_per_sec * 1e9 / cores,
    )


# Source: Google Cloud's documentation of each TPU version, per chip. The compiler decides whether a chip
# is one device or two.
CHIPS = {
    "v2": _of_chip(2, 16, 46, 700),
    "v3": _of_chip(2, 32, 123, 900),
    "v4": _of_chip(2, 32, 275, 1228),
    "v5e": _of_chip(1, 16, 197, 819),
    "v5p": _of_chip(1, 95, 459, 2765),
    "v6e": _of_chip(1, 32, 918, 1640),
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
