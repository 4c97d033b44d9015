"""Definitions of pipelines: one file for each shape of DAG."""
