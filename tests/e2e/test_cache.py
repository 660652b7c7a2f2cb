"""The cache of stored objects on the local disk: a start reads from it what it read or wrote before, whatever has happened to it."""

import random

import pytest
from objectserver import ObjectServer, home
from objectstores import start as start_store
from test_checkpoints import BY_HAND, one

pytestmark = pytest.mark.logstead_only


@pytest.fixture(params=["dev-bucket"])
def cached(request, tmp_path):
    """A server on a bucket, with a cache in `tmp_path/cache`."""
    with start_store(request.param, tmp_path) as store:
        cache = ("--cache-directory", str(tmp_path / "cache"), "--cache-size", "64MB")
        server = ObjectServer(tmp_path / "server", home(store), store.environment, *BY_HAND, *cache)
        yield server
        server.kill()


def held(server) -> list:
    return server.execute("SELECT count(*), sum(id), md5(string_agg(v, '' ORDER BY id)) FROM t")


def gets(server) -> int:
    return server.execute("SELECT requests FROM logstead_cost WHERE kind = 'get'")[0][0]


def test_a_start_reads_pages_from_the_cache(cached, tmp_path, seed):
    cached.start()
    state = one(cached, "logstead_cache")
    assert state["directory"] == str(tmp_path / "cache") and state["blocks"] == 0 and state["storing"], state
    # Does not compress away: some megabytes.
    cached.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text)",
        "INSERT INTO t SELECT g, md5(g::text) || md5((-g)::text) FROM generate_series(1, 60000) AS g",
        "CHECKPOINT",
    )
    state = one(cached, "logstead_cache")
    assert state["blocks"] > 8 and 0 < state["used_bytes"] <= state["size_bytes"], state
    assert state["written_bytes"] == state["used_bytes"], state
    expected = held(cached)
    blocks = tmp_path / "cache/blocks"
    # Written by the life before, whole.
    cached.restart_after_kill()
    assert held(cached) == expected
    state = one(cached, "logstead_cache")
    assert state["hits"] > 0 and state["misses"] == 0 and state["damaged"] == 0, state
    quick = gets(cached)
    # Damaged here and there.
    cached.stop()
    rng = random.Random(seed)
    good = blocks.read_bytes()
    bad = bytearray(good)
    for _ in range(20):
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
    bad[4096 + 1000] ^= 1
    blocks.write_bytes(bad)
    cached.start()
    assert held(cached) == expected
    state = one(cached, "logstead_cache")
    assert state["damaged"] > 0 and state["misses"] >= state["damaged"], state
    # Gone.
    cached.stop()
    blocks.unlink()
    cached.start()
    assert held(cached) == expected
    state = one(cached, "logstead_cache")
    assert state["misses"] > 8 and state["blocks"] > 8, state
    assert gets(cached) > quick
    # No directory can be made there: said, and no reason not to start.
    cached.stop()
    blocks.unlink()
    (tmp_path / "cache/lock").unlink()
    (tmp_path / "cache").rmdir()
    (tmp_path / "cache").write_text("a file")
    cached.start()
    assert "there is no cache in this life" in cached.output_text()
    assert cached.execute("SELECT count(*) FROM logstead_cache") == [(0,)]
    assert held(cached) == expected


def test_a_local_home_has_none(private_server, tmp_path):
    private_server.start(("--cache-directory", str(tmp_path / "cache")))
    assert "cache_directory is not used" in private_server.output_text()
    assert private_server.execute("SELECT count(*) FROM logstead_cache") == [(0,)]
    assert private_server.execute("SHOW cache_directory") == [(str(tmp_path / "cache"),)]
    assert not (tmp_path / "cache").exists()
