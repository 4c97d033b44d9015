from pipelines.kubeflow.compile.dag import pipeline_steps


def steps(curated_schema=False):
    return {step.role: step for step in pipeline_steps(curated_schema)}


def test_the_steps_are_in_an_order_in_which_they_can_run():
    done = set()
    for step in pipeline_steps(curated_schema=False):
        assert {role for role, _ in step.inputs.values()} <= done
        done.add(step.role)


def test_the_edges_are_those_of_the_definition():
    found = steps()
    assert found["trainer"].inputs == {
        "examples": ("transform", "transformed_examples"),
        "transform_graph": ("transform", "transform_graph"),
        "schema": ("schema_gen", "schema"),
    }
    # The served model is no input of Kubeflow's: the root has it.
    assert "baseline_model" not in found["evaluator"].inputs
    assert "baseline_statistics" not in found["example_validator"].inputs
    assert found["trainer"].outputs["model"] == "tfx.types.standard_artifacts.Model"


def test_the_pusher_gets_what_is_kept_for_the_next_run():
    assert set(steps()["pusher"].inputs) == {
        "model", "model_blessing", "infra_blessing", "evaluation", "schema", "statistics",
    }  # fmt: skip


def test_a_curated_schema_has_no_input():
    assert steps()["schema_gen"].inputs == {"statistics": ("statistics_gen", "statistics")}
    assert steps(curated_schema=True)["schema_gen"].inputs == {}


def test_a_search_is_between_transform_and_the_trainer():
    found = {step.role: step for step in pipeline_steps(curated_schema=False, tunes=True)}
    assert found["tuner"].inputs == {
        "examples": ("transform", "transformed_examples"),
        "transform_graph": ("transform", "transform_graph"),
        "schema": ("schema_gen", "schema"),
    }
    assert found["trainer"].inputs["hyperparameters"] == ("tuner", "best_hyperparameters")
    assert found["tuner"].outputs == {
        "best_hyperparameters": "tfx.types.standard_artifacts.HyperParameters",
        "tuner_results": "tfx.types.standard_artifacts.TunerResults",
    }
    assert set(found) - set(steps()) == {"tuner"}
