"""scripts/docs: the sources of the site of `make docs`."""

import importlib
import pathlib
import sys
import types

import pytest
import tomllib
import typer

import components
import estimator_core
from pipelines.cli.app import app
from pipelines.config.pipeline_config import PipelineConfig
from tests.docs.markdown import ROOT, read

FOLDER = ROOT / "scripts" / "docs"


@pytest.fixture(scope="module", autouse=True)
def scripts():
    """The scripts, which import each other by name."""
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))


def script(name):
    return importlib.import_module(name)


PACKAGES = {
    "components": components,
    "estimator_core": estimator_core,
    **{
        f"estimator_core.{name}": getattr(estimator_core, name)
        for name in ("experimental", "export", "inputs", "tpu", "v1")
    },
}


@pytest.mark.parametrize("package", PACKAGES)
def test_names_are_read_as_python_imports_them(package):
    module = PACKAGES[package]
    names = {name.path: name for name in script("public_names").public_names(package)}
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, types.ModuleType):
            assert f"{package}.{name}" not in names
        elif names[f"{package}.{name}"].alias_of is None:
            assert value.__module__ == names[f"{package}.{name}"].module


def test_tensorflow_s_names_are_no_names_of_ours():
    names = {name.path: name for name in script("public_names").public_names("estimator_core")}
    assert names["estimator_core.StopAtStepHook"].alias_of == "tf.compat.v1.train.StopAtStepHook"


@pytest.mark.parametrize("package", ["components", "estimator_core", "estimator_core.tpu"])
def test_each_name_stands_on_one_page(package):
    pages = script("api_pages")
    named = [
        name.path for page in pages.API_PAGES if page.package == package for name in pages.names_of(page)
    ]
    public = script("public_names").public_names(package)
    assert sorted(named) == sorted(name.path for name in public)


def test_each_page_of_the_reference_and_of_the_commands_has_its_tables():
    pages = script("api_pages")
    by_file = {page.file: pages.api_page(page) for page in pages.API_PAGES}
    assert "\n::: estimator_core.DNNClassifier\n" in by_file["reference/canned.md"]
    assert "\n::: components.Trainer\n" in by_file["reference/components.md"]
    assert "| `components.SchemaGen` | `tfx.comp" in by_file["reference/components.md"]
    assert "```python\nfrom components import CsvExampleGen" in by_file["reference/components.md"]
    page = script("command_page").command_page(app)
    group = typer.main.get_command(app)
    assert set(group.commands) <= {line.split()[1] for line in page.splitlines() if line.startswith("## ")}
    assert "\n## schema accept\n" in page
    _, _, rollback = page.partition("\n## rollback\n")
    rollback = rollback.partition("\n## ")[0]
    assert "| `--root DIR` | `pipeline_root` |" in rollback
    assert "| `--to VERSION` |  | Default: the version before" in rollback
    assert "estimator-pipelines compile -o FILE.yaml [OPTIONS]" in page


def test_every_key_of_the_configuration_has_a_meaning():
    pages = script("configuration_page")
    page = pages.configuration_page(PipelineConfig)
    for header, model in pages.sections(PipelineConfig):
        meanings = pages.attribute_meanings(model)
        _, _, table = page.partition(f"`{header}`\n" if "[" in header else f"{header}\n")
        table = table.partition("\n## ")[0]
        for key, field in model.model_fields.items():
            if f"| `{field.alias or key}` |" in table:
                assert meanings.get(key, "").endswith("."), f"{header} {key}"
    assert "## `[[evaluator.thresholds]]`" in page
    assert "## `[kubeflow.components.NAME]`" in page
    assert "| `max_depth` | integer | `6` | Depth of a boosted tree. |" in page
    assert '| `by` | `"row"`, `"column"`, `"time"`, `"files"` | `"row"` |' in page
    assert "| `label` | text | required |" in page
    assert '| `["failed", "held",' in page


def test_the_configuration_page_is_up_to_date():
    pages = script("configuration_page")
    command = "python -m scripts.docs.configuration_page"
    assert pages.PATH.read_text("utf-8") == pages.configuration_page(PipelineConfig), f"Run {command}"


def test_links_become_links_between_pages():
    site = script("links").Site(ROOT)
    text = "[a\nb](docs/spans.md#x) [c](CHANGELOG.md) [d](https://x.y) [e](#f)\n```\n[g](h.md)\n```\n"
    assert site.rewritten(text, "README.md") == (
        "[a\nb](spans.md#x) [c](changelog.md) [d](https://x.y) [e](#f)\n```\n[g](h.md)\n```\n"
    )
    assert site.rewritten('<a href="docs/spans.md#x">a</a>', "README.md") == '<a href="spans.md#x">a</a>'
    assert site.rewritten("![TFX 1.21](https://img.shields.io/badge/TFX-1.21)", "README.md") == "TFX 1.21"
    text = "[a](../README.md) [b](spans.md) [c](../pipelines/run.py)"
    assert site.rewritten(text, "docs/image.md") == (
        "[a](index.md) [b](spans.md) [c](sources/pipelines/run.py.md)"
    )
    assert list(site.shown_sources(text, "docs/image.md")) == ["pipelines/run.py"]


def test_every_page_has_its_place():
    stage = script("stage")
    pages = stage.pages()
    nav = tomllib.loads(read("zensical.toml"))["project"]["nav"]
    named = list(_pages(nav))
    assert sorted(named) == sorted(page for page in pages if not page.startswith("sources/"))
    assert pages["index.md"].startswith("# estimator-pipelines")
    assert "def preprocessing_fn" in pages["sources/pipelines/examples/taxi/taxi_module.py.md"]


def _pages(nav):
    for item in nav:
        below = next(iter(item.values())) if isinstance(item, dict) else item
        if isinstance(below, list):
            yield from _pages(below)
        else:
            yield below


def test_a_site_that_fetches_is_refused(tmp_path, monkeypatch):
    check = script("check_site")
    monkeypatch.setattr(check, "API_PAGES", script("api_pages").API_PAGES[2:3])
    names = [name.path for name in check.names_of(check.API_PAGES[0])]
    page = tmp_path / "reference" / "heads.html"
    page.parent.mkdir()
    good = "".join(f'<h2 id="{name}"></h2>' for name in names)
    page.write_text(f'{good}<a href="https://x.y">read</a><script src="../a.js"></script>')
    assert check.faults(tmp_path, ["reference/heads.md"]) == []
    page.write_text(f'{good}<link rel="stylesheet" href="https://cdn.x/font.css"><pre class="mermaid"></pre>')
    assert check.faults(tmp_path, ["reference/heads.md"]) == [
        "reference/heads.md: fetches https://cdn.x/font.css",
        "reference/heads.md: a mermaid diagram, for which a script is fetched from a CDN",
    ]
    page.write_text("")
    assert len(check.faults(tmp_path, ["reference/heads.md", "spans.md"])) == len(names) + 1


def test_the_site_needs_no_tensorflow():
    text = (ROOT / "pyproject.toml").read_text()
    group = tomllib.loads(text)["dependency-groups"]["docs"]
    assert not [line for line in group if line.startswith(("tensorflow", "tfx", "apache-beam"))]
    ignored = pathlib.Path(ROOT / ".gitignore").read_text().splitlines()
    assert {"/site/", "/build/", ".venv-docs/"} <= set(ignored)
