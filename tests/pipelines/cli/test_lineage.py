import json

from pipelines.root import Root
from tests.pipelines.cli.invocation import invoke
from tests.pipelines.root.test_records import RECORD
from tests.pushed_versions import add_model


def test_text_json_and_refusals(tmp_path):
    spans = ({"span": 3, "version": None, "num_files": 1},)
    root = Root(tmp_path)
    root.records.write(RECORD.changed(run_id="r1", status="pushed", version="7", spans=spans))
    add_model(root.serving / "7")
    place = ("--root", tmp_path)
    assert invoke("lineage", *place).stdout.splitlines()[0] == "version 7 (serving)"
    shown = invoke("lineage", "--span", "3", "--json", *place).stdout
    assert [one["run_id"] for one in json.loads(shown)] == ["r1"]
    for arguments in (["8"], ["7", "--span", "3"], ["--span", "9"]):
        assert invoke("lineage", *arguments, *place, code=2).stdout == ""
