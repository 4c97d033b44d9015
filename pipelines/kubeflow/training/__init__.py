"""Distributed training as a Job on Kubernetes."""
