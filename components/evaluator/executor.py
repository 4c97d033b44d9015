"""Runs TFMA on a model and writes the evaluation, the verdict and the blessing."""

import contextlib
import json
import logging
import os
import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow as tf
import tensorflow_model_analysis as tfma
from apache_beam.utils import shared
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_model_analysis.proto import config_pb2
from tensorflow_model_analysis.slicer import slicer_lib
from tfx.components.evaluator import constants
from tfx.components.util import examples_utils, tfxio_utils, udf_utils
from tfx.dsl.io import fileio
from tfx.proto import evaluator_pb2, example_gen_pb2
from tfx.types import artifact_utils, standard_component_specs
from tfx.types.artifact import Artifact
from tfx.utils import io_utils, json_utils, proto_utils
from tfx_bsl.tfxio import tensor_adapter

from components.beam.beam_executor import InMemoryExecutor
from components.beam.spread import Spread
from components.errors import SettingError
from components.evaluator import by_example
from components.evaluator.gate.default_checks import DefaultChecks
from components.evaluator.gate.gate import Gate, read_checks, write_checks
from components.evaluator.gate.judgement import make_verdict
from components.evaluator.gate.leak_doubts import leak_doubts
from components.evaluator.gate.slice_columns import as_text
from components.evaluator.gate.verdict import Verdict
from components.evaluator.metrics import batched_evaluation, extraction
from components.evaluator.metrics.eval_config import (
    resolve_thresholds,
    with_defaults,
    with_settings_of_models,
    with_single_output,
    with_stock_arguments,
)
from components.evaluator.metrics.eval_model import EvalModel, load_graph
from components.evaluator.metrics.extraction import BASELINE_OF_OTHER_TYPES
from components.evaluator.metrics.sklearn_metrics import SklearnMetric, resolve_classes
from components.evaluator.metrics.slices import Slices
from components.evaluator.report_details import details
from components.evaluator.report_details.importance import Importance
from components.nearest import nearest_first
from components.pusher.held import HELD_KEY
from components.tfx.after_import import after_import
from components.tfx.decision_file import DECISION_FILE, INTERVAL_FILE, read_model_file
from components.tfx.model_paths import eval_model_path, serving_model_path
from components.user import code as user_code

_LOGGER = logging.getLogger(__name__)

_TELEMETRY_DESCRIPTORS = ["Evaluator"]

DEFAULT_CHECKS_KEY = "default_checks"
SAME_VALUES_KEY = "same_values"
_TRAIN_SPLIT = "train"
_EVAL_SIGNATURE = "eval"
_WITHOUT_EVAL_MODEL = "the model against the baseline, which has no evaluation model (Format-TFMA)"
_NOT_ALL_MEASURED = "whether one column dominates: there was not enough time to measure all columns"
_CUSTOM_FUNCTIONS = ("custom_eval_shared_model", "custom_extractors")


