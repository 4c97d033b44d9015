import subprocess

from pipelines.run.environment import describe_environment, git_commit


def test_versions_and_host(tmp_path):
    found = describe_environment(tmp_path)
    assert {"host", "system", "processor", "python", "tensorflow", "tfx"} <= set(found)
    assert "git commit" not in found  # a folder outside of any working tree
    assert all(isinstance(value, str) for value in found.values())


def test_the_commit_and_what_differs_from_it(tmp_path):
    def git(*arguments):
        user = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", tmp_path, *user, *arguments], check=True, capture_output=True)

    git("init", "--quiet")
    assert git_commit(tmp_path) == ""  # no commit yet
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "--quiet", "-m", "one")
    commit = git_commit(tmp_path)
    assert len(commit) == 40
    (tmp_path / "b").write_text("not tracked")
    assert git_commit(tmp_path) == commit
    (tmp_path / "a").write_text("2")
    assert git_commit(tmp_path) == f"{commit}, with changes that are not committed"
    assert describe_environment(tmp_path)["git commit"].startswith(commit)


def test_without_git_nothing_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_commit(tmp_path) == ""
