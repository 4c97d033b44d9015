import signal
import time

from pipelines.scheduling.clock import Clock, Stop


def test_a_sleep_lasts_until_the_process_is_to_end_and_times_have_their_zone():
    stop = Stop()
    former = signal.signal(signal.SIGALRM, stop.request)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        begun = time.monotonic()
        Clock(stop).sleep(30)
        assert stop.requested
        assert 0.1 < time.monotonic() - begun < 10
    finally:
        signal.signal(signal.SIGALRM, former)
    clock = Clock(Stop())
    begun = time.monotonic()
    clock.sleep(0.7)
    assert time.monotonic() - begun >= 0.7
    assert clock.now().utcoffset().total_seconds() == 0
    assert clock.monotonic() <= clock.monotonic()
