"""The Dockerfile's pins and the files of the context, without building."""

import pathlib
import re

import pytest
import tomllib

ROOT = pathlib.Path(__file__).parents[2]
INSTRUCTIONS = [
    " ".join(instruction.split())
    for instruction in re.sub(
        r"\\\n", " ", re.sub(r"(?m)^#.*\n", "", (ROOT / "Dockerfile").read_text())
    ).splitlines()
    if instruction.strip()
]
LAST_STAGE = INSTRUCTIONS[
    max(i for i, instruction in enumerate(INSTRUCTIONS) if instruction.startswith("FROM ")) :
]


def test_the_base_is_pinned_to_a_release_that_has_the_own_set_of_tfx():
    (base,) = (i.removeprefix("ARG PYTHON_IMAGE=") for i in INSTRUCTIONS if i.startswith("ARG PYTHON_IMAGE="))
    # Debian 13 has glibc 2.41; ML Metadata 1.21 and TFDV 1.21 need 2.39. The lock has them for 3.12 and 3.13.
    assert re.fullmatch(r"python:3\.1[23]\.\d+-slim-trixie", base)


def test_every_stage_begins_with_that_base_or_with_another_stage():
    stages = [i.split()[1] for i in INSTRUCTIONS if i.startswith("FROM ")]
    assert stages == ["${PYTHON_IMAGE}", "dependencies", "${PYTHON_IMAGE}"]


def test_uv_is_the_release_that_make_uses():
    version = re.search(r"^UV_VERSION := (\S+)", (ROOT / "Makefile").read_text(), re.M).group(1)
    assert any(f" uv=={version}" in i for i in INSTRUCTIONS if i.startswith("RUN"))


def test_the_last_stage_installs_no_compiler():
    installs = [i for i in LAST_STAGE if "apt-get install" in i]
    assert len(installs) == 1
    assert not re.search(r"g\+\+|gcc|build-essential|-dev\b", installs[0])


def test_the_last_user_is_not_root():
    assert [i for i in LAST_STAGE if i.startswith("USER ")] == ["USER 1000:1000"]


def test_our_code_is_a_layer_after_the_dependencies():
    copies = [i.split()[1:3] for i in LAST_STAGE if i.startswith("COPY ")]
    assert copies == [["--from=dependencies", "/opt/venv"], ["--from=project", "/opt/project"]]


def test_jax_is_not_in_it():
    (sync,) = (i for i in INSTRUCTIONS if "uv sync" in i)
    assert re.findall(r"--(?:all-)?extras?(?: (\S+))?", sync) == ["pipelines"]  # not `tpu-check`
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    packages = {package["name"]: package for package in lock["package"]}
    wanted, seen = [("estimator-pipelines", ("pipelines",))], set()
    while wanted:
        name, extras = wanted.pop()
        package = packages[name]
        needed = list(package.get("dependencies", ()))
        for extra in extras:
            needed += package.get("optional-dependencies", {}).get(extra, ())
        for requirement in needed:
            key = (requirement["name"], tuple(requirement.get("extra", ())))
            if key not in seen:
                seen.add(key)
                wanted.append(key)
    names = {name for name, _ in seen}
    assert {"tensorflow", "tfx", "kfp"} <= names
    assert not names & {"jax", "jaxlib", "libtpu"}


def test_what_asks_an_index_has_the_settings_mounted_and_nothing_bakes_them_in():
    asking = [i for i in INSTRUCTIONS if re.search(r"\b(pip install|uv sync)\b", i)]
    assert len(asking) == 3
    for instruction in asking:
        assert "--mount=type=secret,id=indexes" in instruction
        assert "--mount=type=secret,id=certificates" in instruction
    for instruction in INSTRUCTIONS:
        if instruction.split()[0] in ("ARG", "ENV", "COPY"):
            assert not re.search(r"INDEX|PROXY|secret|pip\.conf|uv\.toml", instruction, re.I)


@pytest.mark.parametrize("name", ["title", "description", "licenses", "base.name"])
def test_labels_of_the_image(name):
    (label,) = (i for i in LAST_STAGE if i.startswith("LABEL "))
    assert f"org.opencontainers.image.{name}=" in label


@pytest.mark.parametrize("name", ["created", "version", "revision"])
def test_labels_of_a_build(name):
    assert f"org.opencontainers.image.{name}=" in (ROOT / "scripts/image/build.sh").read_text()


def test_the_context_holds_what_is_copied_and_nothing_else():
    copied = {
        name for i in INSTRUCTIONS if i.startswith("COPY ") and "--from" not in i for name in i.split()[1:-1]
    }
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in ignore
    assert {line[1:] for line in ignore if line.startswith("!")} == copied


def test_what_the_wheel_holds_is_copied():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packaged = set(project["tool"]["hatch"]["build"]["only-include"])
    copied = {word for i in INSTRUCTIONS if i.startswith("COPY ") for word in i.split()}
    assert packaged <= copied
