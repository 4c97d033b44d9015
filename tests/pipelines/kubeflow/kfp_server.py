"""A server on the loopback that speaks the part of KFP's REST API that `submit` needs.

It takes the same as the real one: schema version 2.1.0, a version that exists, known parameters.
"""

import json
import re
import uuid
from email.parser import BytesParser

import yaml

from tests.pipelines.kubeflow.loopback import LoopbackServer, RefusedError

PREFIX = "/apis/v2beta1/"


class KfpServer(LoopbackServer):
    def __init__(self, port=0):
        self.requests = []  # method, path and body of each
        self.states = ["SUCCEEDED"]  # answers to the next requests for a run; the last one stays
        self.experiments, self.pipelines, self.versions = {}, {}, {}
        self.runs, self.recurring = {}, {}
        self.lost_runs = []  # whose pods were deleted while they ran
        self.token = None  # that requests must have
        super().__init__(port)

    def start(self, recurring_run_id):
        """Starts a run as the clock of a recurring run does."""
        run = {"recurring_run_id": recurring_run_id, "state": "RUNNING"}
        return _add(self.runs, "run_id", run)["run_id"]

    def started_by(self, recurring_run_id):
        return [key for key, run in self.runs.items() if run.get("recurring_run_id") == recurring_run_id]

    def answer(self, method, path, query, raw, headers):
        kind = headers.get("Content-Type") or ""
        body = _uploaded(kind, raw) if kind.startswith("multipart/") else json.loads(raw or b"null")
        path = path.removeprefix(PREFIX)
        self.requests.append((method, path, body))
        if self.refuses is not None:
            raise self.refuses
        if self.token and headers.get("authorization") != f"Bearer {self.token}":
            raise RefusedError(401, "who are you?")
        return self._route(method, path, query, body)

    def _route(self, method, path, query, body):
        if path == "healthz":
            return {"multi_user": False}
        if path == "experiments" and method == "POST":
            return _add(self.experiments, "experiment_id", body)
        if path == "experiments":
            return _listed("experiments", self.experiments.values(), query)
        if path == "pipelines/upload":
            specification = _admitted(body)
            fields = {"display_name": query["name"], "namespace": query.get("namespace", "")}
            if any(fields.items() <= one.items() for one in self.pipelines.values()):
                raise RefusedError(409, f"the name {query['name']} already exists")
            fields["description"] = query.get("description", "")
            pipeline = _add(self.pipelines, "pipeline_id", fields)
            self._add_version(pipeline["pipeline_id"], query["name"], specification)
            return pipeline
        if path == "pipelines/upload_version":
            return self._add_version(query["pipelineid"], query["name"], _admitted(body))
        if path == "pipelines":
            namespace = query.get("namespace", "")
            found = [one for one in self.pipelines.values() if one["namespace"] == namespace]
            return _listed("pipelines", found, query)
        if found := re.fullmatch(r"pipelines/([^/]+)/versions", path):
            versions = [one for one in self.versions.values() if one["pipeline_id"] == found[1]]
            return _listed("pipeline_versions", versions, query)
        if path == "runs" and method == "POST":
            self._check_parameters(body)
            return _add(self.runs, "run_id", {**body, "state": "PENDING"})
        if (found := re.fullmatch(r"runs/([^/]+)", path)) and found[1] in self.runs:
            state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
            return {**self.runs[found[1]], "state": state}
        if path == "recurringruns" and method == "POST":
            self._check_parameters(body)
            cron = (body["trigger"].get("cron_schedule") or {}).get("cron")
            periodic = (body["trigger"].get("periodic_schedule") or {}).get("interval_second")
            if (cron is None) == (periodic is None):
                raise RefusedError(400, "a trigger is a cron or a periodic schedule")
            if cron is not None and len(cron.split()) != 6:
                raise RefusedError(400, "a schedule has six fields")
            if not 1 <= int(body["max_concurrency"]) <= 10:
                raise RefusedError(400, "the maximum concurrency is 1 to 10")
            return _add(self.recurring, "recurring_run_id", {**body, "status": "ENABLED"})
        if path == "recurringruns":
            return _listed("recurringRuns", self.recurring.values(), query)
        if found := re.fullmatch(r"recurringruns/([^/:]+)(:enable|:disable)?", path):
            if found[1] not in self.recurring:
                raise RefusedError(404, f"there is no recurring run {found[1]}")
            if method == "DELETE":
                # Kubernetes deletes what the ScheduledWorkflow owns, and nobody ends those runs.
                if query.get("propagation_policy") != "ORPHAN":
                    self.lost_runs += self.started_by(found[1])
                del self.recurring[found[1]]
                return {}
            if found[2]:
                self.recurring[found[1]]["status"] = f"{found[2][1:].upper()}D"
                return {}
            return self.recurring[found[1]]
        raise RefusedError(404, f"{method} {path}")

    def _add_version(self, pipeline_id, name, specification):
        version = {"pipeline_id": pipeline_id, "display_name": name, "pipeline_spec": specification}
        return _add(self.versions, "pipeline_version_id", version)

    def _check_parameters(self, body):
        reference = body["pipeline_version_reference"]["pipeline_version_id"]
        if reference not in self.versions:
            raise RefusedError(404, f"there is no version {reference}")
        specification = self.versions[reference]["pipeline_spec"]
        declared = specification["root"].get("inputDefinitions", {}).get("parameters", {})
        given = (body.get("runtime_config") or {}).get("parameters") or {}
        for name in given:
            if name not in declared:
                raise RefusedError(400, f"parameter {name} is not required by the pipeline")


def _uploaded(kind, raw):
    message = BytesParser().parsebytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + raw)
    (part,) = message.get_payload()
    return part.get_payload(decode=True).decode()


def _admitted(text):
    specification = next(yaml.safe_load_all(text))
    if specification.get("schemaVersion") != "2.1.0":
        raise RefusedError(400, "KFP only supports schema version 2.1.0")
    return specification


def _add(table, key, item):
    item = {**item, key: str(uuid.uuid4()), "created_at": "2026-01-02T03:04:05Z"}
    table[item[key]] = item
    return item


def _listed(name, items, query):
    wanted = [
        predicate.get("stringValue", predicate.get("string_value"))
        for predicate in json.loads(query.get("filter") or "{}").get("predicates", [])
    ]
    found = [item for item in items if not wanted or item["display_name"] in wanted]
    return {name: found, "total_size": len(found)}
