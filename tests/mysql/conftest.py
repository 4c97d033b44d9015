import os
import shutil
import socket
import subprocess
import time

import pytest

PASSWORD = "s3cret-of-the-test"


def _command(*names):
    found = next(
        filter(
            None, (shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") for name in names)
        ),
        None,
    )
    if found is None:
        pytest.fail(f"There is no {names[0]}. Debian: apt-get install mariadb-server")
    return found


class Server:
    """A server of MariaDB in a folder of its own, on a free port.

    Args:
      folder: Folder of its data.
    """

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._socket = folder / "socket"
        data = folder / "data"
        subprocess.run(
            [
                _command("mariadb-install-db"), "--no-defaults", f"--datadir={data}", "--user=root",
                "--auth-root-authentication-method=normal", "--skip-test-db",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        self._process = subprocess.Popen(
            [
                _command("mariadbd"), "--no-defaults", f"--datadir={data}", "--user=root",
                f"--port={self.port}", "--bind-address=127.0.0.1", f"--socket={self._socket}",
            ],
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + 120
        while not self._socket.exists() and time.monotonic() < deadline:
            time.sleep(0.2)
        self.sql(f"create user 'pipe'@'%' identified by '{PASSWORD}'")

    def sql(self, statement):
        """Runs a statement, and returns its output."""
        return subprocess.run(
            [_command("mariadb"), "--no-defaults", f"--socket={self._socket}", "-Ne", statement],
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def database(self, name):
        """Makes a database, and returns its URL without the password."""
        self.sql(f"create database {name}; grant all on {name}.* to 'pipe'@'%'")
        return f"mysql://pipe@127.0.0.1:{self.port}/{name}"

    def stop(self):
        self._process.terminate()
        self._process.wait(60)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("mariadb"))
    yield server
    server.stop()


@pytest.fixture
def password(monkeypatch):
    """The server's password, in the environment."""
    monkeypatch.setenv("PIPELINES_METADATA_PASSWORD", PASSWORD)
    return PASSWORD
