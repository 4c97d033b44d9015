from datetime import timedelta

import pytest

from pipelines.errors import BadInputError
from pipelines.scheduling.ticks import Tick, time_tick
from tests.pipelines.scheduling.conftest import START


def tick(minute, **changes):
    return time_tick("trips", START + timedelta(minutes=minute)).changed(**changes)


def test_ticks_come_back_in_their_order(ledger):
    assert (ledger.newest(), ledger.unfinished(), ledger.last_run()) == (None, None, None)
    ledger.write(tick(3))
    ledger.write(tick(1, state="done", status="pushed"))
    ledger.write(tick(4, state="skipped", count=2))
    assert [one.due[14:16] for one in ledger.ticks()] == ["01", "03", "04"]
    assert ledger.newest() == tick(4, state="skipped", count=2)
    assert ledger.keys("2026013") == ledger.keys() != ledger.keys("span-") == []
    assert ledger.unfinished() == tick(3)
    assert ledger.last_run() == tick(3)
    assert ledger.read("20260131T090000Z") is None


def test_the_last_outcomes(ledger):
    ledger.write(tick(1, state="done", status="not_blessed"))
    ledger.write(tick(2, state="done", status="failed"))
    ledger.write(tick(3, state="skipped"))
    ended, good = ledger.last_ended()
    assert (ended.status, good.status) == ("failed", "not_blessed")


def test_old_ones_become_sums(ledger):
    for minute in range(1, 8):
        one = tick(minute, state="done", status="pushed" if minute % 3 else "failed", starts=1)
        ledger.write(one)
        ledger.output_file(one, "out").parent.mkdir(exist_ok=True)
        ledger.output_file(one, "out").touch()
    ledger.write(tick(8, state="skipped", count=5))
    before = ledger.counts()
    assert before == {"pushed": 5, "failed": 2, "skipped": 5}
    ledger.fold(kept=3)
    assert len(ledger.keys()) == 3
    assert len(list((ledger.folder / "output").iterdir())) == 2  # of 6 and 7
    assert ledger.counts() == before
    ledger.write(tick(9, state="done", status="pushed"))
    ledger.fold(kept=2)
    assert ledger.counts()["pushed"] == 6


def test_a_crash_between_the_sums_and_the_files_counts_none_twice(ledger, monkeypatch):
    for minute in range(1, 6):
        ledger.write(tick(minute, state="done", status="pushed"))

    def crash(file):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr("pipelines.scheduling.ledger.remove", crash)
        with pytest.raises(SystemExit):
            ledger.fold(kept=2)
    assert len(ledger.keys()) == 5
    assert ledger.counts() == {"pushed": 5}
    ledger.fold(kept=2)
    assert len(ledger.keys()) == 2
    assert ledger.counts() == {"pushed": 5}


def test_what_is_not_done_is_not_folded(ledger):
    ledger.write(tick(1, state="done", status="pushed"))
    ledger.write(tick(2))
    for minute in (3, 4, 5):
        ledger.write(tick(minute, state="done", status="pushed"))
    ledger.fold(kept=1)
    assert ledger.unfinished() == tick(2)
    assert ledger.last_ended()[0] == tick(5, state="done", status="pushed")
    assert len(ledger.keys()) == 2
    ledger.write(tick(2, state="done", status="failed"))
    ledger.fold(kept=1)
    assert ledger.counts() == {"pushed": 4, "failed": 1}


def test_a_span_that_came_late_is_the_last_outcome_and_is_counted(ledger):
    spans = [
        Tick("trips", f"span-{number}", START.isoformat(), "done", finished=finished, status=status)
        for number, finished, status in (
            (7, "2026-01-31T11:00:00+00:00", "pushed"),
            (8, "2026-01-31T12:00:00+00:00", "pushed"),
            (9, "2026-01-31T13:00:00+00:00", "pushed"),
            (6, "2026-01-31T14:00:00+00:00", "failed"),
        )
    ]
    for one in spans[:3]:
        ledger.write(one)
    ledger.fold(kept=2)
    ledger.write(spans[3])  # its key is below that of 7, which is in the sums
    assert ledger.last_ended() == (spans[3], spans[2])
    assert ledger.counts() == {"pushed": 3, "failed": 1}
    ledger.fold(kept=2)
    assert ledger.keys() == ["span-6", "span-9"]
    assert ledger.counts() == {"pushed": 3, "failed": 1}


def test_a_damaged_file_is_named(ledger):
    ledger.write(tick(1))
    file = ledger.folder / "ticks" / "20260131T100100Z.json"
    file.write_text('{"who": 1}')
    with pytest.raises(BadInputError, match=r"20260131T100100Z\.json is no tick"):
        list(ledger.ticks())
