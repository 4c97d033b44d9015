import http.client
import json
import logging
from datetime import timedelta

import pytest

from pipelines.config.notify import NotifyConfig
from pipelines.root import Root
from pipelines.scheduling.notify import letter as letters
from pipelines.scheduling.notify import outbox as outboxes
from pipelines.scheduling.notify.delivery_error import DeliveryError
from pipelines.scheduling.notify.notification import of_missed
from pipelines.scheduling.notify.outbox import Outbox
from pipelines.scheduling.ticks import iso, time_tick
from tests.pipelines.scheduling.conftest import START

CONFIG = NotifyConfig(command="tell", on=("missed",))


@pytest.fixture
def letter(root):
    return of_missed(Root(root), (time_tick("trips", START),), iso(START))


class Receiver:
    def __init__(self):
        self.got, self.problem = [], None

    def __call__(self, config, content):
        if self.problem:
            raise DeliveryError(self.problem)
        self.got.append((config, content))


@pytest.fixture
def receiver():
    return Receiver()


@pytest.fixture
def outbox(tmp_path, clock, receiver):
    return Outbox(tmp_path / "outbox", clock, receiver)


def send(outbox, config=CONFIG):
    outbox.send_due(lambda name: config if name == "trips" else None)


def test_it_is_sent_once(outbox, letter, receiver):
    outbox.put(letter, CONFIG)
    outbox.put(letter, CONFIG)
    assert len(outbox.pending()) == 1
    send(outbox)
    send(outbox)
    assert len(receiver.got) == 1
    assert receiver.got[0][1]["id"] == letter.id
    assert outbox.pending() == []


def test_what_is_not_to_be_told_is_not_kept(outbox, letter):
    outbox.put(letter, NotifyConfig(command="tell", on=("failed",)))
    outbox.put(letter, NotifyConfig(on=("missed",)))
    assert outbox.pending() == []


def test_it_is_tried_again_at_growing_distances(outbox, letter, receiver, clock, caplog):
    outbox.put(letter, CONFIG)
    receiver.problem = "mail is down"
    tried = []
    with caplog.at_level(logging.WARNING):
        for _ in range(200):
            before = outbox.pending()[0].attempts
            send(outbox)
            if outbox.pending()[0].attempts > before:
                tried.append(int((clock.now() - START).total_seconds()))
            clock.pass_by(10)
    # 10, 20, 40, ... seconds from one to the next.
    assert tried == [0, 10, 30, 70, 150, 310, 630, 1270]
    assert outbox.pending()[0].error == "mail is down"
    assert "tried again in 40 s: mail is down" in caplog.text
    receiver.problem = None
    clock.pass_by(3_600)
    send(outbox)
    assert len(receiver.got) == 1


def test_it_is_given_up_after_a_week(outbox, letter, receiver, clock, caplog):
    outbox.put(letter, CONFIG)
    receiver.problem = "gone"
    hours = 0
    while outbox.pending():
        send(outbox)
        clock.pass_by(3_600)
        hours += 1
        assert hours < 200
    assert hours >= 24 * 7
    assert "given up: gone" in caplog.text


def test_nobody_is_told_any_more(outbox, letter, receiver):
    outbox.put(letter, CONFIG)
    send(outbox, None)
    assert (outbox.pending(), receiver.got) == ([], [])


def test_a_damaged_letter_stops_no_other(outbox, letter, receiver, tmp_path, caplog):
    outbox.put(letter, CONFIG)
    (tmp_path / "outbox" / "a.json").write_text("{")
    (tmp_path / "outbox" / "b.json").write_text("{}")
    send(outbox)
    assert len(receiver.got) == 1
    assert "a.json is no notification" in caplog.text


def test_what_is_given_up_is_put_aside_with_its_reason(outbox, letter, receiver, clock, tmp_path):
    outbox.put(letter, CONFIG)
    clock.pass_by(8 * 86_400)
    receiver.problem = "gone"
    send(outbox)
    assert outbox.pending() == []
    (aside,) = outbox.undelivered()
    assert (aside.schedule, aside.reason) == ("trips", "gone")
    receiver.problem = None
    aside.file.rename(tmp_path / "outbox" / aside.file.name)  # sent again by hand
    send(outbox)
    assert len(receiver.got) == 1
    assert outbox.undelivered() == []


