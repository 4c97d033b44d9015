from estimator_core.execution.loops.compiled_step import NOT_COMPILED, cant_be_compiled


def test_the_error_says_why_and_what_to_set():
    text = str(cant_be_compiled("'x' (Where) cannot be compiled by XLA"))
    assert "'x' (Where) cannot be compiled by XLA" in text
    assert text.endswith("Received: jit_compile=True")
    assert "to 'auto' or False" in text


def test_the_log_says_why():
    assert NOT_COMPILED % "so" == "XLA does not compile training steps, as so."
