"""The object stores that other tests stand on: each starts, keeps what it is given, and has the limits that are relied on."""

import pytest
from objectstores import ALL, launch, start


@pytest.mark.parametrize("name", ALL)
def test_a_store_keeps_objects(name, tmp_path):
    with start(name, tmp_path) as store:
        store.put("some/one", b"1")
        store.put("some/two", b"22")
        store.put("other/three", b"333")
        assert store.keys("some/") == ["some/one", "some/two"]
        assert store.keys() == ["other/three", "some/one", "some/two"]
        assert store.get("some/two") == b"22"
        assert store.request("GET", "some/none")[0] == 404


def test_dev_bucket_loses_nothing_by_kill(tmp_path):
    store = launch("dev-bucket", tmp_path)
    try:
        for offset in range(20):
            status, answer = store.request(
                "PUT", "log", body=bytes([offset]), headers={"x-amz-write-offset-bytes": str(offset)}
            )
            assert status == 200, answer
        store.kill()
        store = launch("dev-bucket", tmp_path, port=store.port)
        assert store.get("log") == bytes(range(20))
        status, answer = store.request("PUT", "log", body=b"x", headers={"x-amz-write-offset-bytes": "19"})
        assert (status, b"InvalidWriteOffset" in answer) == (400, True)
    finally:
        store.kill()


def test_dev_bucket_takes_its_time(tmp_path):
    with start("dev-bucket", tmp_path, arguments=("--latency", "s3express", "--parts-max", "2")) as store:
        append = {"x-amz-write-offset-bytes": "0"}
        assert store.request("PUT", "log", body=b"a", headers=append)[0] == 200
        append = {"x-amz-write-offset-bytes": "1"}
        assert store.request("PUT", "log", body=b"b", headers=append)[0] == 200
        append = {"x-amz-write-offset-bytes": "2"}
        status, answer = store.request("PUT", "log", body=b"c", headers=append)
        assert (status, b"TooManyParts" in answer) == (400, True)


@pytest.mark.parametrize("name", ["versitygw", "moto"])
def test_stores_that_ignore_offsets_are_why_there_is_a_probe(name, tmp_path):
    """If this fails, the store has learnt to append: good news, and the tests that refuse it as s3express:// are out of date."""
    with start(name, tmp_path) as store:
        store.put("log", b"precious")
        status, _ = store.request("PUT", "log", body=b"x", headers={"x-amz-write-offset-bytes": "3"})
        assert (status, store.get("log")) == (200, b"x")
