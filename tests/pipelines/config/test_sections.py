"""The sections of the configuration: defaults, what they take, and what they refuse."""

import pytest

from components import ServingCheckSettings
from components.tuner.search_space import Choice, Range
from pipelines.config.lineage import LineageConfig
from pipelines.config.load import load_config
from pipelines.config.tfx_pipeline import load_tfx_pipeline_config
from pipelines.errors import BadInputError


def load(*settings):
    return load_config(data="d.csv", label="y", settings=settings)


def test_sections_have_defaults():
    config = load()
    assert config.gate.doubts == "hold"
    assert config.retention.is_empty
    assert config.serving_check == ServingCheckSettings()
    assert config.lineage == LineageConfig(openlineage=None, namespace=None)
    assert config.trainer.model == "auto"
    assert config.tuner is None


def test_settings_are_read():
    columns = ("columns.t=date", "columns.zip=category")
    dialect = ("data.delimiter=;", "data.encoding=latin1", "data.decimal=','")
    config = load(*columns, *dialect, "split.by=time", "split.column=t", "gate.doubts=warn")
    assert config.columns == {"t": "date", "zip": "category"}
    assert (config.data.delimiter, config.data.encoding, config.data.decimal) == (";", "iso8859-1", ",")
    assert (config.split.by, config.split.column) == ("time", "t")
    assert config.gate.doubts == "warn"
    assert not load("retention.days=30").retention.is_empty
    assert load("retention.artifacts=3", "retention.checkpoints=3").retention.checkpoints == 3
    expected = ServingCheckSettings(max_load_seconds=2)
    assert load("serving_check.max_load_seconds=2").serving_check == expected
    assert load("trainer.warm_start=true", "module.file=m.py").trainer.warm_start
    trees = load("trainer.model=boosted_trees", "trainer.n_trees=7", "trainer.max_depth=3").trainer
    assert trees.n_trees == 7
    assert load("trainer.model=linear", "trainer.workers=2", "trainer.ps=1").trainer.workers == 2


