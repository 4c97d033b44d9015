from tfx.components.statistics_gen import component as stock
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from components import StatisticsGen
from components.statistics_gen.executor import Executor


def test_it_is_stock_but_for_its_executor() -> None:
    examples = Channel(type=standard_artifacts.Examples)
    ours, stocks = StatisticsGen(examples=examples), stock.StatisticsGen(examples=examples)
    assert dict(ours.exec_properties) == dict(stocks.exec_properties)
    assert set(ours.outputs) == set(stocks.outputs)
    assert ours.executor_spec.executor_class is Executor
    # Executions of both have one type in ML Metadata: what was made before is found.
    assert (ours.type, ours.id) == (stocks.type, stocks.id)
