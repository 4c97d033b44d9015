import os

import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.export import exporters


def receiver_fn():
    raise NotImplementedError  # only handed on


class Model:
    """Stands in for an Estimator: an export is an empty directory, numbered from 9 on."""

    def __init__(self, model_dir):
        self.model_dir = str(model_dir)
        self.calls = []

    def export_saved_model(self, export_dir_base, serving_input_receiver_fn, **settings):
        self.calls.append((export_dir_base, serving_input_receiver_fn, settings))
        path = os.path.join(export_dir_base, str(8 + len(self.calls)))
        os.makedirs(path)
        return path.encode()


def export(exporter, model, tmp_path, is_the_final_export=False):
    directory = str(tmp_path / exporter.name)
    return exporter.export(model, directory, "model.ckpt-3", {"loss": 1.0}, is_the_final_export)


def kept(tmp_path, name="exports"):
    return sorted(os.listdir(tmp_path / name), key=int)


SETTINGS = {"assets_extra": {"a": "b"}, "as_text": True}
MAKERS = {"final": est.FinalExporter, "latest": est.LatestExporter, "best": est.BestExporter}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("settings", [{}, SETTINGS], ids=["default", "own"])
def test_settings_reach_the_export(tmp_path, kind, settings):
    model = Model(tmp_path)
    exporter = MAKERS[kind]("exports", receiver_fn, **settings)
    assert exporter.name == "exports"
    assert export(exporter, model, tmp_path, True) == os.fsencode(tmp_path / "exports" / "9")
    expected = {"assets_extra": None, "as_text": False, **settings}
    assert model.calls == [
        (str(tmp_path / "exports"), receiver_fn, {**expected, "checkpoint_path": "model.ckpt-3"})
    ]


def test_the_final_exporter_waits_for_the_end(tmp_path):
    model, exporter = Model(tmp_path), est.FinalExporter("exports", receiver_fn)
    assert export(exporter, model, tmp_path) is None
    assert model.calls == []
    assert export(exporter, model, tmp_path, is_the_final_export=True) is not None
    assert kept(tmp_path) == ["9"]


@pytest.mark.parametrize(
    ("settings", "newest"),
    [
        ({"exports_to_keep": 1}, ["16"]),
        ({"exports_to_keep": 3}, ["14", "15", "16"]),
        ({}, ["12", "13", "14", "15", "16"]),
        ({"exports_to_keep": None}, [str(n) for n in range(9, 17)]),
        ({"exports_to_keep": 20}, [str(n) for n in range(9, 17)]),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["latest", "best"])
def test_the_newest_exports_are_kept(tmp_path, kind, settings, newest):
    model = Model(tmp_path)
    if kind == "best":
        settings = {**settings, "compare_fn": lambda best_eval_result, current_eval_result: True}
    exporter = MAKERS[kind]("exports", receiver_fn, **settings)
    for _ in range(8):
        assert export(exporter, model, tmp_path) is not None
    directories = exporters.export_directories(str(tmp_path / "exports"))
    assert [os.path.basename(path) for path in directories] == newest


def test_other_files_beside_the_exports_are_left_alone(tmp_path):
    model, exporter = Model(tmp_path), est.LatestExporter("exports", receiver_fn, exports_to_keep=2)
    for name in ("temp-8", "notes", "7", "8"):
        (tmp_path / "exports" / name).mkdir(parents=True)
    export(exporter, model, tmp_path)
    assert sorted(os.listdir(tmp_path / "exports")) == ["8", "9", "notes", "temp-8"]


def test_exports_come_in_the_order_of_their_numbers(tmp_path):
    assert exporters.export_directories(str(tmp_path / "none")) == []
    for name in ("10", "9", "100", "x", "temp-3"):
        (tmp_path / name).mkdir()
    found = exporters.export_directories(str(tmp_path))
    assert found == [str(tmp_path / name) for name in ("9", "10", "100")]


def test_an_export_that_can_not_be_deleted_is_a_warning(tmp_path, monkeypatch, caplog):
    def refuse(path):
        raise tf.errors.PermissionDeniedError(None, None, f"hands off {os.path.basename(path)}")

    model, exporter = Model(tmp_path), est.LatestExporter("exports", receiver_fn, exports_to_keep=2)
    monkeypatch.setattr("tensorflow.io.gfile.rmtree", refuse)
    results = [export(exporter, model, tmp_path) for _ in range(3)]
    assert results[2] == os.fsencode(tmp_path / "exports" / "11")
    assert kept(tmp_path) == ["9", "10", "11"]
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"Can not delete {tmp_path}/exports/9: hands off 9"
    ]


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        *(
            (kind, {"exports_to_keep": number}, f"exports_to_keep={number}")
            for kind in ("latest", "best")
            for number in (0, -2)
        ),
        *((kind, {"name": name}, f"name={name!r}") for kind in MAKERS for name in ("", None)),
        ("final", {"name": "model[1]"}, r"name must not contain \["),  # a pattern
    ],
)
def test_arguments_that_are_refused(kind, arguments, message):
    with pytest.raises(ValueError, match=message):
        MAKERS[kind](**{"name": "exports", "serving_input_receiver_fn": receiver_fn, **arguments})


def test_an_exporter_of_ones_own_has_a_name_and_exports():
    class Incomplete(est.Exporter):
        name = "incomplete"

    with pytest.raises(TypeError, match="export"):
        Incomplete()
