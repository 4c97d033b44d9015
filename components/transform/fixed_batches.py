"""Batches that depend on the examples alone, in place of those that Beam tunes by the clock."""

import contextlib
from collections.abc import Iterator

import tfx_bsl.coders.batch_util  # noqa: F401  Defines the flag.
from absl import flags

_FLAG = "tfxio_use_byte_size_batching"


@contextlib.contextmanager
def fixed_batches() -> Iterator[None]:
    """Lets Beam pipelines that are built within read examples in batches of a fixed size.

    tfx-bsl lets Beam choose the size of each batch, by the time that the ones before took. Sums of floats
    over batches are rounded differently then, in each run. Within this context a batch ends at 20 MiB of
    serialized examples or at 8,192 of them. A program that has set the flag on its own command line keeps
    its choice.

    Source: `--tfxio_use_byte_size_batching` of tfx-bsl 1.21, which is read where a pipeline is built.

    Raises:
        absl.flags.UnrecognizedFlagError: This tfx-bsl does not have the flag any more.
    """
    before = flags.FLAGS[_FLAG].default
    flags.FLAGS.set_default(_FLAG, True)
    try:
        yield
    finally:
        flags.FLAGS.set_default(_FLAG, before)
