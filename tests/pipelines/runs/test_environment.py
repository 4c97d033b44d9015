import os
import shutil
import subprocess

import pytest

from pipelines.runs.environment import describe_environment, git_commit


def test_versions_and_host(tmp_path):
    found = describe_environment(tmp_path)
    assert {"host", "system", "processor", "python", "tensorflow", "tfx"} <= set(found)
    assert "git commit" not in found  # a folder outside of any working tree
    assert all(isinstance(value, str) for value in found.values())


def git(folder, *arguments):
    """Runs git as the owner of a repository would."""
    settings = ("user.name=a", "user.email=a@b", "protocol.file.allow=always")
    options = [part for setting in settings for part in ("-c", setting)]
    command = ["git", "-C", folder, *options, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def repository(folder, *options, attributes=""):
    """Returns the commit of a new repository with a file `a` that git has to read to know its content."""
    folder.mkdir()
    git(folder, "init", "--quiet", *options)
    (folder / "a").write_text("1")
    (folder / ".gitattributes").write_text(attributes)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "one")
    os.utime(folder / "a", (1, 1))
    return git(folder, "rev-parse", "HEAD")


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_the_commit_and_what_differs_from_it(tmp_path, object_format):
    folder = tmp_path / "with space\u00e9"
    folder.mkdir()
    git(folder, "init", "--quiet", f"--object-format={object_format}")
    assert git_commit(folder) == ""  # no commit yet
    (folder / "a").write_text("1")
    (folder / "deep").mkdir()
    git(folder, "add", "a")
    git(folder, "commit", "--quiet", "-m", "one")
    commit = git_commit(folder)
    assert len(commit) == {"sha1": 40, "sha256": 64}[object_format]
    (folder / "b").write_text("not tracked")
    os.utime(folder / "a", (1, 1))
    (folder / "a").chmod(0o755)  # as on file systems that keep no mode
    index = (folder / ".git" / "index").read_bytes()
    assert git_commit(folder) == git_commit(folder / "deep") == commit
    assert (folder / ".git" / "index").read_bytes() == index
    git(folder, "worktree", "add", "--quiet", tmp_path / "second")
    assert git_commit(tmp_path / "second") == commit
    (folder / "a").write_text("2")
    assert git_commit(folder) == f"{commit}, with changes that are not committed"
    assert describe_environment(folder)["git commit"].startswith(commit)
    assert git_commit(tmp_path / "second") == commit


def test_changes_in_a_submodule_are_noted(tmp_path):
    repository(tmp_path / "inner")
    repository(tmp_path / "outer")
    git(tmp_path / "outer", "submodule", "add", "--quiet", tmp_path / "inner", "sub")
    git(tmp_path / "outer", "commit", "--quiet", "-m", "two")
    commit = git(tmp_path / "outer", "rev-parse", "HEAD")
    assert git_commit(tmp_path / "outer") == commit
    (tmp_path / "outer" / "sub" / "a").write_text("2")
    assert git_commit(tmp_path / "outer") == f"{commit}, with changes that are not committed"
    git(tmp_path / "outer", "submodule", "deinit", "--quiet", "--force", "sub")
    assert git_commit(tmp_path / "outer") == commit
    (tmp_path / "outer" / "sub").rmdir()
    (tmp_path / "outer" / "sub").symlink_to(".")
    assert git_commit(tmp_path / "outer") == f"{commit}, with changes that are not committed"


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("core.fsmonitor", "config"), ("core.fsmonitor", "include"), ("core.fsmonitor", "worktree"),
        ("core.fsmonitor", "submodule"), ("core.hooksPath", "config"), ("filter.x.clean", "config"),
        ("filter.x.clean", "submodule"), ("filter.x.process", "config"), ("diff.external", "config"),
        ("diff.x.textconv", "config"), ("core.pager", "config"), ("alias.status", "config"),
        ("core.sshCommand", "config"), ("remote.origin.url", "config"), ("no key, but a hook", "config"),
    ],
)  # fmt: skip
def test_no_program_that_a_repository_names_is_run(tmp_path, key, place):
    evil, folder = tmp_path / "evil", tmp_path / "repository"
    (tmp_path / "hooks").mkdir()
    for program in (evil, tmp_path / "hooks" / "post-index-change"):
        program.write_text(f"#!/bin/sh\necho run >> {tmp_path}/marker\nexit 1\n")
        program.chmod(0o755)
    repository(folder, attributes="* filter=x diff=x")
    if key == "no key, but a hook":
        shutil.copy(evil, folder / ".git" / "hooks" / "post-index-change")
        key = "x.y"
    values = {
        "core.hooksPath": f"{tmp_path}/hooks",
        "alias.status": f"!{evil}",
        "remote.origin.url": f"ext::{evil}",
    }
    values = {key: values.get(key, str(evil)), "pager.status": str(evil)}
    if key in ("core.sshCommand", "remote.origin.url"):  # git fetches an object that is missing
        tree = git(folder, "rev-parse", "HEAD^{tree}")
        (folder / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
        values = {
            "remote.origin.url": "ssh://localhost/x",
            "remote.origin.promisor": "true",
            "protocol.ext.allow": "always",
            **values,
        }
        git(folder, "config", "core.repositoryFormatVersion", "1")
        git(folder, "config", "extensions.partialClone", "origin")
    if place == "worktree":
        git(folder, "config", "extensions.worktreeConfig", "true")
    file = {"include": "more", "worktree": "config.worktree"}.get(place, "config")
    for name, value in values.items():
        git(folder, "config", "--file", folder / ".git" / file, name, value)
    if place == "include":
        git(folder, "config", "include.path", "more")
    if place == "submodule":
        repository(tmp_path / "outer")
        shutil.move(folder, tmp_path / "outer" / "sub")
        git(tmp_path / "outer", "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
        folder = tmp_path / "outer"
    (tmp_path / "marker").unlink(missing_ok=True)
    assert len(git_commit(folder)) >= 40
    assert not (tmp_path / "marker").exists()


def test_a_hook_of_another_repository_may_start_a_run(tmp_path, monkeypatch):
    commit = repository(tmp_path / "repository")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other" / ".git" / "index"))
    assert git_commit(tmp_path / "repository") == commit


def test_a_status_that_git_cannot_give_is_not_taken_for_changes(tmp_path):
    commit = repository(tmp_path / "repository")
    (tmp_path / "repository" / ".git" / "index").write_text("damaged")
    said = git_commit(tmp_path / "repository")
    assert said == f"{commit}; git cannot tell whether files differ from it"


def test_without_git_nothing_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_commit(tmp_path) == ""
