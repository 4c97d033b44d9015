"""The pipeline on Kubeflow: its steps, their compilation, and what runs in their containers."""
