import pytest
from tfx.components.example_gen import component as stock

import components
from components.example_gen import executor
from components.example_gen.component import CsvExampleGen


def test_it_stands_for_stock_tfx_and_mixes_with_its_components():
    assert CsvExampleGen is components.CsvExampleGen
    assert issubclass(CsvExampleGen, stock.FileBasedExampleGen)
    example_gen = CsvExampleGen(input_base="data")
    statistics_gen = components.StatisticsGen(examples=example_gen.outputs["examples"])
    pipeline = components.Pipeline("test", "root", components=[statistics_gen, example_gen])
    assert list(pipeline.components) == [example_gen, statistics_gen]


@pytest.mark.parametrize(("text", "floats"), [(["zip", "a b"], []), ([], ["fare"]), (["z"], ["f"]), ([], [])])
def test_columns_of_a_given_type_reach_the_executor(text, floats):
    example_gen = CsvExampleGen(input_base="data", text_columns=text, float_columns=floats)
    properties = example_gen.exec_properties
    assert executor._columns(properties, executor.TEXT_COLUMNS_KEY) == text
    assert executor._columns(properties, executor.FLOAT_COLUMNS_KEY) == floats
    plain = CsvExampleGen(input_base="data").exec_properties
    types = {"a=b": "integer", "c": "text"}
    typed = CsvExampleGen(input_base="data", column_types=types).exec_properties
    assert executor._column_types(typed) == types
    assert (properties == plain) is not bool(text or floats)
