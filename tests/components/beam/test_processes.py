import os
import subprocess

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

import components
from components.beam.processes import worker_command
from pipelines.beam.options import direct_options
from pipelines.config.beam import DirectConfig


@pytest.mark.more
def test_workers_are_processes_that_import_what_this_one_can(tmp_path, monkeypatch):
    (tmp_path / "module_of_the_user.py").write_text("VALUE = 40\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "found"

    def look(number):
        import module_of_the_user
        import tensorflow_data_validation as tfdv  # an older one imports what tfx-bsl has dropped

        assert tfdv
        return os.getpid(), number + module_of_the_user.VALUE

    def write(found):
        file.write_text(repr(found))

    options = PipelineOptions(direct_options(DirectConfig(workers=2)))
    with beam.Pipeline(options=options) as pipeline:
        found = pipeline | beam.Create(range(4)) | beam.Reshuffle() | "Look" >> beam.Map(look)
        _ = found | beam.combiners.ToList() | "Write" >> beam.Map(write)
    processes, values = zip(*eval(file.read_text()), strict=True)
    assert sorted(values) == [40, 41, 42, 43]
    assert os.getpid() not in processes


def test_workers_import_our_packages_where_a_folder_has_their_name(tmp_path):
    (tmp_path / "components").mkdir()
    (tmp_path / "components" / "__init__.py").write_text("")
    start = worker_command().partition(" -c ")[0]
    code = "import components; print(components.__file__)"
    found = subprocess.check_output(f"{start} -c '{code}'", shell=True, cwd=tmp_path, text=True)
    assert found.strip() == components.__file__
