import apache_beam as beam
from apache_beam.transforms import util

from components.beam.spread import Spread

RUNNER = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"
LETTERS = "qwertzuiop"


def order_of(source, file):
    """Returns the letters of a PCollection in the order in which they come."""

    def note(letter):
        with file.open("a") as stream:
            stream.write(letter)

    with beam.Pipeline(RUNNER) as pipeline:
        _ = pipeline | source | beam.Map(note)
    return file.read_text()


def test_one_worker_takes_them_in_their_order_whatever_beam_draws(tmp_path, monkeypatch):
    draws = iter([5, 6, 7] * 100)
    monkeypatch.setattr(util.random, "randrange", lambda *_: next(draws))
    assert order_of(Spread(LETTERS), tmp_path / "spread") == LETTERS
    # Beam's own way brings those together that have drawn the same number.
    assert order_of(beam.Create(list(LETTERS)), tmp_path / "created") == "qrupwtiezo"


def test_equal_elements_and_none_at_all(tmp_path):
    assert order_of(Spread(["a", "b", "a", "a"]), tmp_path / "equal") == "abaa"
    (tmp_path / "none").touch()
    assert order_of(Spread([]), tmp_path / "none") == ""
