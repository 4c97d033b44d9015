"""Makes TFDV, TFT and Beam faster, above all for tables with thousands of columns.

Some of their functions take time with the square of the columns, or many operations for each column.
Functions with the same results replace them when their modules are imported, also in Beam workers of other
processes, which import `components.tfx.compat`.
"""

import functools
import sys
import types
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from components.tfx.after_import import after_import


def install() -> None:
    """Replaces the functions when their modules are imported. Idempotent."""
    for name, mend in _MENDED.items():
        if name not in sys.modules:
            after_import([name], mend)


def mend_quantiles_util(quantiles_util: Any) -> None:
    """Puts functions that use arrays in the place of TFDV's, see `components.tfx.histograms`."""
    from components.tfx import histograms

    histograms.mend(quantiles_util)


def mend_graph_tools(graph_tools: Any) -> None:
    """Makes TFT's search for the inputs of an analyzer grow with the columns, not with their square."""
    from tensorflow_transform import tf_utils

    def set_in_dict(values: dict[Any, Any], key: Any, value: Any) -> None:
        # TFT compares the value with all others, but the names in them come from the keys of a dict.
        values[tf_utils.hashable_tensor_or_op(key)] = value

    def retrieve_source_keys(tensors: Iterable[Any], inputs: Mapping[str, Any]) -> set[str]:
        sources = graph_tools.retrieve_sources(
            [tensor.op for tensor in tensors], ignore_control_dependencies=True
        )
        hashable = {tf_utils.hashable_tensor_or_op(source) for source in sources}
        return {
            key
            for key, value in inputs.items()
            if any(
                tf_utils.hashable_tensor_or_op(part) in hashable
                for part in graph_tools._decompose_tensor_or_op(value)  # noqa: SLF001
            )
        }

    graph_tools._set_unique_value_in_dict = set_in_dict  # noqa: SLF001
    graph_tools._retrieve_source_keys = retrieve_source_keys  # noqa: SLF001


def mend_tf2_utils(tf2_utils: Any) -> None:
    """Makes TFT's stand-ins for missing inputs share their defaults, which saves operations per column."""
    import tensorflow as tf

    stock = tf2_utils.supply_missing_inputs

    def supply_missing_inputs(
        structured_inputs: Mapping[str, Any], batch_size: int, missing_keys: Collection[str] | None = None
    ) -> dict[str, Any]:
        def like(component: Any) -> Any:
            return tf.raw_ops.PlaceholderWithDefault(input=component.op.inputs[0], shape=component.shape)

        firsts: dict[Any, Any] = {}
        supplied = {}
        for key in missing_keys or structured_inputs:
            tensor = structured_inputs[key]
            kind = (type(tensor), tensor.dtype, str(tensor.shape))
            if kind not in firsts:
                supplied[key] = stock({key: tensor}, batch_size)[key]
                if isinstance(tensor, tf.Tensor | tf.SparseTensor):
                    firsts[kind] = supplied[key]
            else:
                supplied[key] = tf.nest.map_structure(like, firsts[kind], expand_composites=True)
        return supplied

    tf2_utils.supply_missing_inputs = supply_missing_inputs


def mend_pipeline_options(pipeline_options: Any) -> None:
    """Makes Beam's `PipelineOptions.view_as` return the same view for the same class.

    Beam asks for a view at each transform, and a view builds a parser of its arguments: together a second of
    a run. All views share the values of their options, so they are interchangeable.
    """
    stock = pipeline_options.PipelineOptions.view_as
    views: weakref.WeakKeyDictionary[Any, dict[type, Any]] = weakref.WeakKeyDictionary()

    def view_as(options: Any, cls: type) -> Any:
        by_class = views.setdefault(options, {})
        if cls not in by_class:
            by_class[cls] = stock(options, cls)
        return by_class[cls]

    pipeline_options.PipelineOptions.view_as = view_as


def mend_userstate(userstate: Any) -> None:
    """Makes Beam look for state and timers once for each class of DoFns, and only in methods with defaults.

    Beam inspects the signatures of all methods, about eight times for each step of a pipeline.
    """
    stock = userstate.get_dofn_specs

    def get_dofn_specs(dofn: Any) -> tuple[set[Any], set[Any]]:
        kind: Any = type(dofn)
        has_own_methods = any(isinstance(value, types.MethodType) for value in vars(dofn).values())
        if has_own_methods or _may_have_params(kind):
            return stock(dofn)
        return set(), set()

    userstate.get_dofn_specs = get_dofn_specs


