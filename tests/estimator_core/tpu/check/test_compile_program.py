"""Reading a compiled program, and a refusal."""

from estimator_core.tpu.check import compile_program


def test_collectives_of_a_compiled_program():
    hlo = """
      %all-reduce.1 = (f32[32,64]{1,0:T(8,128)}, bf16[3]{0}) all-reduce(%a, %b), replica_groups={{0,1}}
      %all-reduce-start = f32[2]{0} all-reduce-start(%c), replica_groups={}
      %x = f32[2]{0} all-reduce-done(%all-reduce-start)
      %all-gather.2 = pred[5]{0} all-gather(%d), dimensions={0}
      %add.3 = f32[4]{0} add(%all-reduce.1, %e)
    """
    assert list(compile_program.collectives(hlo)) == [
        ("all-reduce", 4 * 32 * 64 + 2 * 3),
        ("all-reduce", 8),
        ("all-gather", 5),
    ]


def test_refused_operations_are_those_that_the_message_names():
    message = (
        "Detected unsupported operations when trying to compile graph f[] on XLA_CPU_JIT: PyFunc (No "
        "registered 'PyFunc' OpKernel for XLA_CPU_JIT devices compatible with node {{node a/PyFunc}})"
        "{{node a/PyFunc}}, AsString (No registered 'AsString' OpKernel for XLA_CPU_JIT devices "
        "compatible with node {{node b}})"
    )
    assert compile_program.refused_operations(message) == [["a/PyFunc", "PyFunc"], ["b", "AsString"]]
    assert compile_program.refused_operations("in {{node c/d}}") == [["c/d", None]]
    assert compile_program.refused_operations("out of memory") == []
