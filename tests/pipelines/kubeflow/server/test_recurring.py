"""Through kfp's own client, against a server on the loopback."""

import pytest

from pipelines.errors import BadInputError
from pipelines.kubeflow.server.recurring import Recurrence, dropped_warning, written
from pipelines.kubeflow.server.submission import Server
from tests.pipelines.kubeflow.server.test_submission import TEXT


def schedule(server, recurrence, name=None, replace=False, parameters=None):
    return server.submit(TEXT, None, parameters or {}, recurrence, name=name, replace=replace)


def test_what_reaches_the_server_and_is_listed(kfp_server):
    server = Server(kfp_server.url)
    assert server.list_recurring_runs() == []
    schedule(server, Recurrence(cron="0 0 3 * * *"), "nightly")
    made = schedule(server, Recurrence(interval_secs=21_600, catches_up=True, max_concurrency=2), "often")
    sent = kfp_server.recurring[made.recurring_run_id]
    assert int(sent["trigger"]["periodic_schedule"]["interval_second"]) == 21_600
    assert sent["no_catchup"] is False
    assert int(sent["max_concurrency"]) == 2
    assert sent["display_name"] == "often"
    (experiment,) = kfp_server.experiments.values()
    assert experiment["display_name"] == "taxi"
    nightly, often = sorted(server.list_recurring_runs(), key=lambda one: one.name)
    assert (nightly.name, nightly.when, nightly.status) == ("nightly", "0 0 3 * * *", "ENABLED")
    assert (nightly.missed, nightly.max_concurrency) == ("latest", 1)
    assert (often.when, often.missed, often.max_concurrency) == ("every 21600s", "catch-up", 2)
    assert nightly.pipeline_id == often.pipeline_id is not None
    server.disable_recurring_run(often.id)
    assert [one.status for one in server.recurring_runs("often")] == ["DISABLED"]
    with pytest.raises(BadInputError, match=r"no schedule 'nihgtly' on .*: nightly, often"):
        server.recurring_runs("nihgtly")


def test_one_of_the_same_name_is_replaced_only_if_asked(kfp_server):
    server = Server(kfp_server.url)
    first = schedule(server, Recurrence(cron="0 0 3 * * *"))
    with pytest.raises(BadInputError, match=r"already has a schedule 'taxi': .*0 0 3 \* \* \*, ENABLED"):
        schedule(server, Recurrence(cron="0 0 4 * * *"))
    assert list(kfp_server.recurring) == [first.recurring_run_id]
    second = schedule(server, Recurrence(cron="0 0 4 * * *"), replace=True)
    assert second.replaced == (first.recurring_run_id,)
    assert list(kfp_server.recurring) == [second.recurring_run_id]
    other = schedule(server, Recurrence(cron="0 0 5 * * *"), "dawn")
    assert other.replaced == ()


def test_parameters_that_a_replaced_one_had_are_told(kfp_server):
    server = Server(kfp_server.url)
    cron = Recurrence(cron="0 0 3 * * *")
    schedule(server, cron, parameters={"steps": "7"})
    (listed,) = server.list_recurring_runs()
    assert listed.parameters == {"steps": 7}
    kept = schedule(server, cron, replace=True, parameters={"steps": "8"})
    assert kept.dropped_parameters == {}
    lost = schedule(server, cron, replace=True)
    assert lost.dropped_parameters == {"steps": 8}
    (sent,) = kfp_server.recurring.values()
    assert not sent["runtime_config"].get("parameters")


def test_parameters_are_written_as_options_take_them():
    assert written({"steps": 7, "data_path": "/mnt/a.csv", "on": True}) == (
        "steps=7 data_path=/mnt/a.csv on=true"
    )
    assert dropped_warning({"steps": 7, "rate": 0.5}).startswith(
        "the previous schedule set --param steps=7 --param rate=0.5; the new schedule does not"
    )
