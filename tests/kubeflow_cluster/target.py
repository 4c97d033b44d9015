"""The Kubeflow that these tests run on: where it is, and whether they can run there at all."""

import json
import re
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

OLDEST = (2, 5)  # kubeflow/pipelines 11585 and 11470: Retry, and exit handlers, on Argo
TRIED = "2.17.0"
_SECS = 10


class NotUsableError(Exception):
    """The tests can't run, with the reason and the fix."""


@dataclass(frozen=True)
class Target:
    """A server of Kubeflow Pipelines and its Kubernetes.

    Attributes:
      host: Address of Kubeflow Pipelines.
      image: Image of the steps, which the cluster can pull or already has.
      namespace: Namespace in which runs have their pods.
      mount: Folder at which pods mount the volume.
      claim: Name of a claim that exists; None: the tests make one.
      kubeconfig: File for Kubernetes' client; None: its default.
      token: Token for Kubeflow Pipelines, or None.
      token_file: File with the token.
    """

    host: str
    image: str
    namespace: str = "kubeflow"
    mount: str = "/mnt/pipelines"
    claim: str | None = None
    kubeconfig: str | None = None
    token: str | None = None
    token_file: str | None = None

    @classmethod
    def of(cls, environment):
        """Returns the target that the variables of `make test-kubeflow-cluster` name."""

        def given(name, default=None):
            return environment.get(name) or default

        host, token_file = given("HOST"), given("TOKEN_FILE")
        if not re.match(r"https?://[^/]", host or ""):
            raise NotUsableError(
                f"HOST is the address of Kubeflow Pipelines, such as HOST=http://localhost:8080. "
                f"Received: {host!r}"
            )
        if not given("IMAGE"):
            raise NotUsableError("IMAGE is the image of the steps, which the cluster can pull.")
        return cls(
            host.rstrip("/"),
            given("IMAGE"),
            given("NAMESPACE", cls.namespace),
            given("MOUNT", cls.mount),
            given("CLAIM"),
            given("KUBECONFIG"),
            Path(token_file).read_text().strip() if token_file else None,
            token_file,
        )

    def check(self):
        """Returns the version of Kubeflow Pipelines (None: it does not tell), and whether it has many users.

        Raises:
          NotUsableError: It can't be reached, is no Kubeflow Pipelines, or is too old.
        """
        health = self._health("v2beta1")
        version = _version(health)
        if version is None:
            try:
                version = _version(self._health("v1beta1"))
            except NotUsableError:
                version = None
        if version is not None and version[:2] < OLDEST:
            self._refuse(version)
        users = health.get("multi_user", health.get("apiServerMultiUser"))
        return version, bool(users)

    def check_image_of_server(self, kubernetes):
        """Returns the version in the name of the API server's image, as `check` does."""
        from kubernetes.client import ApiException, AppsV1Api

        try:
            deployment = AppsV1Api(kubernetes).read_namespaced_deployment("ml-pipeline", "kubeflow")
        except ApiException:
            return None  # another user's namespace, or another name
        version = _version({"tag_name": deployment.spec.template.spec.containers[0].image.split(":")[-1]})
        if version is not None and version[:2] < OLDEST:
            self._refuse(version)
        return version

    def connect(self):
        """Returns a client of Kubernetes that has reached it."""
        import kubernetes
        import urllib3

        try:
            client = kubernetes.config.new_client_from_config(self.kubeconfig)
            kubernetes.client.VersionApi(client).get_code(_request_timeout=_SECS)
        except (
            kubernetes.config.ConfigException,
            kubernetes.client.ApiException,
            urllib3.exceptions.HTTPError,
        ) as error:
            raise NotUsableError(
                f"Kubernetes can't be reached with KUBECONFIG={self.kubeconfig or '(its default)'}: {error}"
            ) from error
        return client

    def _health(self, api):
        url = f"{self.host}/apis/{api}/healthz"
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            with urllib.request.urlopen(
                urllib.request.Request(url, headers=headers), timeout=_SECS
            ) as answer:
                return dict(json.load(answer))
        except urllib.error.HTTPError as error:
            if error.code in (401, 403):
                raise NotUsableError(
                    f"{url}: {error.code}. The server wants a token: TOKEN_FILE=FILE"
                ) from error
            if api == "v2beta1":
                self._health("v1beta1")  # raises if this is something else
                self._refuse((1,))
            raise NotUsableError(f"{url}: {error}. Is this Kubeflow Pipelines?") from error
        except (ValueError, TypeError) as error:
            raise NotUsableError(
                f"{url} does not answer as Kubeflow Pipelines does ({error}). Is it a login page?"
            ) from error
        except OSError as error:
            raise NotUsableError(
                f"HOST={self.host} can't be reached: {error}. `kubectl -n kubeflow port-forward "
                "svc/ml-pipeline-ui 8080:80` opens it as http://localhost:8080."
            ) from error

    def _refuse(self, version):
        raise NotUsableError(
            f"{self.host} is Kubeflow Pipelines {'.'.join(map(str, version))}. These tests need "
            f"{'.'.join(map(str, OLDEST))} or newer; our pipelines have run on {TRIED}."
        )


def _version(health):
    """Returns a version such as (2, 17, 0) from what a server says of itself; None if it does not say."""
    for key in ("apiServerTagName", "tag_name", "commit_tag"):
        if match := re.fullmatch(r"v?(\d+)\.(\d+)\.(\d+).*", str(health.get(key) or "")):
            return tuple(map(int, match.groups()))
    return None
