"""A team's TFX pipeline with its own Beam component, which multiplies the rows by imported prices."""

import json
import os
import pathlib

import apache_beam as beam
import tensorflow as tf
from tfx import v1 as tfx
from tfx.dsl.components.base.base_beam_component import BaseBeamComponent
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.dsl.components.base.executor_spec import BeamExecutorSpec
from tfx.types.artifact import Artifact
from tfx.types.component_spec import ChannelParameter, ComponentSpec


class Prices(Artifact):
    """The price of each item."""

    TYPE_NAME = "Prices"


class Bills(Artifact):
    """The sum of each customer."""

    TYPE_NAME = "Bills"


def amount(serialized, prices):
    """Returns the customer of a row and what the row costs."""
    row = tf.train.Example.FromString(serialized).features.feature
    item = row["item"].bytes_list.value[0].decode()
    return row["customer"].bytes_list.value[0].decode(), row["number"].int64_list.value[0] * prices[item]


class BillsExecutor(BaseBeamExecutor):
    """Sums up by customer."""

    def Do(self, input_dict, output_dict, exec_properties):
        """Writes a line for each customer."""
        (examples,), (prices,), (bills,) = (
            *(input_dict[name] for name in ("examples", "prices")),
            output_dict["bills"],
        )
        price_of = json.loads(pathlib.Path(prices.uri, "prices.json").read_text())
        with self._make_beam_pipeline() as pipeline:
            (
                pipeline
                | beam.io.ReadFromTFRecord(os.path.join(examples.uri, "Split-*", "*.gz"))
                | beam.Map(amount, price_of)
                | beam.CombinePerKey(sum)
                | beam.MapTuple(lambda customer, total: f"{customer} {total}")
                | beam.io.WriteToText(os.path.join(bills.uri, "bills"), num_shards=1)
            )


class BillsSpec(ComponentSpec):
    """Its inputs and outputs."""

    PARAMETERS = {}
    INPUTS = {
        "examples": ChannelParameter(type=tfx.types.standard_artifacts.Examples),
        "prices": ChannelParameter(type=Prices),
    }
    OUTPUTS = {"bills": ChannelParameter(type=Bills)}


class BillsGen(BaseBeamComponent):
    """The component."""

    SPEC_CLASS = BillsSpec
    EXECUTOR_SPEC = BeamExecutorSpec(BillsExecutor)

    def __init__(self, examples, prices):
        bills = tfx.dsl.Channel(type=Bills)
        super().__init__(BillsSpec(examples=examples, prices=prices, bills=bills))


def create_pipeline(folder, cache: bool = True):
    """Returns a pipeline of the CSV files in `folder/rows`, and of `folder/prices`."""
    example_gen = tfx.components.CsvExampleGen(input_base=os.path.join(folder, "rows"))
    importer = tfx.dsl.Importer(source_uri=os.path.join(folder, "prices"), artifact_type=Prices).with_id(
        "Prices"
    )
    bills_gen = BillsGen(example_gen.outputs["examples"], importer.outputs["result"])
    return tfx.dsl.Pipeline(
        pipeline_name="bills",
        pipeline_root=os.path.join(folder, "elsewhere"),
        components=[example_gen, importer, bills_gen],
        enable_cache=cache,
    )
