import subprocess
import sys

import pytest

import components


@pytest.mark.parametrize("name", components.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(components, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Tunr'"):
        components.Tunr  # noqa: B018


def test_importing_the_package_loads_no_heavy_library():
    code = (
        "import sys, components\n"
        "heavy = {'tensorflow', 'apache_beam', 'tfx', 'pyarrow'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
