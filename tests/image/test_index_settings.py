"""scripts/image/index_settings.sh: the host's package indexes, as secrets of a build."""

import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts/image/index_settings.sh"


@pytest.fixture
def settings(tmp_path):
    """Returns the value of variables in a shell that has read the settings."""
    home = tmp_path / "home"
    home.mkdir()
    folder = tmp_path / "secrets"
    folder.mkdir()

    def settings(env, *names, pip_conf="", uv_toml=None, python="python3"):
        (home / "pip.conf").write_text(pip_conf)
        if uv_toml is not None:
            (home / ".config/uv").mkdir(parents=True)
            (home / ".config/uv/uv.toml").write_text(uv_toml)
        subprocess.run(
            [SCRIPT, folder],
            env={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "HOME": str(home),
                "PIP_CONFIG_FILE": str(home / "pip.conf"),
                "PYTHON3": python,
            }
            | env,
            check=True,
        )
        script = '. "$1"; shift; for name; do eval "printf \'%s\\n\' \\"\\${$name-unset}\\""; done'
        return subprocess.run(
            ["/bin/sh", "-c", script, "sh", folder / "indexes", *names],
            env={},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()

    settings.folder = folder
    return settings


def test_settings_of_pip_come_from_its_file(settings):
    pip_conf = (
        "[global]\n"
        "index-url = https://me:it's%20$HOME`id`@mirror.local/simple\n"
        "extra-index-url =\n    https://one.local/simple\n    https://two.local/simple\n"
        "[install]\ntrusted-host = mirror.local\n"
    )
    names = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST")
    assert settings({}, *names, pip_conf=pip_conf, python=sys.executable) == [
        "https://me:it's%20$HOME`id`@mirror.local/simple",
        "https://one.local/simple https://two.local/simple",
        "mirror.local",
    ]


def test_settings_of_uv_and_proxies_come_from_the_environment(settings):
    env = {
        "UV_DEFAULT_INDEX": "https://me:a'b$c\"d@mirror.local/simple",
        "https_proxy": "http://proxy.local:3128",
    }
    assert settings(env, "UV_DEFAULT_INDEX", "https_proxy", "UV_INDEX") == [*env.values(), "unset"]


def test_the_configuration_of_uv_is_a_secret_of_its_own(settings):
    text = '[[index]]\nurl = "https://mirror.local/simple"\ndefault = true\n'
    assert settings({}, "UV_CONFIG_FILE", uv_toml=text) == ["/run/secrets/uv_toml"]
    assert (settings.folder / "uv_toml").read_text() == text


def test_the_certificates_of_the_host_are_handed_in(settings, tmp_path):
    bundle = tmp_path / "company.crt"
    bundle.write_text("-----BEGIN CERTIFICATE-----\n")
    env = {"SSL_CERT_FILE": str(bundle)}
    assert settings(env, "PIP_CERT", "SSL_CERT_FILE") == ["/run/secrets/certificates"] * 2
    assert (settings.folder / "certificates").read_text() == bundle.read_text()


def test_a_host_without_settings_has_empty_files(settings):
    # No pip is asked, and uv has no configuration but perhaps that of the system.
    assert settings({}, "PIP_INDEX_URL", "UV_INDEX_URL", python="/bin/false") == ["unset"] * 2
    assert (settings.folder / "uv_toml").exists()
    assert (settings.folder / "certificates").exists()
