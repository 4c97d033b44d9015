import logging

import pytest

from pipelines.config.notify import NotifyConfig
from pipelines.scheduling.notify.delivery import DeliveryError
from pipelines.scheduling.notify.notification import of_missed
from pipelines.scheduling.notify.outbox import Outbox
from pipelines.scheduling.ticks import iso, time_tick
from tests.pipelines.scheduling.conftest import START

CONFIG = NotifyConfig(command="tell", on=("missed",))


@pytest.fixture
def letter(root):
    return of_missed(root, (time_tick("trips", START),), iso(START))


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
