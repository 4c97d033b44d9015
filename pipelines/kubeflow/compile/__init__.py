"""Compilation of a configuration to the YAML of Kubeflow Pipelines."""
