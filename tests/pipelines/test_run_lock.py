import os

import pytest

from pipelines.errors import BadInputError
from pipelines.run_lock import is_locked, locked


def test_one_run_at_a_time(tmp_path):
    root = tmp_path / "root"
    assert not is_locked(root)
    with locked(root):
        assert is_locked(root)
        with pytest.raises(BadInputError, match=f"process {os.getpid()}"), locked(root):
            pass
    assert not is_locked(root)
    with locked(root):
        pass
