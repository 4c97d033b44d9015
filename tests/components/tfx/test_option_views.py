import pickle

from apache_beam.options.pipeline_options import PipelineOptions, SetupOptions, StandardOptions

import components  # noqa: F401


def test_a_view_is_made_once_and_shares_its_values() -> None:
    options = PipelineOptions(["--runner=SparkRunner"])
    view = options.view_as(StandardOptions)
    assert options.view_as(StandardOptions) is view
    view.runner = "FlinkRunner"
    assert options.view_as(SetupOptions).view_as(StandardOptions).runner == "FlinkRunner"
    assert options.get_all_options()["runner"] == "FlinkRunner"


def test_options_and_their_copies_have_views_of_their_own() -> None:
    options = PipelineOptions(["--runner=SparkRunner"])
    options.view_as(StandardOptions)
    copy = pickle.loads(pickle.dumps(options))
    copy.view_as(StandardOptions).runner = "FlinkRunner"
    assert options.view_as(StandardOptions).runner == "SparkRunner"
