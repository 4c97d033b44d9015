from tfx.components.transform import component as stock
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from components import Transform
from components.transform.executor import Executor


def test_it_has_stock_inputs_outputs_and_properties_and_an_executor_of_its_own():
    arguments = {
        "examples": Channel(type=standard_artifacts.Examples),
        "schema": Channel(type=standard_artifacts.Schema),
        "preprocessing_fn": "my_project.taxi.preprocessing_fn",
        "custom_config": {"depth": 3},
    }
    ours, stocks = Transform(**arguments), stock.Transform(**arguments)
    assert set(ours.inputs) == set(stocks.inputs)
    types, stock_types = ({key: c.type for key, c in one.outputs.items()} for one in (ours, stocks))
    assert types == stock_types
    assert dict(ours.exec_properties) == dict(stocks.exec_properties)
    assert ours.id == stocks.id == "Transform"
    assert ours.executor_spec.executor_class is Executor
