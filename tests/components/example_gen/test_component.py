import components  # noqa: I001  Before TFX: makes TFDV importable.

from tfx.components.example_gen.csv_example_gen import component as stock

from components.example_gen.component import CsvExampleGen


def test_it_stands_for_stock_tfx_and_mixes_with_its_components() -> None:
    assert CsvExampleGen is components.CsvExampleGen
    assert issubclass(CsvExampleGen, stock.CsvExampleGen)
    example_gen = CsvExampleGen(input_base="data")
    statistics_gen = components.StatisticsGen(examples=example_gen.outputs["examples"])
    pipeline = components.Pipeline("test", "root", components=[statistics_gen, example_gen])
    assert list(pipeline.components) == [example_gen, statistics_gen]
