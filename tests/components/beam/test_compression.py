from components.beam import compression


def test_a_value_comes_back_and_is_small_in_between():
    value = {b"row %d" % (number % 5) * 20: number for number in range(1000)}
    value["more"] = [b"the same row"] * 5_000
    packed = compression.compress(value)
    assert compression.decompress(packed) == value
    num_bytes, content = packed
    assert num_bytes > 10 * len(content)
    assert compression.decompress(compression.compress([])) == []
