"""The pipeline on Kubeflow: its compilation, its steps, and submission to a server."""
