from tfx.components.statistics_gen import component as stock
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from components import ParsedColumns, StatisticsGen
from components.statistics_gen.executor import Executor


def test_it_is_stock_but_for_its_executor_and_parsed_columns():
    examples = Channel(type=standard_artifacts.Examples)
    ours, stocks = StatisticsGen(examples=examples), stock.StatisticsGen(examples=examples)
    assert dict(ours.exec_properties) == dict(stocks.exec_properties)
    assert set(ours.outputs) == set(stocks.outputs)
    assert ours.executor_spec.executor_class is Executor
    # Executions of both have one type in ML Metadata: what was made before is found.
    assert (ours.type, ours.id) == (stocks.type, stocks.id)
    parsed = ParsedColumns("units.parse", {"price": {"euros": {"unit": "€"}}})
    properties = StatisticsGen(examples=examples, parsed_columns=parsed).exec_properties
    assert ParsedColumns.from_json(properties["parsed_columns"]) == parsed
    none = StatisticsGen(examples=examples, parsed_columns=ParsedColumns("units.parse", {}))
    assert dict(none.exec_properties) == dict(stock.StatisticsGen(examples=examples).exec_properties)