DATES = "data.path={YYYY}{MM}{DD}.csv"
TREES = "trainer.model=boosted_trees"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["columns.zip=zip"], r"columns\.zip = 'zip': input should be 'number', 'category'"),
        (["data.delimiter=;;"], r"data\.delimiter = ';;': a delimiter is one character"),
        (["data.delimiter='\"'"], "a delimiter is one character, not a quote"),
        (["data.encoding=none"], r"data\.encoding = 'none': python has no such encoding"),
        (["data.dates=both"], r"data\.dates = 'both': input should be 'day-first'"),
        (["data.spans=last 2"], r"data\.spans = 'last 2': data\.path has no \{SPAN\}"),
        (["data.path=s{SPAN}", "data.spans=all"], r"data\.spans = 'all': the forms are \"newest\""),
        (
            ["data.path=s{SPAN}", "data.spans=2026-01-01"],
            r"data\.spans = .*2026.*: the spans of data\.path are numbers: write 7, or 3\.\.7",
        ),
        (
            [DATES, "data.spans=3-7"],
            r"data\.spans = '3-7': the spans of data\.path are dates: write 2026-01-31",
        ),
        (["data.path={YYYY}.csv"], r"data\.path = '\{YYYY\}\.csv': a date needs"),
        (["data.path={YYYY}.csv", "data.spans=3"], r"^data\.path = [^\n]*$"),
        (["split.by=column"], r'by = "column" needs column = "\.\.\."'),
        (["split.by=files", "split.train=a.csv"], r'by = "files" needs eval = "\.\.\."'),
        (["split.column=p"], r'column has no effect with by = "row"; remove one'),
        (["split.groups=p"], r"split\.groups = 'p': there is no such key"),
        (["gate.doubts=drop"], r"gate\.doubts"),
        (["gate.doubt=hold"], r"gate\.doubt"),
        (["retention.run=3"], r"retention\.run = 3: there is no such key\. Did you mean runs\?"),
        (["retention.days=0"], r"retention\.days = 0: input should be greater than or equal to 1"),
        (["retention.artifacts=3", "retention.checkpoints=4"], "checkpoints = 4 is above artifacts = 3"),
        (["serving_check.row=3"], r"serving_check\.row = 3: there is no such key\. Did you mean rows\?"),
        (["serving_check.max_latency_ms=0"], "max_latency_ms = 0: input should be greater than 0"),
        (["serving_check.tolerance=1"], "tolerance = 1: input should be less than 1"),
        (["trainer.model=forest"], "'auto', 'boosted_trees', 'wide_deep' or 'linear'"),
        (["trainer.max_depth=17"], "less than or equal to 16"),
        ([TREES, "trainer.workers=2", "trainer.ps=1"], "boosted trees are grown in one process"),
        ([TREES, "trainer.train_steps=50"], "train_steps = 50: boosted trees are grown tree by tree"),
        ([TREES, "trainer.folds=2"], 'folds is for model = "auto", and model is "boosted_trees"'),
        ([TREES, "trainer.time_limit=5m"], "time_limit is for model"),
        (["trainer.time_limit=5"], r"trainer\.time_limit = 5: give a number with its unit, such as \"90s\""),
        (["trainer.time_limit=0m"], r"trainer\.time_limit = '0m': give a number with its unit"),
        (["trainer.interval=1"], r"trainer\.interval = 1: input should be less than 1"),
        ([f"trainer.n_trees={2**31 - 1}"], "less than or equal to 100000"),
        (["trainer.warm_start=true"], r"warm_start = true needs a \[module\]"),
        *(
            ([f"trainer.{setting}" for setting in settings], message)
            for settings, message in (
                (["workers=2"], r"^trainer\.ps = 0: trainer\.workers = 2 needs .*; set trainer\.ps = 1"),
                (["workers=2", "ps=0"], r"^trainer\.ps = 0: trainer\.workers = 2 needs a parameter server"),
                (["ps=1"], r"^trainer\.ps = 1: it needs workers; .*leave trainer\.ps out"),
                (["evaluator=true"], r"^trainer\.evaluator = True: it needs workers; .*set trainer\.w"),
                (["workers=-1", "ps=1"], r"^trainer\.workers = -1: .* greater than or equal to 0\.$"),
                (["workers=1", "ps=-1"], r"^trainer\.ps = -1: .* greater than or equal to 0\.$"),
                (["workers=1.5", "ps=1"], r"^trainer\.workers = 1\.5: .* integer"),
                (["workers=many", "ps=1"], r"^trainer\.workers = 'many': .* integer"),
                (["workers=1", "ps=1", "evaluator=7"], r"^trainer\.evaluator = 7: .* boolean"),
                (["worker=2"], r"^trainer\.worker = 2: there is no such key\. Did you mean workers\?"),
            )
        ),
        *(
            ([f"{key}={value}", "module.file=m.py"], f"{key} is for the generic models")
            for key, value in (
                *(("trainer.decide", "f1"), ("data.positive", "late")),
                *(("trainer.interval", "0.9"), ("trainer.folds", "2")),
            )
        ),
        (["tuner.trials=0"], "tuner.trials = 0.*greater than or equal to 1"),
        (["tuner.trails=5"], "tuner.trails.*Did you mean trials"),
        (["tuner.parallel=0"], "tuner.parallel = 0"),
        (["tuner.pruner=hyperband"], "tuner.pruner = 'hyperband'.*'median' or 'none'"),
        (["tuner.direction=up"], "tuner.direction = 'up'"),
        (["tuner.timeout_secs=-1"], "tuner.timeout_secs = -1"),
    ],
)
def test_what_is_wrong_is_named(settings, message):
    with pytest.raises(BadInputError, match=message):
        load(*settings)


