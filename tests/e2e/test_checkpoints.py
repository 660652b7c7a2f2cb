"""Checkpoints, as users meet them: CHECKPOINT, restarts that read a checkpoint and only the log behind it, a log that gets shorter,
`logstead fsck`, and copies of a home. On local disks and on object stores, with kill -9."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import subprocess
import threading
from pathlib import Path

import psycopg
import pytest
from harness import LogsteadServer, Server
from objectserver import ObjectServer, go_on, home
from objectstores import start as start_store
from test_operation import refused
from transfers import Bank

pytestmark = pytest.mark.logstead_only

BY_HAND = ("--checkpoint-interval", "0")
SMALL_SEGMENTS = ("--segment-size", "1MB")
OFTEN = ("--checkpoint-interval", "50ms")


def one(server: Server, view: str) -> dict:
    """The one row of a view, by column."""
    with server.connect(autocommit=True) as connection:
        cursor = connection.execute(f"SELECT * FROM {view}")
        rows = cursor.fetchall()
        assert len(rows) == 1, rows
        return dict(zip((column.name for column in cursor.description), rows[0]))


def fsck(url: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess:
    """`logstead fsck URL`"""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("LOGSTEAD_")}
    command = [LogsteadServer.binary(), "fsck", url]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**inherited, **(environment or {})})


def assert_clean(url: str, environment: dict[str, str] | None = None) -> str:
    done = fsck(url, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "DAMAGED" not in done.stdout
    return done.stdout


def segments(data: Path) -> list[Path]:
    """Every file of the log's lanes."""
    return [path for path in data.rglob("*") if path.is_file() and "lane" in str(path.relative_to(data))]


def objects(data: Path) -> list[Path]:
    return sorted((data / "objects").glob("*"))


# -- by hand ----------------------------------------------------------------------------------------------------------


