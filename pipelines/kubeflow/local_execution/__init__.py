"""Execution of a compiled pipeline on this machine, with Kubeflow's contract but without Kubeflow.

`workflow` stands in for Argo, `driver` for KFP's driver, and `launcher` for its launcher. A container is a
process, see `containers`, or runs in an image, see `container_engine`.
"""