@functools.lru_cache(maxsize=1024)
def _may_have_params(kind: Any) -> bool:
    """Returns False if no method of a class of DoFns has an argument such as `DoFn.StateParam`."""
    from apache_beam.transforms.core import DoFn, _DoFnParam

    for name in dir(kind):
        method = getattr(kind, name, None)
        function = getattr(method, "__func__", method)
        of_every_dofn = getattr(DoFn, name, None)
        if function is getattr(of_every_dofn, "__func__", of_every_dofn):
            continue
        if hasattr(kind, f"_inspect_{name}") or hasattr(function, "__wrapped__"):
            return True
        if any(isinstance(value, _DoFnParam) for value in getattr(function, "__defaults__", ()) or ()):
            return True
    return False


def mend_tf_utils(tf_utils: Any) -> None:
    """Makes TFT copy the dict of a function's inputs, and not each tensor in it: three operations a column.

    The dict is copied because a `preprocessing_fn` may change it. Graphs of TensorFlow 1, where an output
    must not be an input, keep the copies of the tensors; a `tf.function` makes its own for what it returns.
    """
    import tensorflow as tf

    stock = tf_utils.copy_tensors

    def copy_tensors(tensors: Mapping[str, Any]) -> dict[str, Any]:
        return dict(tensors) if tf.inside_function() else stock(tensors)

    tf_utils.copy_tensors = copy_tensors


def mend_inspection(inspection: Any) -> None:
    """Makes Transform trace a `preprocessing_fn` once, not three times, to find the columns that it reads.

    TFX asks twice for the columns of the analyzers, and then for those of the outputs.
    """
    stock = inspection.impl_helper.trace_preprocessing_function
    find_inputs = inspection.get_transform_input_columns
    kept: list[tuple[tuple[Any, ...], Any]] = []

    def trace(fn: Any, specs: Any, use_tf_compat_v1: bool) -> Any:
        arguments = (fn, dict(specs), use_tf_compat_v1)
        if not kept or kept[0][0] != arguments:
            kept[:] = [(arguments, stock(fn, specs, use_tf_compat_v1=use_tf_compat_v1))]
        return kept[0][1]

    def get_transform_input_columns(*args: Any, **kwargs: Any) -> list[str]:
        try:
            return list(find_inputs(*args, **kwargs))
        finally:
            kept.clear()  # it is the last to ask

    # TFT's package takes all names of this module, and its own `impl_helper` is not to be replaced.
    names = [name for name in vars(inspection) if not name.startswith("_")]
    inspection.__all__ = [name for name in names if name != "impl_helper"]
    inspection.impl_helper = types.SimpleNamespace(trace_preprocessing_function=trace)
    inspection.get_transform_input_columns = get_transform_input_columns


def mend_merge_util(merge_util: Any) -> None:
    """Makes TFDV merge the statistics of columns once, see `components.tfx.merged_statistics`.

    The columns are sorted by name; in TFDV, their order depends on that of the engine.
    """
    from components.tfx.merged_statistics import MergeOnce

    stock = merge_util.merge_dataset_feature_statistics_list

    def merge(statistics: Iterable[Any]) -> Any:
        merged = stock(statistics)
        for dataset in merged.datasets:
            dataset.features.sort(key=lambda feature: tuple(feature.path.step))
        return merged

    merge_util.merge_dataset_feature_statistics_list = MergeOnce(merge)


_MENDED: dict[str, Callable[[Any], None]] = {
    "apache_beam.options.pipeline_options": mend_pipeline_options,
    "apache_beam.transforms.userstate": mend_userstate,
    "tensorflow_data_validation.utils.quantiles_util": mend_quantiles_util,
    "tensorflow_transform.graph_tools": mend_graph_tools,
    "tensorflow_transform.inspect_preprocessing_fn": mend_inspection,
    "tensorflow_transform.tf2_utils": mend_tf2_utils,
    "tensorflow_transform.tf_utils": mend_tf_utils,
    "tfx_bsl.statistics.merge_util": mend_merge_util,
}
