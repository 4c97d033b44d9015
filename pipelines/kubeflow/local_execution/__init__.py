"""Execution of a compiled pipeline on this machine, with Kubeflow's contract but without Kubeflow.

`workflow` stands in for Argo, `inputs` and `cache` for the driver, `launcher` for the launcher, and
`bucket` for the object store. A container is a process, see `containers`.
"""
