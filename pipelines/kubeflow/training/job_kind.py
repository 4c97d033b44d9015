"""What kinds of jobs of Kubernetes a training's cluster can be: the interface."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from pipelines.kubeflow.training.training_job import TrainingJob

Body = dict[str, Any]
"""An object of Kubernetes, as JSON has it."""


class JobKind(ABC):
    """One kind of job, each of whose pods is a task of the cluster.

    Attributes:
      name: What Kubernetes calls it.
      group: Of Kubernetes' API.
      version: Of the group.
      plural: Its name in addresses and in roles.
      pod_label: Label of its pods that holds the job's name.
      rights: Further verbs that the steps' service account needs, beside those for the job itself.
    """

    name: str
    group: str
    version: str
    plural: str
    pod_label: str
    rights: str = ""

    @property
    def resource(self) -> str:
        """What roles and kubectl call it."""
        return f"{self.plural}.{self.group}"

    def named(self, name: str) -> str:
        """Returns what messages call a job."""
        return f"{self.name} {name}"

    @abstractmethod
    def manifest(
        self, job: TrainingJob, name: str, namespace: str, task_file: str, workers: int, ps: int
    ) -> Body:
        """Returns the job to submit.

        Args:
          job: Its settings.
          name: Its name.
          namespace: Where it is.
          task_file: Describes what each task does; all pods see it.
          workers: Number of workers beside the chief.
          ps: Number of parameter servers.
        """

    def companions(self, job: Body) -> list[Body]:
        """Returns the Services that the pods need, for a job as Kubernetes has it; they go with the job."""
        del job
        return []

    @abstractmethod
    def state(self, job: Mapping[str, Any]) -> str:
        """Returns `Succeeded` or `Failed` if the job has ended, else another word for the log."""

    def ended_by_its_deadline(self, job: Mapping[str, Any]) -> bool:
        """Returns whether a job that has failed took too long; no pod is to blame then."""
        del job
        return False


def true_conditions(job: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Returns the conditions of a job that hold, by type."""
    conditions = (job.get("status") or {}).get("conditions") or []
    return {one["type"]: one for one in conditions if one["status"] == "True"}
