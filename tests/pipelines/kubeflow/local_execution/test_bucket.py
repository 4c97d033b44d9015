import pytest

from pipelines.kubeflow.local_execution.bucket import Bucket, mounted_path


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("minio://bucket/a/b", "minio/bucket/a/b"),
        ("s3://bucket/a", "s3/bucket/a"),
        ("gs://bucket/a", "gcs/bucket/a"),
    ],
)
def test_local_copies_are_where_the_launcher_has_them(uri, place):
    assert mounted_path(uri) == place


def test_objects_go_and_come_without_empty_folders(tmp_path):
    source = tmp_path / "source"
    (source / "deep" / "er").mkdir(parents=True)
    (source / "empty").mkdir()
    (source / "deep" / "er" / "file").write_bytes(b"\0content")
    bucket = Bucket(tmp_path / "bucket")
    bucket.upload(source, "s3://bucket/key")
    bucket.download("s3://bucket/key", tmp_path / "copy")
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["deep"]
    assert (tmp_path / "copy" / "deep" / "er" / "file").read_bytes() == b"\0content"


def test_an_uploaded_object_can_be_downloaded(tmp_path):
    file = tmp_path / "file"
    file.write_text("content")
    bucket = Bucket(tmp_path / "bucket")
    bucket.upload(file, "gs://bucket/key")
    bucket.download("gs://bucket/key", tmp_path / "there" / "copy")
    assert (tmp_path / "there" / "copy").read_text() == "content"


def test_what_is_not_there(tmp_path):
    bucket = Bucket(tmp_path / "bucket")
    bucket.upload(tmp_path / "nothing", "s3://bucket/key")  # an output need not be written
    with pytest.raises(FileNotFoundError, match="no object below s3://bucket/key"):
        bucket.download("s3://bucket/key", tmp_path / "copy")
