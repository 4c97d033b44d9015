import pytest

from pipelines.config.load import load_config
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.rollback import rollback
from pipelines.root.served_run import named_as_in_root, serving_run, weighs_alike
from tests.pushed_versions import serve_version


@pytest.fixture
def root(killed, tmp_path):
    """Returns a function that has a run of a configuration push a version."""

    root = tmp_path / "root"

    def push(version, **given):
        record = killed.changed(
            run_id=f"2026-{version}",
            status="pushed",
            config=config(**given).model_dump(mode="json"),
            version=str(version),
        )
        Root(root).records.write(record)
        serve_version(root / "serving", version, record.run_id)
        return root

    return push


def config(data="jan.csv", label="y", **settings):
    texts = [f"{key.replace('__', '.')}={value}" for key, value in settings.items()]
    return load_config(data=data, label=label, settings=texts)


def test_a_new_file_is_the_same_pipeline_under_the_name_that_it_has(root):
    path = root(1000)
    for data in ("feb.csv", "jan.csv", "other/jan.csv"):
        assert named_as_in_root(Root(path), config(data)).name == "jan"
    given = root(2000, name="trips")
    assert named_as_in_root(Root(given), config("feb.csv")).name == "trips"
    assert named_as_in_root(Root(given), config("feb.csv", name="trips")).name == "trips"


def test_runs_with_other_weights_are_not_comparable(root):
    weights = {"data__weight": "w", "trainer__class_weights": "{late = 2}"}
    record = serving_run(Root(root(1000, **weights)))
    assert weighs_alike(record, config("feb.csv", **weights))
    assert not weighs_alike(record, config())
    assert not weighs_alike(record, config(**weights | {"trainer__class_weights": "{late = 3}"}))


def test_roots_that_are_empty_or_of_unknown_origin_take_any_pipeline(tmp_path):
    assert named_as_in_root(Root(tmp_path), config(name="trips")).name == "trips"
    assert serving_run(Root(tmp_path)) is None
    (tmp_path / "serving/5").mkdir(parents=True)
    assert named_as_in_root(Root(tmp_path), config()).name == "jan"


@pytest.mark.parametrize(
    ("before", "now", "message"),
    [
        ({}, {"label": "z"}, r"has data\.label = 'y'; received 'z'.*with --root\."),
        ({}, {"name": "trips"}, r"has name = 'jan'; received 'trips'.*or leave the name out\."),
        ({"name": "trips"}, {"name": "other"}, r"which has name = 'trips'; received 'other'"),
        (
            {"evaluator__label": "a_xf"},
            {"evaluator__label": "b_xf"},
            r"evaluator\.label = 'a_xf'; received 'b_xf'",
        ),
    ],
)
def test_another_pipeline_is_refused(root, before, now, message):
    path = root(1000, **before)
    with pytest.raises(BadInputError, match=f"serves version 1000 of the pipeline.*{message}"):
        named_as_in_root(Root(path), config("feb.csv", **now))


def test_a_label_that_was_not_named_is_not_another_one(root):
    assert named_as_in_root(Root(root(1000)), config(evaluator__label="y_xf")).name == "jan"
    path = root(2000, evaluator__label="y_xf")
    assert named_as_in_root(Root(path), config("feb.csv")).name == "jan"


def test_what_serves_after_a_rollback_counts(root):
    root(1000, label="y")
    path = root(2000, label="z")
    assert serving_run(Root(path)).version == "2000"
    assert named_as_in_root(Root(path), config(label="z")).data.label == "z"
    rollback(Root(path))
    assert serving_run(Root(path)).version == "1000"
    with pytest.raises(BadInputError, match="received 'z'"):
        named_as_in_root(Root(path), config(label="z"))


def test_a_root_of_a_tfx_pipeline_takes_no_other(tmp_path, of_tfx_pipeline):
    of_tfx_pipeline(tmp_path)
    with pytest.raises(BadInputError, match="has runs of the TFX pipeline 'team': use another --root"):
        named_as_in_root(Root(tmp_path), config())
