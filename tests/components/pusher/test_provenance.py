import pytest

from components.pusher.provenance import Provenance, read_provenance, write_provenance


@pytest.mark.parametrize("moved", [False, True])
def test_a_version_says_where_it_is_from_also_where_both_were_moved(tmp_path, moved):
    root = tmp_path / "root"
    base = root / "serving"
    write_provenance(Provenance("run-1", f"{root}/artifacts/Trainer/model/7"), str(base / "1000"), str(base))
    if moved:
        root = root.rename(tmp_path / "elsewhere")
    found = read_provenance(str(root / "serving"), 1000)
    assert found == Provenance("run-1", f"{root}/artifacts/Trainer/model/7")


def test_a_remote_model_stays_where_it_is_and_a_version_of_another_origin_says_nothing(tmp_path):
    write_provenance(Provenance("", "gs://bucket/model"), str(tmp_path / "5"), str(tmp_path))
    assert read_provenance(str(tmp_path), 5) == Provenance("", "gs://bucket/model")
    (tmp_path / "6").mkdir()
    assert read_provenance(str(tmp_path), 6) is None