@dataclass(frozen=True)
class EvaluationRequest:
    model: Artifact
    baseline: Artifact | None  # The model to compare with
    examples: list[Artifact]  # The raw examples, one artifact or more
    splits: tuple[str, ...]
    eval_config: config_pb2.EvalConfig  # The user's configuration
    schema: schema_pb2.Schema | None
    evaluation_uri: str  # Directory for the results
    default_checks: DefaultChecks | None = None
    same_values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    module: types.ModuleType | None = None  # The user's module

    @property
    def effective_config(self) -> config_pb2.EvalConfig:
        """The configuration with defaults and model names; change thresholds only with a baseline."""
        return with_defaults(self.eval_config, has_baseline=self.baseline is not None)

    @property
    def model_names(self) -> tuple[str, str | None]:
        """The names of the model and of the baseline, if any, in the evaluation."""
        specs = self.effective_config.model_specs
        return specs[0].name, next((spec.name for spec in specs if spec.is_baseline), None)

    @property
    def further_names(self) -> tuple[str, ...]:
        """The names of the model in the evaluation under further ModelSpecs."""
        specs = self.effective_config.model_specs
        return tuple(spec.name for spec in specs[1:] if not spec.is_baseline)

    def artifact(self, spec: config_pb2.ModelSpec) -> Artifact:
        return self.baseline if spec.is_baseline and self.baseline else self.model

    def gate(self, example_weight: str) -> Gate:
        settings = self.default_checks or DefaultChecks()
        return Gate(settings, *self.model_names, example_weight, self.decision_thresholds())

    def decision_thresholds(self) -> dict[str, float]:
        """Returns the decision thresholds of the models that have one, by their names in the evaluation."""
        files = self._model_files(DECISION_FILE)
        # The probabilities of a model with the other positive class are turned around, see `align_classes`.
        positive = files.get(self.model_names[0], {}).get("positive")
        thresholds = {}
        for name, decision in files.items():
            threshold = float(decision["threshold"])
            is_mirrored = positive is not None and decision.get("positive", positive) != positive
            thresholds[name] = 1 - threshold if is_mirrored else threshold
        return thresholds

    def model_settings(self) -> dict[str, dict[str, Any]]:
        """Returns the arguments of metrics that the models determine, by the names of the models."""
        settings = {
            name: {"threshold": threshold, "thresholds": threshold}
            for name, threshold in self.decision_thresholds().items()
        }
        intervals = self._model_files(INTERVAL_FILE).items()
        return settings | {name: {"interval": json.dumps(interval)} for name, interval in intervals}

    def _model_files(self, file: str) -> dict[str, dict[str, Any]]:
        contents = {}
        for spec in self.effective_config.model_specs:
            with contextlib.suppress(FileNotFoundError):  # a model without a SavedModel to serve
                if content := read_model_file(serving_model_path(self.artifact(spec)), file):
                    contents[spec.name] = content
        return contents

    def training_files(self) -> list[str]:
        """Returns the files of the split `train`; empty if it is evaluated on, or does not exist."""
        has_split = all(
            _TRAIN_SPLIT in artifact_utils.decode_split_names(artifact.split_names)
            for artifact in self.examples
        )
        if not has_split or _TRAIN_SPLIT in self.splits:
            return []
        return replace(self, splits=(_TRAIN_SPLIT,)).files()

    def files(self) -> list[str]:
        for artifact in self.examples:
            if examples_utils.get_payload_format(artifact) != example_gen_pb2.PayloadFormat.FORMAT_TF_EXAMPLE:
                raise ValueError(
                    "The Evaluator reads tf.Examples only. Received: "
                    f"{examples_utils.get_payload_format_string(artifact)} in {artifact.uri}"
                )
        return [
            path
            for split in self.splits
            for uri in artifact_utils.get_split_uris(self.examples, split)
            for path in sorted(fileio.glob(io_utils.all_files_pattern(uri)))
        ]


