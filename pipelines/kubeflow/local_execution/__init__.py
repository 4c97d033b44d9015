"""Executes a compiled pipeline on this machine, with Kubeflow's contract and without Kubeflow.

`workflow` is what Argo does there, `inputs` and `cache` the driver, `launcher` the launcher, `bucket`
the object store. A container is a process, see `containers`.
"""
