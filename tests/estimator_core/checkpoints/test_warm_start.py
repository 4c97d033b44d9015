import pytest

import estimator_core as est


def test_what_is_no_path_and_no_settings_is_refused():
    column = est.BinaryClassHead()  # any object
    with pytest.raises(ValueError, match="warm_start_from must be a path or WarmStartSettings"):
        est.DNNEstimator(column, [2], [], warm_start_from=7)
