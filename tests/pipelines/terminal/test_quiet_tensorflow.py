import logging
import os
import subprocess
import sys

import pytest

from pipelines.terminal.quiet_tensorflow import without_harmless_warnings

# A process of its own: pytest has its own hold on the descriptors.
SCRIPT = """
import os, sys
from pipelines.terminal.quiet_tensorflow import quiet_tensorflow

LINES = b'''WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
I0000 00:00:1795439723.779558   28445 port.cc:153] oneDNN custom operations are on.
E0000 00:00:1795619991.451715   26046 cuda_platform.cc:52] failed call to cuInit: UNKNOWN ERROR (303)
E0000 00:00:1796015949.603342   31903 util.cc:131] oneDNN supports DT_STRING only on platforms with AVX-512.
E0000 00:00:1796031308.995410   23086 util.cc:131] oneDNN supports DT_INT64 only on platforms with AVX-512.
E0000 00:00:1795439723.779558   28445 port.cc:153] an error
'''
try:
    with quiet_tensorflow():
        os.write(2, LINES)
        print("from Python", file=sys.stderr)
        raise LookupError
except LookupError:
    print("behind it", file=sys.stderr)
"""


@pytest.mark.parametrize(("level", "num_greetings"), [("2", 0), ("0", 5)])
def test_only_greetings_are_left_out_and_only_where_they_are_not_wanted(level, num_greetings):
    words, environment = [sys.executable, "-c", SCRIPT], {**os.environ, "TF_CPP_MIN_LOG_LEVEL": level}
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    lines = ran.stderr.splitlines()
    assert [line[-10:] for line in lines[num_greetings:]] == ["] an error", "rom Python", "behind it"]
    assert len(lines) == num_greetings + 3


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("absl", "`%s` is not a valid tf.function parameter name. Sanitizing to `%s`."),
        ("tensorflow", "`%s`: Unable to create a python object for variable %s"),
    ],
)
@pytest.mark.parametrize("level", ["0", "2"])
def test_columns_names_and_old_variables_are_no_reason_to_warn(caplog, monkeypatch, level, name, text):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", level)
    logger = logging.getLogger(name)
    with without_harmless_warnings():
        logger.warning(text, "a b", "a_b")
        logger.warning("another one")
    logger.warning(text, "c d", "c_d")
    said = [record.getMessage().split()[0] for record in caplog.records]
    assert said == [*(["`a"] if level == "0" else []), "another", "`c"]
