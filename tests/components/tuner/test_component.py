import pytest
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from components import Range, SearchSpace, Tuner, TunerSettings

EXAMPLES = Channel(type=standard_artifacts.Examples)
SETTINGS = TunerSettings(SearchSpace((Range("rate", 0.1, 1.0),)), trials=2)


def test_a_module_file_with_both_functions_needs_the_name_of_one(tmp_path):
    module = tmp_path / "taxi.py"
    module.write_text("def run_fn(args): pass\ndef trainer_fn(args, schema): pass\n")
    with pytest.raises(ValueError, match=r"taxi\.py defines both.*run_fn='run_fn'"):
        Tuner(examples=EXAMPLES, settings=SETTINGS, module_file=str(module))
    tuner = Tuner(examples=EXAMPLES, settings=SETTINGS, module_file=str(module), run_fn="run_fn")
    assert tuner.exec_properties["run_fn"] == "run_fn"
