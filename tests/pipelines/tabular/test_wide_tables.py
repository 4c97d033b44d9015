"""Graphs of tables with many columns: counted, as times say little on a busy machine."""

import pytest
import tensorflow as tf
from tensorflow_transform import graph_context

import estimator_core
from estimator_core.export import packed_name
from pipelines.tabular import plan as plans
from pipelines.tabular.plan import CategoricalFeature, FeaturePlan, LabelPlan, NumericFeature
from pipelines.tabular.preprocessing import preprocessing_fn


def make_plan(num_columns):
    """Returns a plan of as many numbers as categories; every fourth column is a date or a boolean."""
    numeric, categorical = [], []
    for index in range(num_columns // 2):
        is_other = index % 4 == 3
        numeric.append(
            NumericFeature(
                column=f"n{index}",
                center=0.0,
                has_missing=True,
                date="iso" if is_other else None,
                newest=float(index) if is_other else None,
            )
        )
        words = ("yes", "no") if is_other else None
        categorical.append(CategoricalFeature(column=f"c{index}", num_values=3, words=words))
    return FeaturePlan(
        label=LabelPlan(column="y", problem_type="binary", values="number", classes=("0", "1")),
        numeric=tuple(numeric),
        categorical=tuple(categorical),
        num_buckets=10,
    )


def placeholders(plan):
    def dtype(part):
        return tf.string if part.kind[-1] == "iso" or part.column[0] == "c" else tf.float32

    dtypes = {part.column: dtype(part) for part in (*plan.numeric, *plan.categorical)}
    sparse_placeholder = tf.compat.v1.sparse_placeholder
    columns = {name: sparse_placeholder(kind, [None, None]) for name, kind in dtypes.items()}
    return {**columns, "y": sparse_placeholder(tf.int64, [None, None])}


def count_preprocessing(num_columns, folder):
    """Returns the numbers of operations and of analyzers that `preprocessing_fn` adds to a graph."""
    plan = make_plan(num_columns)
    with (
        tf.Graph().as_default() as graph,
        graph_context.TFGraphContext(
            module_to_export=tf.Module(), temp_dir=str(folder), evaluated_replacements={}
        ),
    ):
        inputs = placeholders(plan)
        before = len(graph.get_operations())
        preprocessing_fn(inputs, plan.feature_config())
        analyzers = graph.get_collection("tft_tensor_replacements")
        return len(graph.get_operations()) - before, len(analyzers)


def count_with_packs(num_columns, folder, monkeypatch):
    plan = make_plan(num_columns)
    monkeypatch.setattr(plans, "MAX_SEPARATE", 10)
    with (
        tf.Graph().as_default() as graph,
        graph_context.TFGraphContext(
            module_to_export=tf.Module(), temp_dir=str(folder), evaluated_replacements={}
        ),
    ):
        sparse_placeholder = tf.compat.v1.sparse_placeholder
        inputs = {
            packed_name(pack, dtype): sparse_placeholder(dtype, [None, len(columns)])
            for pack, columns in plan.packs.items()
            for dtype in (tf.float32, tf.string)
        }
        inputs["y"] = sparse_placeholder(tf.int64, [None, None])
        outputs = preprocessing_fn(inputs, plan.feature_config())
        return len(graph.get_operations()), sorted(outputs)


@pytest.mark.more
def test_a_graph_of_matrices_is_the_same_for_any_number_of_columns(tmp_path, monkeypatch):
    few = count_with_packs(40, tmp_path, monkeypatch)
    assert count_with_packs(400, tmp_path, monkeypatch) == few
    assert few[1] == ["category", "label", "numeric", "numeric_bucket", "numeric_is_missing"]


def test_the_operations_and_analyzers_of_preprocessing_do_not_grow_with_the_columns(tmp_path):
    few = count_preprocessing(20, tmp_path)
    assert count_preprocessing(40, tmp_path) == few
    assert few[1] > 0


def count_receiver(num_columns, is_packed=False):
    spec = {f"n{index}": tf.io.VarLenFeature(tf.float32) for index in range(num_columns)}
    packs = {"numbers": list(spec)} if is_packed else {}
    with tf.Graph().as_default() as graph:
        estimator_core.export.build_rows_serving_input_receiver_fn(spec, packs)()
        return len(graph.get_operations())


def test_a_further_column_costs_a_handful_of_operations_and_of_a_matrix_its_placeholder():
    # The placeholder, two parts of the sparse tensor to join and its shape.
    assert count_receiver(40) - count_receiver(20) == pytest.approx(20 * 6, abs=20 * 1)
    assert count_receiver(40, is_packed=True) - count_receiver(20, is_packed=True) == 20