class Executor(InMemoryExecutor):
    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        with self._user_module(exec_properties) as module:
            request = _parse(input_dict, output_dict, exec_properties, module)
            self._evaluate(request, output_dict, exec_properties)

    def _evaluate(
        self,
        request: EvaluationRequest,
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        unchecked: tuple[str, ...] = ()
        # The functions of a user's module are made for serving models, as TFMA's own extractors are.
        is_customized = any(hasattr(request.module, name) for name in _CUSTOM_FUNCTIONS)
        # Several ModelSpecs name signatures or outputs of the serving model.
        is_served = is_customized or bool(request.further_names)
        if eval_model_path(request.model.uri) and not is_served:
            if request.baseline is not None and eval_model_path(request.baseline.uri) is None:
                # It may be a Keras model, or older than export_eval_savedmodel in the user's module.
                unchecked = (_WITHOUT_EVAL_MODEL,)
                request = replace(request, baseline=None)
            try:
                self._evaluate_estimator(request)
            except RuntimeError as error:
                if request.baseline is None or BASELINE_OF_OTHER_TYPES not in str(error):
                    raise
                unchecked = (_describe_other_types(str(error)),)
                request = replace(request, baseline=None)
                self._evaluate_estimator(request)
        else:
            self._evaluate_saved_model(request)
        unchecked += _describe_empty_slices(request)
        checked = read_checks(request.evaluation_uri)
        importance = details.load_details(request.evaluation_uri).get("importance")
        doubts = checked.doubts
        if request.default_checks is not None and importance is not None:
            doubts += leak_doubts(importance, request.default_checks.accepted)
            if importance.get("left_out"):
                unchecked += (_NOT_ALL_MEASURED,)
        result = make_verdict(
            request.evaluation_uri,
            request.eval_config,
            candidate=request.model_names[0],
            baseline=request.model_names[1],
            further=request.further_names,
            checked=replace(checked, doubts=doubts, not_checked=(*checked.not_checked, *unchecked)),
            holds=request.default_checks is not None and request.default_checks.doubts == "hold",
        )
        result.write(request.evaluation_uri)
        if result.blessed:
            compared = f"compared with {request.baseline.uri}" if request.baseline else "without a baseline"
            _LOGGER.info("BLESSED, %s: %s", compared, request.evaluation_uri)
        for failure in result.failures:
            _LOGGER.warning("NOT_BLESSED: %s", failure)
        for doubt in result.doubts:
            _LOGGER.warning("Doubted: %s", doubt)
        for reason in result.not_checked:
            _LOGGER.warning("Not checked: %s", reason)
        blessing = artifact_utils.get_single_instance(output_dict[standard_component_specs.BLESSING_KEY])
        _write_blessing(blessing, result, request, exec_properties.get("current_component_id"))

    def _evaluate_estimator(self, request: EvaluationRequest) -> None:
        """Evaluates on the evaluation models, in large batches."""
        config = with_single_output(request.effective_config)
        checks = request.default_checks
        models = [_model_to_evaluate(spec, request) for spec in config.model_specs]
        # Held until the end, so that the workers of this process do not load them again.
        graphs = {model.name: load_graph(model.path) for model in models}
        config = _with_class_ids(config, models[0], request)
        features = _raw_feature_names(request)
        for key in {spec.label_key for spec in config.model_specs} - {"", *features}:
            # With several labels by name, EvalModel refuses an unknown one.
            if features and all("labels" in graph.labels for graph in graphs.values()):
                _LOGGER.warning(
                    "label_key=%r of the ModelSpec is not used: there is no raw feature of this name, and "
                    "the evaluation model contains its only label.",
                    key,
                )
        config = resolve_thresholds(config, graphs)
        config = with_settings_of_models(config, request.model_settings())
        weight_key = config.model_specs[0].example_weight_key
        if weight_key in features or weight_key not in graphs[models[0].name].features:
            weight_key = ""
        models[0] = replace(models[0], weight_key=weight_key)
        raw_features = extraction.RawFeatures.from_config(
            config,
            request.schema,
            checks.categories if checks else (),
            checks.numbers if checks else (),
            weight_key,
        )
        raw_features = replace(raw_features, same_values=request.same_values)
        # TFMA reads only the names and paths from these; it does not load them.
        named = [
            tfma.EvalSharedModel(
                model_path=model.path,
                model_name=model.name,
                include_default_metrics=False,
                is_baseline=spec.is_baseline,
            )
            for model, spec in zip(models, config.model_specs, strict=True)
        ]
        models_of = shared.Shared()
        read = extraction.ReadAndEvaluate(models, raw_features, models_of=models_of)
        gate = request.gate(raw_features.example_weight)
        with self._make_beam_pipeline() as pipeline:
            files = request.files()
            batches = pipeline | "Files" >> Spread(files) | "ReadAndEvaluate" >> beam.ParDo(read)
            if batched_evaluation.Computations.from_config(config) is not None:
                evaluation = batched_evaluation.evaluate(batches, config, raw_features.example_weight)
            else:
                evaluation = by_example.evaluate(batches, config, named, raw_features.example_weight)
            details.write_details(batches, Slices(config), gate, request.evaluation_uri)
            details.write_importance(
                pipeline
                | "AllFiles" >> beam.Create([files], reshuffle=False)
                | "Importance" >> beam.ParDo(Importance(models, models_of, gate)),
                request.evaluation_uri,
            )
            if request.default_checks is not None:
                labels = None
                if training_files := request.training_files():
                    read_labels = extraction.ReadAndEvaluate(
                        models, raw_features, labels_only=True, models_of=models_of
                    )
                    labels = (
                        pipeline
                        | "TrainingFiles" >> Spread(training_files)
                        | "ReadLabels" >> beam.ParDo(read_labels)
                    )
                write_checks(batches, labels, gate, request.evaluation_uri)
            _ = evaluation | "WriteResults" >> tfma.WriteResults(
                writers=tfma.default_writers(
                    output_path=request.evaluation_uri, eval_config=config, eval_shared_model=named
                )
            )

    def _evaluate_saved_model(self, request: EvaluationRequest) -> None:
        """Evaluates on the serving models, with TFMA's own extractors."""
        config = resolve_classes(request.effective_config, ())
        _check_labels(config, request)
        make_model = getattr(request.module, "custom_eval_shared_model", tfma.default_eval_shared_model)
        models = [
            make_model(
                eval_saved_model_path=serving_model_path(request.artifact(spec)),
                model_name=spec.name,
                eval_config=config,
                add_metrics_callbacks=None,
            )
            for spec in config.model_specs
        ]
        # Of a Keras 2 model, TFMA computes the metrics that were compiled into it.
        if not any(model.model_type == tfma.TF_KERAS for model in models):
            config = resolve_thresholds(config, {})
        config = with_settings_of_models(config, request.model_settings())
        tfxio_factory = tfxio_utils.get_tfxio_factory_from_artifact(
            examples=request.examples,
            telemetry_descriptors=_TELEMETRY_DESCRIPTORS,
            schema=request.schema,
            raw_record_column_name=tfma.ARROW_INPUT_COLUMN,
        )
        tfxio = tfxio_factory(request.files())
        adapter_config = None
        if request.schema is not None:
            adapter_config = tensor_adapter.TensorAdapterConfig(
                arrow_schema=tfxio.ArrowSchema(), tensor_representations=tfxio.TensorRepresentations()
            )
        shared_model = models[0] if len(models) == 1 else models
        extractors = None
        if make_extractors := getattr(request.module, "custom_extractors", None):
            extractors = make_extractors(
                eval_shared_model=shared_model, eval_config=config, tensor_adapter_config=adapter_config
            )
        evaluators = tfma.default_evaluators(eval_config=config, eval_shared_model=models)
        weight = config.model_specs[0].example_weight_key
        evaluators.append(
            by_example.gate_evaluator(
                request.gate(weight),
                Slices(config),
                request.evaluation_uri,
                makes_checks=request.default_checks is not None,
            )
        )
        with self._make_beam_pipeline() as pipeline:
            _ = (
                pipeline
                | "Read" >> tfxio.BeamSource()
                | "EvaluateAndWriteResults"
                >> tfma.ExtractEvaluateAndWriteResults(
                    eval_shared_model=shared_model,
                    eval_config=config,
                    extractors=extractors,
                    evaluators=evaluators,
                    output_path=request.evaluation_uri,
                    tensor_adapter_config=adapter_config,
                )
            )

    @contextlib.contextmanager
    def _user_module(self, exec_properties: dict[str, Any]) -> Iterator[types.ModuleType | None]:
        """Yields the user's module, if any, whose wheel Beam's workers get as well."""
        name, wheels = udf_utils.decode_user_module_key(
            exec_properties.get(standard_component_specs.MODULE_PATH_KEY)
        )
        file = exec_properties.get(standard_component_specs.MODULE_FILE_KEY)
        wheels = [io_utils.ensure_local(wheel) for wheel in wheels]
        self._beam_pipeline_args.extend(f"--extra_package={wheel}" for wheel in wheels)
        with udf_utils.TempPipInstallContext(wheels):
            if name:
                yield user_code.load_module(name)
            else:
                yield user_code.load_module_file(file) if file else None


# In containers compiled by TFX's KubeflowV2DagRunner, TFX converts the ids in a blessing to those that its
# LatestBlessedModelStrategy reads, but only for subclasses of TFX's Evaluator executor.
after_import(["tfx.components.evaluator.executor"], lambda module: module.Executor.register(Executor))


def _describe_empty_slices(request: EvaluationRequest) -> tuple[str, ...]:
    """Returns a sentence for each configured slice that contains no example."""
    name = request.model_names[0] or None
    result = tfma.load_eval_result(request.evaluation_uri, model_name=name)
    computed = [
        {feature for feature, _ in key}
        for key, _ in result.slicing_metrics
        if not slicer_lib.is_cross_slice_key(key)
    ]
    wanted = [{*spec.feature_keys, *spec.feature_values} for spec in request.eval_config.slicing_specs]
    return tuple(
        f"the slices by {', '.join(sorted(features))}: they have no examples. Slices are by raw columns"
        for features in wanted
        if computed and features not in computed
    )


def _describe_other_types(error: str) -> str:
    """Returns the reason why a model is not compared with the baseline, from TensorFlow's message."""
    name = re.search(r"Key: (.*?),[^\n]*Data types don't match", error)
    was, is_now = (
        re.search(pattern, error, re.IGNORECASE)  # sparse columns, or dense ones
        for pattern in (r"expected type: (\w+)", r"(?:actual|data) type: (\w+)")
    )
    column = f": {name[1]!r} was {was[1]}, and is {is_now[1]} now" if name and was and is_now else ""
    return f"the model against the baseline, which has other column types{column}"


def _parse(
    input_dict: dict[str, list[Artifact]],
    output_dict: dict[str, list[Artifact]],
    exec_properties: dict[str, Any],
    module: types.ModuleType | None,
) -> EvaluationRequest:
    eval_config = proto_utils.json_to_proto(
        exec_properties.get(standard_component_specs.EVAL_CONFIG_KEY) or "{}", config_pb2.EvalConfig()
    )
    feature_slicing_spec = None
    if slicing_json := exec_properties.get(standard_component_specs.FEATURE_SLICING_SPEC_KEY):
        feature_slicing_spec = proto_utils.json_to_proto(slicing_json, evaluator_pb2.FeatureSlicingSpec())
    fairness_json = exec_properties.get(standard_component_specs.FAIRNESS_INDICATOR_THRESHOLDS_KEY)
    splits = json_utils.loads(exec_properties.get(standard_component_specs.EXAMPLE_SPLITS_KEY) or "null")
    baseline = input_dict.get(standard_component_specs.BASELINE_MODEL_KEY)
    schema = None
    if input_dict.get(standard_component_specs.SCHEMA_KEY):
        schema = io_utils.SchemaReader().read(
            io_utils.get_only_uri_in_dir(
                artifact_utils.get_single_uri(input_dict[standard_component_specs.SCHEMA_KEY])
            )
        )
    return EvaluationRequest(
        model=artifact_utils.get_single_instance(input_dict[standard_component_specs.MODEL_KEY]),
        baseline=artifact_utils.get_single_instance(baseline) if baseline else None,
        examples=input_dict[standard_component_specs.EXAMPLES_KEY],
        splits=tuple(splits or ("eval",)),
        eval_config=with_stock_arguments(
            eval_config, feature_slicing_spec, json_utils.loads(fairness_json or "null") or ()
        ),
        schema=schema,
        evaluation_uri=artifact_utils.get_single_uri(output_dict[standard_component_specs.EVALUATION_KEY]),
        default_checks=DefaultChecks.from_json(exec_properties.get(DEFAULT_CHECKS_KEY)),
        same_values=json_utils.loads(exec_properties.get(SAME_VALUES_KEY) or "{}"),
        module=module,
    )


def _check_labels(config: config_pb2.EvalConfig, request: EvaluationRequest) -> None:
    """Checks that the raw examples have the labels that TFMA reads from them."""
    features = _raw_feature_names(request)
    for spec in config.model_specs:
        if spec.signature_name == _EVAL_SIGNATURE:
            raise SettingError(
                "signature_name 'eval' of the ModelSpec is the signature of an evaluation model, which "
                f"{request.artifact(spec).uri} lacks, or which the functions of module_file cannot use. "
                "Remove signature_name to evaluate the serving model, or export an evaluation model "
                "(export_eval_savedmodel) to Format-TFMA."
            )
        if spec.preprocessing_function_names:
            continue  # one of these functions of the model may derive the label
        keys = list(spec.label_keys.values()) or [spec.label_key]
        for key in keys:
            if features and key not in features:
                problem = f"there is no raw feature {key!r}" if key else "no label is named"
                raise SettingError(
                    f"label_key of the ModelSpec (evaluator.label of a pipeline): {problem}. The serving "
                    "model is evaluated, so its labels are a raw feature, one of: "
                    f"{', '.join(nearest_first(key, features))}. Where the label is derived from "
                    "others, export an evaluation model (export_eval_savedmodel) to Format-TFMA."
                )


def _raw_feature_names(request: EvaluationRequest) -> list[str]:
    """Returns the features of the schema, or of the first example; none without examples."""
    if request.schema is not None:
        return sorted(feature.name for feature in request.schema.feature)
    examples = map(tf.train.Example.FromString, _first_record(request))
    return sorted(name for example in examples for name in example.features.feature)


def _first_record(request: EvaluationRequest) -> list[bytes]:
    """Returns a list of the first serialized example; empty without examples."""
    for path in request.files():
        compression = "GZIP" if path.endswith(".gz") else ""
        for record in tf.data.TFRecordDataset(path, compression).take(1).as_numpy_iterator():
            return [record]
    return []


def _with_class_ids(
    config: config_pb2.EvalConfig, model: extraction.ModelToEvaluate, request: EvaluationRequest
) -> config_pb2.EvalConfig:
    """Returns the configuration with the ids of classes that metrics name; as it is without examples."""
    metrics = [metric for spec in config.metrics_specs for metric in spec.metrics]
    if not any(metric.class_name == SklearnMetric.__name__ and "@" in metric.config for metric in metrics):
        return config
    records = _first_record(request)
    if not records:
        return config
    evaluation_model = EvalModel(model.path, model.prediction_key, model.label_key)
    classes = evaluation_model.classes(np.array(records, object))
    return resolve_classes(config, [] if classes is None else list(map(as_text, classes)))


def _model_to_evaluate(spec: config_pb2.ModelSpec, request: EvaluationRequest) -> extraction.ModelToEvaluate:
    path = eval_model_path(request.artifact(spec).uri)
    assert path is not None  # a baseline without one is left out
    return extraction.ModelToEvaluate(
        name=spec.name, path=path, prediction_key=spec.prediction_key, label_key=spec.label_key
    )


def _write_blessing(
    blessing: Artifact, result: Verdict, request: EvaluationRequest, component_id: str | None
) -> None:
    """Writes the blessing for stock Resolver and Pusher."""
    name = constants.BLESSED_FILE_NAME if result.blessed else constants.NOT_BLESSED_FILE_NAME
    io_utils.write_string_file(os.path.join(blessing.uri, name), "")
    blessing.set_int_custom_property(
        constants.ARTIFACT_PROPERTY_BLESSED_KEY,
        constants.BLESSED_VALUE if result.blessed else constants.NOT_BLESSED_VALUE,
    )
    blessing.set_int_custom_property(HELD_KEY, int(result.held))
    blessing.set_string_custom_property(
        constants.ARTIFACT_PROPERTY_BLESSING_MESSAGE_KEY,
        "; ".join(result.doubts if result.held else result.failures),
    )
    for artifact, uri_key, id_key in (
        (
            request.model,
            constants.ARTIFACT_PROPERTY_CURRENT_MODEL_URI_KEY,
            constants.ARTIFACT_PROPERTY_CURRENT_MODEL_ID_KEY,
        ),
        (
            request.baseline,
            constants.ARTIFACT_PROPERTY_BASELINE_MODEL_URI_KEY,
            constants.ARTIFACT_PROPERTY_BASELINE_MODEL_ID_KEY,
        ),
    ):
        if artifact is not None:
            blessing.set_string_custom_property(uri_key, artifact.uri)
            blessing.set_int_custom_property(id_key, artifact.id)
    if component_id:
        blessing.set_string_custom_property("component_id", component_id)
