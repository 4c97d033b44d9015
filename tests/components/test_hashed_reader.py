import hashlib
import io

from components.hashed_reader import HashedReader


def test_what_is_read_is_handed_on_and_hashed():
    content = bytes(range(256)) * 100
    reader = HashedReader(io.BytesIO(content))
    assert io.BufferedReader(reader, 1000).read() == content
    assert reader.sha256 == hashlib.sha256(content).hexdigest()
