"""Batches whose size depends on the examples alone; Beam would tune it by the clock."""

import contextlib
from collections.abc import Iterator

import tfx_bsl.coders.batch_util  # noqa: F401  Defines the flag.
from absl import flags

_FLAG = "tfxio_use_byte_size_batching"


@contextlib.contextmanager
def fixed_batches() -> Iterator[None]:
    """Makes Beam pipelines that are built in this context read examples in batches of a fixed size.

    tfx-bsl lets Beam choose the size of each batch by the time that earlier batches took, so sums of floats
    over batches are rounded differently in each run. In this context a batch ends at 20 MiB of serialized
    examples or at 8,192 examples. A program that has set the flag on its own command line keeps its value.

    Source: `--tfxio_use_byte_size_batching` of tfx-bsl 1.21, which is read where a pipeline is built.
    """
    before = flags.FLAGS[_FLAG].default
    flags.FLAGS.set_default(_FLAG, True)
    try:
        yield
    finally:
        flags.FLAGS.set_default(_FLAG, before)
