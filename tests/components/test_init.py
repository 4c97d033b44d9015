import subprocess
import sys

import pytest

import components


@pytest.mark.parametrize("name", components.__all__)
def test_every_public_name_resolves(name):
    assert getattr(components, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Tunr'"):
        components.Tunr  # noqa: B018


def test_importing_the_package_loads_no_heavy_library():
    heavy = "{'tensorflow', 'apache_beam', 'tfx', 'pyarrow'} & set(sys.modules)"
    code = f"import sys, components; heavy = {heavy}; assert not heavy, heavy"
    subprocess.run([sys.executable, "-c", code], check=True)
