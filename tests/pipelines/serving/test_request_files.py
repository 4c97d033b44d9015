import pytest

from pipelines.serving.request_files import RequestSample, SampleLimits, sampled_rows


@pytest.fixture
def sample_of(tmp_path, clock):
    """Returns a sample with limits, in `tmp_path / "requests"`."""

    def sample_of(share=1.0, **limits):
        return RequestSample(tmp_path / "requests", SampleLimits(share, **limits), clock, seed=1)

    return sample_of


def numbers(tmp_path, version=5, max_rows=1_000_000):
    return [row["x"] for row in sampled_rows(tmp_path / "requests", version, max_rows)]


def test_rows_are_kept_as_they_were_sent_without_what_is_missing(sample_of, tmp_path):
    sample = sample_of()
    cells = {"x": [1.5, None], "city": ["Zürich".encode(), b"\xff"], "n": [[1, 2], 3]}
    sample.add(5, cells, 2)
    sample.write()
    assert sampled_rows(tmp_path / "requests", 5, 10) == [
        {"x": 1.5, "city": "Zürich", "n": [1, 2]},
        {"city": "\ufffd", "n": 3},
    ]
    (file,) = (tmp_path / "requests").iterdir()
    assert file.name.startswith("5-1000-")
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_the_share_of_the_rows_is_drawn(sample_of, tmp_path):
    sample = sample_of(0.1)
    sample.add(5, {"x": list(range(5_000))}, 5_000)
    sample.write()
    # 500 are expected, with a standard deviation of sqrt(5000 * 0.1 * 0.9) = 21.
    assert 400 < len(numbers(tmp_path)) < 600


def test_each_row_of_a_window_has_the_same_chance_to_stay(sample_of, tmp_path):
    sample = sample_of(max_rows=400)
    for start in range(0, 4_000, 100):
        sample.add(5, {"x": list(range(start, start + 100))}, 100)
    sample.write()
    found = numbers(tmp_path)
    assert len(found) == len(set(found)) == 400
    # 100 of each thousand are expected, with a standard deviation below 10.
    counts = [sum(number // 1_000 == part for number in found) for part in range(4)]
    assert all(60 < count < 140 for count in counts), counts


def test_a_window_is_bounded_in_bytes(sample_of, tmp_path):
    sample = sample_of(max_bytes=6_000)
    sample.add(5, {"x": ["long " * 12, *range(1_000)]}, 1_001)
    sample.write()
    (file,) = (tmp_path / "requests").iterdir()
    assert 5_800 < file.stat().st_size <= 6_000
    found = numbers(tmp_path)
    # Lines have 11 bytes, so about 545 of 1,000 stay, half of them of each half; the standard deviation is 8.
    assert 240 < sum(number < 500 for number in found) < 305
    assert 240 < sum(number >= 500 for number in found) < 305


def test_a_window_ends_with_its_time_or_its_version(sample_of, tmp_path, clock):
    sample = sample_of(window_secs=60.0)
    for now, version, x in ((0.0, 5, 1), (59.0, 5, 2), (60.0, 5, 3), (61.0, 6, 4)):
        clock.now = 1_000.0 + now
        sample.add(version, {"x": [x]}, 1)
        sample.write()
    files = sorted(file.name.rpartition("-")[0] for file in (tmp_path / "requests").iterdir())
    assert files == ["5-1000", "5-1060", "6-1061"]
    assert numbers(tmp_path) == [3, 1, 2]  # the newest file first
    assert numbers(tmp_path, max_rows=1) == [3]
    assert numbers(tmp_path, version=6) == [4]


def test_servers_that_share_a_folder_keep_the_rows_of_each_other(sample_of, tmp_path):
    for sample, x in ((sample_of(), 1), (sample_of(), 2)):  # in the same second and process
        sample.add(5, {"x": [x]}, 1)
        sample.write()
    assert sorted(numbers(tmp_path)) == [1, 2]


def test_the_oldest_files_go(sample_of, tmp_path, clock):
    sample = sample_of(window_secs=1.0, max_files=3)
    (tmp_path / "requests").mkdir()
    (tmp_path / "requests" / "notes.jsonl").write_text("not ours")
    for number in range(6):
        clock.now += 10
        sample.add(5, {"x": [number]}, 1)
        sample.write()
    assert numbers(tmp_path) == [5, 4, 3]
    assert (tmp_path / "requests" / "notes.jsonl").exists()


def test_what_has_not_changed_is_not_written_again(sample_of, tmp_path):
    sample = sample_of()
    sample.write()
    assert not (tmp_path / "requests").exists()
    sample.add(5, {"x": [1]}, 1)
    sample.write()
    (file,) = (tmp_path / "requests").iterdir()
    file.unlink()
    sample.write()
    assert not file.exists()


def test_versions_that_answer_in_turn_have_a_window_each(sample_of, tmp_path, clock):
    sample = sample_of()
    for number in range(100):
        clock.now += 0.5
        sample.add(5 + number % 2, {"x": [number]}, 1)
        if number % 20 == 19:
            sample.write()
    assert numbers(tmp_path, version=5) == list(range(0, 100, 2))
    assert numbers(tmp_path, version=6) == list(range(1, 100, 2))
    assert len(list((tmp_path / "requests").iterdir())) == 2


def test_a_window_that_has_ended_is_written(sample_of, tmp_path, clock):
    sample = sample_of(window_secs=0.25)
    for number in range(3):
        sample.add(5, {"x": [number] * 50}, 50)
        clock.now += 0.25  # in the same second
    sample.add(6, {"x": [9]}, 1)
    sample.write()
    assert sorted(numbers(tmp_path)) == [0] * 50 + [1] * 50 + [2] * 50
    assert numbers(tmp_path, version=6) == [9]


def test_what_could_not_be_written_is_written_later(sample_of, tmp_path):
    sample = sample_of()
    sample.add(5, {"x": [1]}, 1)
    (tmp_path / "requests").write_text("a file")
    with pytest.raises(OSError, match="requests"):
        sample.write()
    (tmp_path / "requests").unlink()
    sample.write()
    assert numbers(tmp_path) == [1]


def test_half_a_line_costs_no_other_row(tmp_path, sample_of):
    sample = sample_of()
    sample.add(5, {"x": [1, 2]}, 2)
    sample.write()
    (file,) = (tmp_path / "requests").glob("*.jsonl")
    file.write_text('{"x": 7, "ci\n[8]\n' + file.read_text())
    assert numbers(tmp_path) == [1, 2]
