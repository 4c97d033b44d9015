import pytest

from pipelines.beam.options import check_beam_args
from pipelines.errors import BadInputError


def test_options_that_beam_has():
    check_beam_args(["--direct_num_workers=2", "--direct_running_mode=multi_threading"])
    check_beam_args(["--runner=DirectRunner", "--temp_location=/somewhere"])


@pytest.mark.parametrize(
    ("arg", "message"),
    [
        ("--direct_num_worker=2", r"no option '--direct_num_worker=2'.*mean '--direct_num_workers'"),
        ("--direct_num_workers=two", r"--direct_num_workers: invalid int value: 'two'"),
        ("--direct_running_mode=x", r"--direct_running_mode: invalid choice: 'x'"),
    ],
)
def test_options_that_it_has_not(arg, message):
    with pytest.raises(BadInputError, match=rf"^beam\.args: .*{message}"):
        check_beam_args(["--runner=DirectRunner", arg])
