"""scripts/image/build.sh, with stand-ins for the engines that write down their arguments."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SCRIPT = ROOT / "scripts/image/build.sh"


@pytest.fixture
def build(tmp_path):
    """Builds with a stand-in; returns the arguments, and its secrets during the build."""

    def build(engine, *arguments, env=None):
        folder = tmp_path / "bin"
        folder.mkdir()
        program = folder / engine
        program.write_text(
            "#!/bin/sh\n"
            '[ "$1" = info ] && exit 0\n'
            f'printf "%s\\n" "$@" >"{tmp_path}/arguments"\n'
            'for a; do case $a in id=indexes,src=*) cat "${a#id=indexes,src=}" '
            f'>"{tmp_path}/indexes";; esac; done\n'
        )
        program.chmod(0o755)
        subprocess.run(
            [SCRIPT, *arguments],
            env={
                "PATH": f"{folder}:/usr/bin:/bin",
                "HOME": str(tmp_path),
                "IMAGE_ENGINE": engine,
                **(env or {}),
            },
            check=True,
        )
        received = (tmp_path / "arguments").read_text().splitlines()
        return received, (tmp_path / "indexes").read_text()

    return build


@pytest.mark.parametrize(
    ("engine", "first"),
    [("docker", ["build"]), ("podman", ["build", "--layers"]), ("buildah", ["build", "--layers"])],
)
def test_each_engine_builds_this_checkout_under_the_name(build, engine, first):
    arguments, _ = build(engine, "registry.local/mine:3")
    assert arguments[: len(first) + 2] == [*first, "--tag", "registry.local/mine:3"]
    assert arguments[-1] == str(ROOT)
    assert not [argument for argument in arguments if argument.startswith("--build-arg")]


def test_indexes_are_secrets_that_are_gone_after_the_build(build):
    env = {"UV_DEFAULT_INDEX": "https://me:secret@mirror.local/simple"}
    arguments, indexes = build("docker", "mine", env=env)
    assert "https://me:secret@mirror.local/simple" in indexes
    assert not [argument for argument in arguments if "me:secret" in argument]
    files = re.findall(r"^id=(\w+),src=(.+)$", "\n".join(arguments), re.M)
    assert [name for name, _ in files] == ["indexes", "uv_toml", "certificates"]
    assert not [file for _, file in files if pathlib.Path(file).exists()]


def test_labels_say_what_was_built(build):
    arguments, _ = build("docker", "mine")
    labels = dict(argument.split("=", 1) for argument in arguments if argument.startswith("org."))
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.M).group(1)
    assert labels["org.opencontainers.image.version"] == version
    assert re.fullmatch(r"[0-9a-f]{40}", labels["org.opencontainers.image.revision"])
    assert re.fullmatch(r"[\d-]{10}T[\d:]{8}Z", labels["org.opencontainers.image.created"])


def test_another_base_can_be_named(build):
    arguments, _ = build("docker", "mine", "python@sha256:0123")
    assert arguments[arguments.index("--build-arg") + 1] == "PYTHON_IMAGE=python@sha256:0123"


@pytest.mark.parametrize(("engine", "option"), [("podman", "--pull=never"), ("buildah", "--pull-never")])
def test_a_base_of_this_machine_is_not_pulled(build, engine, option):
    assert option in build(engine, "mine", "localhost/python-stand-in:trixie")[0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("base", "pulls", "said"),
    [
        ((), False, "cannot pull the base image docker.io/library/python:3.13"),
        (("mirror.local:5000/python:3",), False, "the base image mirror.local:5000/python:3. "),
        (("python@sha256:ab",), False, "the base image docker.io/library/python@sha256:ab. "),
        ((), True, None),
        (("localhost/stand-in:1",), False, None),
    ],
)
def test_a_base_image_that_cannot_be_had_is_said_in_the_last_line(tmp_path, base, pulls, said):
    program = tmp_path / "docker"
    program.write_text(
        '#!/bin/sh\ncase $1 in info) ;; build) echo "step 1 failed" >&2; exit 7 ;; '
        f"pull) exit {0 if pulls else 1} ;; esac\n"
    )
    program.chmod(0o755)
    ran = subprocess.run(
        [SCRIPT, "mine", *base],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path), "IMAGE_ENGINE": "docker"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 7
    last = ran.stderr.splitlines()[-1]
    if said is None:
        assert last == "step 1 failed"
    else:
        assert said in last
        assert "IMAGE_BASE=$(scripts/image/stand_in_base.sh)" in last
