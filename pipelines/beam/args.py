"""Checks Beam options: Beam itself only logs unknown options, and ignores them."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from components.nearest import nearest_first
from pipelines.errors import BadInputError


def check_beam_args(args: Sequence[str]) -> None:
    """Checks that Beam knows the options and accepts their values."""
    if not args:
        return
    from apache_beam.options.pipeline_options import PipelineOptions

    parser = _Parser(add_help=False, allow_abbrev=False)
    for kind in _kinds(PipelineOptions):
        kind._add_argparse_args(parser)  # noqa: SLF001 - Beam's hook for users' options, too
    unknown = parser.parse_known_args(list(args))[1]
    if unknown:
        nearest = nearest_first(unknown[0].split("=")[0], parser.names)[:5]
        raise BadInputError(
            f"beam.args: Beam has no option {unknown[0]!r}. Did you mean {nearest[0]!r}? "
            f"Nearest: {', '.join(nearest)}."
        )


def _kinds(base: type) -> Iterator[Any]:
    """Yields the subclasses that define options."""
    for kind in base.__subclasses__():
        if "_add_argparse_args" in vars(kind):
            yield kind
        yield from _kinds(kind)


class _Parser(argparse.ArgumentParser):
    """Parser that records the names of its options, and raises instead of ending the process."""

    def __init__(self, **settings: Any):
        self.names: list[str] = []
        super().__init__(**settings)

    def add_argument(self, *names: Any, **settings: Any) -> argparse.Action:
        self.names += names
        return super().add_argument(*names, **settings)

    def error(self, message: str) -> NoReturn:
        raise BadInputError(f"beam.args: {message}.")