def test_what_nobody_is_to_be_told_any_more_is_put_aside(outbox, letter):
    outbox.put(letter, CONFIG)
    send(outbox, None)
    assert "the schedule is gone" in outbox.undelivered()[0].reason


@pytest.mark.parametrize(
    "error", [ValueError("SECRET"), RuntimeError("SECRET"), http.client.BadStatusLine("SECRET")]
)
def test_no_error_of_a_delivery_ends_the_scheduler(tmp_path, clock, letter, error, caplog):
    def fail(*_):
        raise error

    outbox = Outbox(tmp_path / "outbox", clock, fail)
    outbox.put(letter, CONFIG)
    send(outbox)
    assert outbox.pending()[0].attempts == 1
    assert "SECRET" not in caplog.text


@pytest.mark.parametrize(
    "change",
    [
        {"attempts": "many"},
        {"attempts": None},
        {"next_attempt": "soon"},
        {"content": {"time": "2026-01-31T10:00:00+00:00", "schedule": "trips"}},  # and no text
        {"content": []},
        {"taken": 5},
    ],
    ids=str,
)
def test_a_letter_that_cannot_be_used_is_put_aside(outbox, letter, receiver, tmp_path, change):
    outbox.put(letter, CONFIG)
    (file,) = (tmp_path / "outbox").glob("*.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    (found,) = outbox.undelivered()  # before a scheduler has looked
    assert "cannot be read" in found.reason
    send(outbox)
    (found,) = outbox.undelivered()
    assert found.file.parent == tmp_path / "outbox" / "undelivered"
    assert (outbox.pending(), receiver.got) == ([], [])


def test_a_letter_of_a_former_version_is_sent(outbox, letter, receiver, tmp_path):
    (tmp_path / "outbox").mkdir()
    content = letter.as_json()
    (tmp_path / "outbox" / "a.json").write_text(
        json.dumps({"schedule": "trips", "content": content, "next_attempt": "2026-01-31T10:00:00"})
    )
    send(outbox)
    assert [content["id"] for _, content in receiver.got] == [letter.id]


def test_on_a_full_disk_it_is_kept_in_memory(outbox, letter, receiver, clock, monkeypatch):
    monkeypatch.setattr(letters, "write_json", full_disk)
    outbox.put(letter, CONFIG)
    receiver.problem = "no network"
    for _ in range(3):
        send(outbox)
    assert [one.attempts for one in outbox.pending()] == [1]  # not at every look
    receiver.problem = None
    clock.pass_by(10)
    send(outbox)
    assert len(receiver.got) == 1
    assert outbox.pending() == []


def test_what_was_told_and_cannot_be_removed_is_not_told_again(
    outbox, letter, receiver, monkeypatch
):
    outbox.put(letter, CONFIG)
    monkeypatch.setattr(outboxes, "remove", full_disk)
    send(outbox)
    send(outbox)
    assert len(receiver.got) == 1


def full_disk(*_, **__):
    raise OSError("No space left on device")


def test_a_receiver_that_has_taken_it_does_not_get_it_again(tmp_path, clock, letter):
    asked = []

    def deliver(config, _):
        asked.append((config.command, config.webhook))
        raise DeliveryError("notify.webhook: no", taken=("command",) if config.command else ())

    outbox = Outbox(tmp_path / "outbox", clock, deliver)
    config = NotifyConfig(command="tell", webhook="http://a/b", on=("missed",))
    outbox.put(letter, config)
    send(outbox, config)
    clock.pass_by(10)
    send(outbox, config)
    clock.pass_by(20)
    send(outbox, config)
    assert asked == [("tell", "http://a/b"), (None, "http://a/b"), (None, "http://a/b")]


def test_a_receiver_that_fails_costs_one_try_at_a_time(outbox, root, receiver, clock):
    for minute in range(3):
        tick = time_tick("trips", START + timedelta(minutes=minute))
        outbox.put(of_missed(Root(root), (tick,), iso(START)), CONFIG)
    receiver.problem = "down"
    send(outbox)
    assert [one.attempts for one in outbox.pending()] == [1, 0, 0]
    assert outbox.next_attempt() == START + timedelta(seconds=10)
    clock.pass_by(10)
    send(outbox)
    assert [one.attempts for one in outbox.pending()] == [
        1,
        1,
        0,
    ]  # the next one: the first may be at fault
