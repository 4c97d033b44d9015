"""Submits a compiled pipeline to a server of Kubeflow Pipelines, through kfp's own client."""

import hashlib
import json
import logging
import re
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components.nearest import nearest_first
from pipelines.atomic_files import read_small
from pipelines.errors import BadInputError
from pipelines.kubeflow.compile.given_parameters import typed_parameters
from pipelines.kubeflow.server.recurring import Recurrence, RecurringRun, described, six_fields

FINISHED = ("SUCCEEDED", "FAILED", "SKIPPED", "CANCELED")

_POLL_SECS = 5.0
_PAGE_SIZE = 100
_ADVICE = {
    401: "Log in: give a token for the server with --token-file.",
    403: "You are not allowed to do that in this namespace: give --namespace, or ask for the role.",
    404: "Is --kubeflow the address of Kubeflow Pipelines, with the path to its API if it has one?",
}


class ServerError(RuntimeError):
    """The server could not be reached, or refused a request."""


@dataclass(frozen=True)
class Submission:
    """A submitted pipeline and its run or recurring run on the server."""

    pipeline_id: str
    version_id: str  # Id of its version with this content
    experiment_id: str
    run_id: str | None = None
    recurring_run_id: str | None = None
    status: str | None = None  # Status of the run on the server
    replaced: tuple[str, ...] = ()  # Ids of the recurring runs that it replaces
    dropped_parameters: Mapping[str, Any] = field(default_factory=dict)


