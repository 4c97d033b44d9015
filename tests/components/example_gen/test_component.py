import components  # noqa: I001  Before TFX: makes TFDV importable.

from tfx.components.example_gen import component as stock

from components.example_gen import executor
from components.example_gen.component import CsvExampleGen


def test_it_stands_for_stock_tfx_and_mixes_with_its_components() -> None:
    assert CsvExampleGen is components.CsvExampleGen
    assert issubclass(CsvExampleGen, stock.FileBasedExampleGen)
    example_gen = CsvExampleGen(input_base="data")
    statistics_gen = components.StatisticsGen(examples=example_gen.outputs["examples"])
    pipeline = components.Pipeline("test", "root", components=[statistics_gen, example_gen])
    assert list(pipeline.components) == [example_gen, statistics_gen]


def test_columns_that_stay_text_reach_the_executor() -> None:
    properties = CsvExampleGen(input_base="data", text_columns=["zip", "a b"]).exec_properties
    assert executor._text_columns(properties) == ["zip", "a b"]
    assert executor._text_columns(CsvExampleGen(input_base="data").exec_properties) == []
