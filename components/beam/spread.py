"""Spreads elements over Beam's workers in an order that does not depend on chance."""

from collections.abc import Sequence
from typing import Any

import apache_beam as beam


class Spread(beam.PTransform):
    """Makes a PCollection whose elements several workers can process.

    Beam's `Create` and `Reshuffle` draw a random number for each element, so that elements with the
    same number swap places. Here the number of an element is its position, so a single worker processes
    the elements in their order.
    """

    def __init__(self, elements: Sequence[Any]) -> None:
        super().__init__()
        self._elements = list(elements)

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection:
        return (
            pipeline
            | "Create" >> beam.Create(list(enumerate(self._elements)), reshuffle=False)
            | "Spread" >> beam.GroupByKey()
            | "Elements" >> beam.FlatMap(lambda numbered: numbered[1])
        )
