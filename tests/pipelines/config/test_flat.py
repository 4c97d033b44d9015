from pipelines.config.toml import flat_settings


def test_values_have_the_keys_that_set_takes():
    tree = {"name": "taxi", "data": {"path": "a.csv", "x": {"y": [1, {"z": 2}]}}, "columns": {}}
    assert flat_settings(tree) == {"name": "taxi", "data.path": "a.csv", "data.x.y": [1, {"z": 2}]}