class Server:
    """A server of Kubeflow Pipelines."""

    def __init__(self, host: str, namespace: str | None = None, token: str | None = None):
        check_host(host)
        self._host = host
        self._namespace = namespace
        with self._server_errors("connecting"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # kfp warns about its versions
            import kfp

            self._client = kfp.Client(host=host, namespace=namespace or "kubeflow", existing_token=token)

    def submit(
        self,
        text: str,
        experiment: str | None,
        parameters: Mapping[str, str],
        recurrence: Recurrence | None = None,
        service_account: str | None = None,
        name: str | None = None,
        replace: bool = True,
    ) -> Submission:
        """Uploads a pipeline and starts a run of it, or a recurring one.

        The same content is uploaded only once, as a version that is named after it. A pipeline has one
        schedule: its previous recurring run is deleted after the new run is created.

        `experiment`: name of the experiment of the run, which is created if missing. Default: the
        pipeline's.
        `recurrence`: schedule of runs. Default: one run, now.
        `service_account`: service account of the run's pods. Default: the server's.
        `name`: name of the recurring run. Default: the pipeline's.
        `replace`: False refuses the name of an existing recurring run.
        """
        import yaml

        specification = next(yaml.safe_load_all(text))
        typed = typed_parameters(specification, parameters)
        if recurrence is not None and recurrence.cron is not None:
            six_fields(recurrence.cron)
        pipeline = specification["pipelineInfo"]["name"]
        name, experiment = name or pipeline, experiment or pipeline
        if not replace and (existing := self.list_recurring_runs(name)):
            raise BadInputError(
                f"{self._host} already has a schedule {name!r}: {existing[0].when}, {existing[0].status}. "
                "Give another --name, or --replace."
            )
        pipeline_id, version_id = self._upload(pipeline, text)
        with self._server_errors(f"making the experiment {experiment!r}"):
            created = self._client.create_experiment(experiment, namespace=self._namespace)
            experiment_id = created.experiment_id
        common: dict[str, Any] = {
            "experiment_id": experiment_id,
            "params": typed,
            "pipeline_id": pipeline_id,
            "version_id": version_id,
            "pipeline_root": specification.get("defaultPipelineRoot"),
            "service_account": service_account,
        }
        if recurrence is None:
            stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
            with self._server_errors("starting a run"):
                run = self._client.run_pipeline(job_name=f"{pipeline}-{stamp}", **common)
            return Submission(pipeline_id, version_id, experiment_id, run_id=run.run_id, status=run.state)
        replaced = [old for old in self.list_recurring_runs(name) if old.pipeline_id == pipeline_id]
        with self._server_errors("creating a recurring run"):
            recurring = self._client.create_recurring_run(
                job_name=name, **recurrence.as_arguments(), **common
            )
        # Last: an interruption leaves two schedules instead of none.
        for old in replaced:
            self.delete_recurring_run(old.id)
        return Submission(
            pipeline_id,
            version_id,
            experiment_id,
            recurring_run_id=recurring.recurring_run_id,
            status=recurring.status,
            replaced=tuple(old.id for old in replaced),
            dropped_parameters={
                key: value for old in replaced for key, value in old.parameters.items() if key not in typed
            },
        )

    def disable_recurring_run(self, recurring_run_id: str) -> None:
        """Stops a recurring run from starting runs until it is enabled."""
        with self._server_errors(f"disabling the recurring run {recurring_run_id}"):
            self._client.disable_recurring_run(recurring_run_id)

    def enable_recurring_run(self, recurring_run_id: str) -> None:
        with self._server_errors(f"enabling the recurring run {recurring_run_id}"):
            self._client.enable_recurring_run(recurring_run_id)

    def delete_recurring_run(self, recurring_run_id: str) -> None:
        """Deletes a recurring run; the runs that it has started stay."""
        with self._server_errors(f"deleting the recurring run {recurring_run_id}"):
            # kfp's own method has Kubernetes delete what the recurring run owns: the pods of its runs.
            self._client._recurring_run_api.recurring_run_service_delete_recurring_run(  # noqa: SLF001
                recurring_run_id, propagation_policy="ORPHAN"
            )

    def wait(
        self,
        run_id: str,
        timeout_secs: float,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> str:
        """Waits for a run to end, and returns its state, which is in `FINISHED`."""
        deadline = clock() + timeout_secs
        while True:
            with self._server_errors(f"asking for the run {run_id}"):
                state = str(self._client.get_run(run_id).state)
            if state in FINISHED:
                return state
            if clock() >= deadline:
                raise ServerError(
                    f"The run {run_id} on {self._host} is still {state} after {timeout_secs:g} s. It "
                    "continues there; look at it in Kubeflow's pages."
                )
            sleep(_POLL_SECS)

    def list_recurring_runs(self, name: str | None = None) -> list[RecurringRun]:
        """Returns the recurring runs of the user's namespace, in all experiments."""
        recurring_runs: list[RecurringRun] = []
        token = ""
        with self._server_errors("listing the recurring runs"):
            namespace = self._namespace or self._client.get_user_namespace() or None
            while True:
                listed = self._client.list_recurring_runs(
                    page_token=token,
                    page_size=_PAGE_SIZE,
                    namespace=namespace,
                    filter=None if name is None else _named(name),
                )
                recurring_runs += map(described, listed.recurring_runs or [])
                token = listed.next_page_token or ""
                if not token:
                    return recurring_runs

    def recurring_runs(self, name: str) -> list[RecurringRun]:
        """Returns the recurring runs with a name; raises BadInputError if there are none."""
        recurring_runs = self.list_recurring_runs(name)
        if not recurring_runs:
            names = sorted({recurring_run.name for recurring_run in self.list_recurring_runs()})
            raise BadInputError(
                f"There is no schedule {name!r} on {self._host}. Schedules: "
                f"{', '.join(nearest_first(name, names)) or 'none'}."
            )
        return recurring_runs

    def _upload(self, name: str, text: str) -> tuple[str, str]:
        version_name = f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        with tempfile.TemporaryDirectory() as folder, self._server_errors("uploading the pipeline"):
            file = Path(folder) / "pipeline.yaml"
            file.write_text(text, encoding="utf-8")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # The server makes the first version together with the pipeline, and gives it the pipeline's
                # name: the description of the pipeline keeps our name of that version.
                first = f"The version {name} is {version_name}"
                pipeline = self._pipeline(name)
                if pipeline is None:
                    pipeline = self._client.upload_pipeline(
                        str(file), pipeline_name=name, description=first, namespace=self._namespace
                    )
                pipeline_id = pipeline.pipeline_id
                wanted = name if pipeline.description == first else version_name
                versions = self._client.list_pipeline_versions(
                    pipeline_id, page_size=_PAGE_SIZE, filter=_named(wanted)
                ).pipeline_versions
                for version in versions or []:
                    if version.display_name == wanted:
                        return pipeline_id, version.pipeline_version_id
                version = self._client.upload_pipeline_version(
                    str(file), version_name, pipeline_id=pipeline_id
                )
                return pipeline_id, version.pipeline_version_id

    def _pipeline(self, name: str) -> Any:
        """Returns the server's description of a pipeline; None if it does not exist.

        kfp's own `get_pipeline_id` does not look into namespaces.
        """
        listed = self._client.list_pipelines(
            page_size=_PAGE_SIZE, filter=_named(name), namespace=self._namespace
        )
        pipelines = [pipeline for pipeline in listed.pipelines or [] if pipeline.display_name == name]
        if len(pipelines) > 1:
            ids = ", ".join(pipeline.pipeline_id for pipeline in pipelines)
            raise ServerError(
                f"{self._host} has {len(pipelines)} pipelines of the name {name!r}: {ids}. Delete all but "
                "one, or set kubeflow.name to another name."
            )
        return pipelines[0] if pipelines else None

    @contextmanager
    def _server_errors(self, doing: str) -> Iterator[None]:
        """Turns an error of the client into a ServerError that names the server, the action and the fix."""
        import kfp_server_api
        import urllib3

        try:
            with _without_retry_lines():
                yield
        except kfp_server_api.ApiException as error:
            advice = _ADVICE.get(error.status, "")
            raise ServerError(
                f"{self._host} has refused {doing}: {error.status} {error.reason}: "
                f"{_message(error.body)} {advice}".rstrip()
            ) from error
        except ValueError as error:  # kfp's own errors, and its errors about answers that are not the API's
            raise ServerError(
                f"{self._host}: the answer can't be used ({doing}): {error}. Is it the address of Kubeflow "
                "Pipelines itself, not of a login page (--token-file)?"
            ) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ServerError(
                f"{self._host} cannot be reached ({doing}): {error}. Is it the address of Kubeflow "
                "Pipelines, and can this machine reach it? `kubectl -n kubeflow port-forward "
                "svc/ml-pipeline-ui 8080:80` opens it as http://localhost:8080."
            ) from error


@contextmanager
def _without_retry_lines() -> Iterator[None]:
    """Keeps urllib3 from logging each attempt to connect: ServerError reports it."""
    logger = logging.getLogger("urllib3.connectionpool")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def check_host(host: str) -> None:
    if not re.match(r"https?://[^/]", host):
        raise BadInputError(f"--kubeflow takes an address such as http://localhost:8080. Received: {host!r}")


def read_token(file: Path) -> str:
    try:
        token = read_small(file, "a token").decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"--token-file: {file} can't be read: {error}") from error
    if not token or len(token.split()) != 1:
        raise BadInputError(f"--token-file: {file} must hold one token, and nothing else.")
    return token


def _named(name: str) -> str:
    """Returns a filter of KFP's API for items with a name."""
    predicate = {"operation": "EQUALS", "key": "display_name", "stringValue": name}
    return json.dumps({"predicates": [predicate]})


def _message(body: Any) -> str:
    text = body.decode(errors="replace") if isinstance(body, bytes) else str(body or "")
    try:
        fields = json.loads(text)
    except ValueError:
        return text[:500]
    return str(fields.get("error") or fields.get("message") or text)[:500]
