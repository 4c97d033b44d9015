"""A compiled pipeline, read from its YAML."""

from dataclasses import dataclass, field
from typing import Any

import yaml

from pipelines.errors import BadInputError


@dataclass(frozen=True)
class CompiledPipeline:
    """The two documents of the YAML."""

    specification: dict[str, Any]  # PipelineSpec of the pipeline
    # Kubernetes settings by executor label; empty without any.
    platform: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> "CompiledPipeline":
        """Returns the pipeline in a YAML text."""
        documents = list(yaml.safe_load_all(text))
        platform: dict[str, Any] = {}
        for document in documents[1:]:
            kubernetes = document.get("platforms", {}).get("kubernetes", {})
            platform |= kubernetes.get("deploymentSpec", {}).get("executors", {})
        return cls(documents[0], platform)

    @property
    def name(self) -> str:
        """Name of the pipeline."""
        return str(self.specification["pipelineInfo"]["name"])

    def component(self, task: dict[str, Any]) -> dict[str, Any]:
        component: dict[str, Any] = self.specification["components"][task["componentRef"]["name"]]
        return component

    def container(self, component: dict[str, Any]) -> dict[str, Any]:
        """Returns the container of a component that has one."""
        label = component["executorLabel"]
        container: dict[str, Any] = self.specification["deploymentSpec"]["executors"][label][
            "container"
        ]
        return container

    def pod(self, component: dict[str, Any]) -> dict[str, Any]:
        """Returns the Kubernetes settings of a component."""
        pod: dict[str, Any] = self.platform.get(component["executorLabel"], {})
        return pod

    def parameters(self, given: dict[str, Any]) -> dict[str, Any]:
        """Returns the parameters of a run."""
        declared = self.specification["root"].get("inputDefinitions", {}).get("parameters", {})
        unknown = sorted(set(given) - set(declared))
        if unknown:
            raise BadInputError(
                f"--param {unknown[0]}: the pipeline has no such parameter. "
                f"Parameters: {', '.join(declared)}."
            )
        return {
            name: given.get(name, definition.get("defaultValue"))
            for name, definition in declared.items()
        }
