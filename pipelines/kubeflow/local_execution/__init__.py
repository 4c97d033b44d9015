"""Execution of a compiled pipeline on this machine, with Kubeflow's contract but without Kubeflow.

`workflow` stands in for Argo, `inputs` and `cache` for the driver, and `launcher` for the launcher. A
container is a process, see `containers`.
"""
