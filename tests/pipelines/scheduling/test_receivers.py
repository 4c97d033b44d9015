import pytest

from pipelines.config.notify import NotifyConfig
from pipelines.errors import DamagedFileError
from pipelines.scheduling.receivers import Receivers, current_receivers, without_receivers


@pytest.mark.parametrize(
    ("setting", "is_left"),
    [
        ("notify.webhook=https://hooks.example/secret", False),
        ('"notify".webhook=https://hooks.example/secret', False),
        ("trainer.notify=1", True),
    ],
)
def test_a_setting_of_notify_is_known_also_if_its_name_is_quoted(setting, is_left):
    assert bool(without_receivers([setting])) == is_left


def test_receivers_are_in_a_file_that_others_cannot_read(tmp_path):
    receivers = Receivers(notify=NotifyConfig(command="tell SECRET"), settings=("notify.command=x",))
    receivers.write(tmp_path)
    assert Receivers.read(tmp_path) == receivers
    assert (tmp_path / "notify.json").stat().st_mode & 0o077 == 0
    (tmp_path / "notify.json").write_text("{")
    with pytest.raises(DamagedFileError, match=r"notify\.json cannot be read"):
        Receivers.read(tmp_path)
    receivers.write(tmp_path)
    assert Receivers.read(tmp_path) == receivers


def test_the_configuration_counts_and_if_it_is_broken_the_last_readable(make_schedule, config_file, tmp_path):
    schedule = make_schedule()
    file, folder = tmp_path / f"{schedule.name}.json", tmp_path / schedule.name
    file.touch()
    Receivers(settings=('notify.on=["pushed"]',)).write(folder)
    expected = NotifyConfig(command="tell", on=("pushed",))
    assert current_receivers(schedule, folder) == expected
    (folder / "notify.json").write_text("[]")
    assert current_receivers(schedule, folder).command == "tell"
    Receivers(settings=('notify.on=["pushed"]',)).write(folder)
    assert current_receivers(schedule, folder) == expected
    config_file.write_text("[data")
    assert current_receivers(schedule, folder) == expected


def test_receivers_of_a_schedule_that_was_deleted_during_its_run_are_not_stored(make_schedule, tmp_path):
    folder = tmp_path / "deleted"
    assert current_receivers(make_schedule(), folder).command == "tell"
    assert not folder.exists()
