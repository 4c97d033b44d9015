"""The statistics of the data of a run, as StatisticsGen has written them."""

from pathlib import Path

from pipelines.root import Root


def statistics_folder(root: Root, run_id: str) -> Path:
    """Returns the folder with the statistics of a run, `Split-NAME/FeatureStats.pb`; it may be gone.

    Args:
      root: Root of the runs.
      run_id: Id of the run.
    """
    import components
    from pipelines.root.metadata.store import output_of

    folder = None
    if root.metadata.exists():
        store = root.metadata.open()
        kind = components.StatisticsGen
        folder = output_of(store, run_id, kind.get_class_type(), "statistics")
        del store
    if folder is None:  # a run on Kubeflow
        folder = root.kept_artifact(run_id, "statistics")
    elif not folder.is_dir():  # the root was moved
        folder = root.artifacts.joinpath(*folder.parts[-3:])
    return folder