def test_restart_reads_only_what_came_after(private_server):
    """The counts of the start are those of the tail."""
    private_server.start(BY_HAND)
    with private_server.connect(autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        connection.execute("CREATE INDEX ON t (v)")
        for number in range(300):
            connection.execute("INSERT INTO t VALUES (%s, 'before')", (number,))
        connection.execute("DELETE FROM t WHERE id < 10")
        assert connection.execute("CHECKPOINT").statusmessage == "CHECKPOINT"
    taken = one(private_server, "logstead_checkpoints")
    assert taken["published"] == 1 and taken["failed"] == 0 and taken["last_error"] is None, taken
    assert taken["rows"] >= 290 and taken["pages"] > 0 and 0 < taken["live_bytes"] <= taken["total_bytes"], taken
    with private_server.connect(autocommit=True) as connection:
        for number in range(20, 27):
            connection.execute("UPDATE t SET v = 'after' WHERE id = %s", (number,))
    private_server.restart_after_kill(arguments=BY_HAND)
    found = one(private_server, "logstead_recovery")
    assert found["checkpoint_csn"] == taken["csn"], (found, taken)
    # Of chunks that the log behind it touches it keeps what the log says, and reads none of them; of others it knows nothing.
    assert 0 < found["chunks_with_tails_at_start"] <= taken["pages"] and found["checkpoint_pages"] == 0, (found, taken)
    assert 0 < found["chunks_in_memory"] <= found["chunks"], found
    # The seven updates, and what the server itself may have written since.
    assert 7 <= found["entries"] <= 17, found
    with private_server.connect(autocommit=True) as connection:
        rows = connection.execute("SELECT id, v FROM t ORDER BY id").fetchall()
        assert rows == [(n, "after" if 20 <= n < 27 else "before") for n in range(10, 300)]
        assert connection.execute("SELECT count(*) FROM t WHERE v = 'after'").fetchone() == (7,)
        assert one(private_server, "logstead_checkpoints")["csn"] == taken["csn"], "the one that was loaded"
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute("INSERT INTO t VALUES (15, 'twice')")
    private_server.stop()
    assert_clean(private_server.home)


def test_indexes_come_from_the_checkpoint(private_server):
    """Indexes of all kinds, changed behind the checkpoint and by kill -9: each finds what a scan finds, and refuses what is taken."""
    private_server.start(BY_HAND)
    with private_server.connect(autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text, n int, w int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
        connection.execute("CREATE INDEX lowered ON t (lower(v)); CREATE INDEX ON t (n DESC, id) WHERE n > 100")
        connection.execute("CREATE UNIQUE INDEX expressed ON t ((id * 2 + 1)); CREATE INDEX dropped ON t (v, n)")
        connection.execute("INSERT INTO t SELECT g, 'V' || g % 900, g % 300, g FROM generate_series(1, 6000) g")
        connection.execute("DELETE FROM t WHERE id % 7 = 0")
        connection.execute("CHECKPOINT")
    for life in range(3):
        with private_server.connect(autocommit=True) as connection:
            connection.execute("UPDATE t SET v = 'W' || id WHERE id %% 97 = %s", (life,))
            connection.execute("DELETE FROM t WHERE id %% 89 = %s", (life,))
            connection.execute("INSERT INTO t SELECT g, 'X', 200, g FROM generate_series(%s::int, %s::int) g", (7000 + life * 50, 7030 + life * 50))
            if life == 1:
                connection.execute("DROP INDEX dropped; CREATE INDEX late ON t (v); REINDEX INDEX lowered")
            if life == 2:
                connection.execute("CHECKPOINT")
        private_server.restart_after_kill(arguments=BY_HAND)
        with private_server.connect(autocommit=True) as connection:
            everything = connection.execute("SELECT id, v, n, w FROM t").fetchall()
            assert len({row[0] for row in everything}) == len(everything) > 4_900
            for id, v, n, w in random.Random(life).sample(everything, 60):
                same = lambda condition: sorted(row for row in everything if condition(row))
                ask = lambda where, *values: sorted(connection.execute(f"SELECT id, v, n, w FROM t WHERE {where}", values).fetchall())
                assert ask("id = %s", id) == same(lambda row: row[0] == id)
                assert ask("lower(v) = lower(%s)", v) == same(lambda row: row[1].lower() == v.lower())
                assert ask("n > 100 AND n = %s", n) == same(lambda row: row[2] > 100 and row[2] == n)
                assert ask("id * 2 + 1 = %s", id * 2 + 1) == same(lambda row: row[0] == id)
                assert ask("w = %s", w) == same(lambda row: row[3] == w)
                for taken in ("(%s, 'y', 1, -1)", "(-%s, 'y', 1, %s)"):
                    with pytest.raises(psycopg.errors.UniqueViolation):
                        values = (id,) if taken.count("%s") == 1 else (id, w)
                        connection.execute(f"INSERT INTO t VALUES {taken}", values)
    private_server.stop()
    assert_clean(private_server.home)


def test_without_one_everything_is_read(private_server):
    """The same without CHECKPOINT: what the test above measures against. And an orderly stop takes none by itself then."""
    private_server.start(BY_HAND)
    with private_server.connect(autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
        for number in range(300):
            connection.execute("INSERT INTO t VALUES (%s)", (number,))
    assert private_server.stop() == 0
    assert "no checkpoint" in assert_clean(private_server.home)
    private_server.start(BY_HAND)
    found = one(private_server, "logstead_recovery")
    assert found["entries"] > 300 and found["checkpoint_csn"] is None and found["checkpoint_pages"] == 0, found


def test_an_orderly_stop_takes_the_last_one(private_server):
    """The next start has no log to read."""
    private_server.start(("--checkpoint-interval", "1h"))
    private_server.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t SELECT generate_series(1, 5000)")
    assert private_server.stop() == 0
    private_server.start(("--checkpoint-interval", "1h"))
    found = one(private_server, "logstead_recovery")
    assert found["entries"] == 0 and found["checkpoint_csn"] is not None, found
    assert private_server.execute("SELECT count(*), sum(id) FROM t") == [(5000, 5000 * 5001 // 2)]


def test_waiting_for_one_can_be_ended_and_blocks_nobody(private_server):
    """A checkpoint that takes for ever: the session that waits gives up, others go on, and the server stops in order."""
    slow = (*BY_HAND, "--checkpoint-bandwidth", "1kB")
    private_server.start(slow)
    assert private_server.execute("SHOW checkpoint_bandwidth") == [("1kB",)]
    assert private_server.execute("SHOW checkpoint_interval") == [("0",)]
    with private_server.connect(autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int, v text)")
        # Does not compress away.
        connection.execute("INSERT INTO t SELECT g, md5(g::text) || md5((-g)::text) FROM generate_series(1, 5000) AS g")
        connection.execute("SET statement_timeout = '300ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("CHECKPOINT")
        connection.execute("SET statement_timeout = 0")
        connection.execute("BEGIN")
        connection.execute("UPDATE t SET v = 'x' WHERE id = 1")
        waiting = threading.Timer(0.5, connection.cancel)
        waiting.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("CHECKPOINT")
        connection.execute("ROLLBACK")
        with private_server.connect(autocommit=True) as other:
            other.execute("INSERT INTO t VALUES (0, 'meanwhile')")
            assert other.execute("SELECT count(*) FROM t").fetchone() == (5001,)
            assert other.execute("SELECT published FROM logstead_checkpoints").fetchone() == (0,)
    assert private_server.stop() == 0
    private_server.start(BY_HAND)
    assert private_server.execute("SELECT count(*) FROM t") == [(5001,)]
    assert private_server.execute("CHECKPOINT") == []
    private_server.stop()
    assert "not needed" in assert_clean(private_server.home)


# -- by itself --------------------------------------------------------------------------------------------------------


def test_the_log_gets_shorter(private_server):
    """Segments and pages are counted: rows that are changed again and again take no more room."""
    private_server.start((*OFTEN, *SMALL_SEGMENTS, "--workers", "1"))
    data = private_server.data
    with private_server.connect(autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        connection.execute("INSERT INTO t SELECT g, '' FROM generate_series(1, 2000) AS g")
        for turn in range(24):
            # Small enough to be in the log itself, not beside it.
            for part in range(20):
                connection.execute("UPDATE t SET v = repeat(md5((%s * id)::text), 16) WHERE id %% 20 = %s", (turn, part))
    written = int(private_server.execute("SELECT sum(bytes) FROM logstead_commit")[0][0])
    assert written > 16 << 20, "the test writes too little"
    private_server.execute("CHECKPOINT")
    # What is being written, what is made ready ahead of it, and one that the newest checkpoint begins in.
    left = sum(path.stat().st_size for path in segments(data))
    assert left < 8 << 20, [(path, path.stat().st_size) for path in segments(data)]
    assert segments(data), "this test looks for segments in the wrong place"
    state = one(private_server, "logstead_checkpoints")
    stored = sum(path.stat().st_size for path in objects(data))
    assert state["published"] > 1 and state["failed"] == 0 and state["last_collection_error"] is None, state
    assert stored < 8 * state["live_bytes"] + (1 << 20), (stored, state)
    private_server.restart_after_kill(arguments=BY_HAND)
    assert private_server.execute("SELECT count(*), count(DISTINCT v) FROM t") == [(2000, 2000)]
    assert private_server.execute("SELECT count(*) FROM t WHERE v = repeat(md5((23 * id)::text), 16)") == [(2000,)]
    private_server.stop()
    assert_clean(str(data))


def server_on(where: str, tmp_path: Path, stack) -> tuple[Server, str, dict]:
    if where == "local":
        server = LogsteadServer(tmp_path / "server")
        server.arguments += ["--workers", "3", *SMALL_SEGMENTS]
        return server, server.home, {}
    store = stack.enter_context(start_store(where, tmp_path))
    url = home(store)
    return ObjectServer(tmp_path / "server", url, store.environment, "--lease-duration", "2s"), url, store.environment


@pytest.mark.slow
@pytest.mark.parametrize("where", ["local", "dev-bucket", "azurite"])
def test_kills_among_checkpoints(where, tmp_path, seed):
    """Transfers, a checkpoint every 50 ms, kill -9 at any time: nothing acknowledged is lost, nothing comes back."""
    rng = random.Random(seed)
    with contextlib.ExitStack() as stack:
        server, url, environment = server_on(where, tmp_path, stack)
        stack.callback(server.kill)
        server.arguments += [*OFTEN]
        server.start()
        bank = Bank(seed).open(server)
        loaded = 0
        for _ in range(4):
            bank.start(server)
            go_on(server, bank, rng.randrange(100, 300))
            before = one(server, "logstead_checkpoints")
            assert before["published"] > 0 and before["failed"] == 0, before
            pid = server.process.pid
            server.kill()
            bank.ended(pid)
            server.start()
            found = one(server, "logstead_recovery")
            assert found["checkpoint_csn"] >= before["csn"], (found, before)
            loaded += found["checkpoint_pages"] + found["chunks_with_tails_at_start"]
            go_on(server, bank, 20)
            bank.stop()
            bank.check(server)
        assert loaded > 0
        print(bank, one(server, "logstead_checkpoints"))
        assert server.stop() == 0
        assert_clean(url, environment)
        # And what the last one holds is all.
        server.start()
        assert one(server, "logstead_recovery")["entries"] == 0
        bank.check(server)


# -- damage and copies ------------------------------------------------------------------------------------------------


@pytest.fixture
def stopped(private_server):
    """A server that has stopped with a checkpoint and a tail behind it."""
    private_server.start(BY_HAND)
    with private_server.connect(autocommit=True) as connection:
        connection.execute("CREATE TABLE a (id int PRIMARY KEY, v text)")
        connection.execute("CREATE TABLE b (id int, v numeric, w timestamptz)")
        connection.execute("INSERT INTO a SELECT g, md5(g::text) FROM generate_series(1, 3000) AS g")
        connection.execute("INSERT INTO b SELECT g, g / 7.0, '2026-01-01 00:00Z' FROM generate_series(1, 3000) AS g")
        connection.execute("CHECKPOINT")
        connection.execute("UPDATE a SET v = 'tail' WHERE id % 100 = 0")
        connection.execute("DELETE FROM b WHERE id % 3 = 0")
    private_server.stop()
    return private_server


def test_fsck_finds_every_flipped_bit(stopped, seed):
    """Anywhere in any object; and a start does not take what is damaged for data."""
    rng = random.Random(seed)
    said = assert_clean(stopped.home)
    assert "the checkpoint at CSN" in said and "0 damages" in said and "the log is good" in said, said
    # The primary key, the indexes of the catalog's own tables, and two of each of the four databases, for large objects.
    assert "indexes: 16 indexes with " in said and "0 indexes to be made from rows" in said, said
    found = objects(stopped.data)
    assert found
    for path in found:
        good = path.read_bytes()
        for at in {0, len(good) - 1, *(rng.randrange(len(good)) for _ in range(4))}:
            bad = bytearray(good)
            bad[at] ^= 1 << rng.randrange(8)
            path.write_bytes(bad)
            done = fsck(stopped.home)
            assert done.returncode == 1, (path, at, done.stdout)
            assert "DAMAGED" in done.stdout and path.name.lstrip("0") in done.stdout, (path, at, done.stdout)
            path.write_bytes(good)
    assert_clean(stopped.home)
    # A page is gone.
    path.rename(path.with_suffix(".away"))
    done = fsck(stopped.home)
    assert done.returncode == 1 and "DAMAGED" in done.stdout, done.stdout
    path.with_suffix(".away").rename(path)
    # Damage that a start meets: it reads the record, and no pages.
    named = re.search(r"^checkpoint object ([0-9a-f]{16}) ", (stopped.data / "manifest").read_text(), re.M)
    [record] = [path for path in found if path.name == named[1]]
    good = record.read_bytes()
    bad = bytearray(good)
    bad[len(good) // 2] ^= 1
    record.write_bytes(bad)
    said = refused(stopped)
    assert "checkpoint" in said, said
    record.write_bytes(good)
    stopped.start()
    assert stopped.execute("SELECT count(*) FROM a WHERE v = 'tail'") == [(30,)]


def test_fsck_refuses_while_a_server_runs_and_where_nothing_is(private_server, tmp_path):
    private_server.start()
    done = fsck(private_server.home)
    assert done.returncode == 1 and "DAMAGED" not in done.stdout, done.stdout + done.stderr
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    done = fsck(str(nothing))
    assert done.returncode == 1 and not list(nothing.iterdir()), done.stdout + done.stderr


def tables(server: Server) -> dict[str, list]:
    """Everything in all tables."""
    with server.connect(autocommit=True) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1").fetchall()
        return {name: connection.execute(f"SELECT * FROM {name} ORDER BY id").fetchall() for (name,) in names}


def test_a_copy_of_a_stopped_home_is_the_database(stopped, tmp_path):
    """docs/operations/checkpoints.md, Backups: the copy opens and is equal, and the two have nothing to do with each other."""
    copy = LogsteadServer(tmp_path / "copy")
    copy.root.mkdir()
    shutil.copytree(stopped.data, copy.data)
    assert_clean(copy.home)
    try:
        copy.start()
        stopped.start()
        held = tables(stopped)
        assert set(held) == {"a", "b"} and len(held["a"]) == 3000 and len(held["b"]) == 2000
        assert tables(copy) == held
        copy.execute("DELETE FROM a", "CHECKPOINT")
        stopped.restart_after_kill()
        assert tables(stopped) == held
    finally:
        copy.kill()