@pytest.mark.parametrize(
    ("path", "spans", "kept"),
    [
        ("s{SPAN}", "3-7", "3..7"),
        ("s{SPAN}/v{VERSION}", "12", "12"),
        ("s{SPAN}", "last 4", "last 4"),
        ("{YYYY}{MM}{DD}.csv", "2026-01-30", "2026-01-30"),
        ("{YYYY}{MM}{DD}.csv", "2026-01-30..2026-02-01", "2026-01-30..2026-02-01"),
        ("{YYYY}{MM}{DD}.csv", "last 4", "last 4"),
        ("d.csv", "newest", "newest"),
    ],
)
def test_spans_are_kept_in_one_form(path, spans, kept):
    config = load(f"data.path={path}", f"data.spans={spans}")
    assert config.data.spans == kept
    assert str(config.data.selection) == kept


@pytest.mark.parametrize(
    ("settings", "stops"),
    [
        ([], True),
        (["split.by=files", "split.train=a", "split.eval=b"], True),
        (["split.by=time", "split.column=t"], False),
        (["split.by=column", "split.column=t"], False),
        (["split.by=column", "split.column=t", "split.on_label_difference=stop"], True),
        (["split.on_label_difference=warn"], False),
    ],
)
def test_a_difference_of_labels_stops_where_rows_should_be_alike(settings, stops):
    assert load(*settings).split.stops_at_label_difference == stops


@pytest.mark.parametrize("receiver", ["file", "http://marquez:5000", "https://h.example/a?b=c"])
def test_events_of_openlineage_go_to_a_file_or_an_address(receiver):
    settings = (f"lineage.openlineage={receiver}", "lineage.namespace=shop")
    expected = LineageConfig(openlineage=receiver, namespace="shop")
    assert load(*settings).lineage == expected
    assert load_tfx_pipeline_config(None, "p.py", {}, {}, settings).lineage == expected


@pytest.mark.parametrize(
    ("receiver", "message"),
    [
        *(
            (receiver, r'lineage\.openlineage.*give "file", or an address such as')
            for receiver in ("files", "kafka://h:9092", "http://", "http://h:port", "http://h:0")
        ),
        ("https://ann:SECRET@h.example", "OPENLINEAGE_API_KEY"),
    ],
)
def test_another_receiver_of_openlineage_is_refused(receiver, message):
    with pytest.raises(BadInputError, match=message) as raised:
        load(f"lineage.openlineage={receiver}")
    assert "SECRET" not in str(raised.value)


def test_the_entries_of_the_space_of_a_search():
    config = load(
        "tuner.trials=7",
        "tuner.space.rate={low = 1e-3, high = 0.1, log = true, default = 0.01}",
        "tuner.space.layers=[[32], [64, 32]]",
        "tuner.space.kind={values = ['a', 'b'], default = 'b'}",
        "tuner.space.linear={learning_rate = {low = 0.1, high = 1.0}}",
    )
    assert config.tuner.trials == 7
    assert list(config.tuner.parameters()) == [
        (None, Range("rate", 1e-3, 0.1, log=True, default=0.01)),
        (None, Choice("layers", ("32", "64,32"))),
        (None, Choice("kind", ("a", "b"), default="b")),
        ("linear", Range("linear.learning_rate", 0.1, 1.0)),
    ]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("a={low = 2, high = 1}", "a.low = 2 is above a.high = 1; swap the two"),
        ("a={low = 0, high = 1, log = true}", "a.low = 0 has no logarithm"),
        ("a={low = 1, hihg = 2}", "a.hihg: there is no such key. Valid here: low"),
        ("a={low = 1}", "a.high is missing"),
        ("a={low = 1, high = 2, log = 1}", "a.log = 1 is neither true nor false"),
        ("a=0.1", "a = 0.1: give a list of values"),
        ("a=[]", "a has no values"),
        ("a=[0, 0.5]", r"a = [0, 0.5]: the values must be of one type: write 0.0 in place of 0"),
        ("a=[1, 'b']", "a = [1, 'b']: the values must be of one type, as in KerasTuner"),
        ("m={a = {low = 2, high = 1}}", "m.a.low = 2 is above"),
    ],
)
def test_a_fault_in_the_space_of_a_search_is_named_by_its_key(entry, message):
    with pytest.raises(BadInputError) as caught:
        load("tuner.space.other=[1, 2]", f"tuner.space.{entry}")
    assert str(caught.value).startswith(f"tuner.space.{message}")
