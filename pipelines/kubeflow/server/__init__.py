"""Kubeflow Pipelines' server: runs and recurring runs."""
