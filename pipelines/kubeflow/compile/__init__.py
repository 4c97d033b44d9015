"""From a configuration to the YAML that Kubeflow Pipelines takes."""
