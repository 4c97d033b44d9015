import pytest


@pytest.fixture(scope="session")
def compiler():
    """Skips a test where the TPU's compiler is not installed, as in `make test-matrix`."""
    pytest.importorskip("jax", reason="the extra tpu-check is not installed")
    pytest.importorskip("libtpu", reason="the extra tpu-check is not installed")
