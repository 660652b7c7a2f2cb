"""A full disk: writers get 53100, readers go on, nothing acknowledged is lost, and with room again the server goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import time

import psycopg
import pytest
from harness import PostgresServer, wait_until
from objectstores import launch

IMAGE_BYTES = 384 << 20
ROW_BYTES = 50_000


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own, small, with a ballast file to make and take room."""
    if os.geteuid() != 0 or not shutil.which("mkfs.ext4"):
        pytest.skip("needs root, to mount a small file system")
    image, mounted = tmp_path / "disk.img", tmp_path / "disk"
    mounted.mkdir()
    with open(image, "wb") as file:
        file.truncate(IMAGE_BYTES)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(image)], check=True)
    if subprocess.run(["mount", "-o", "loop", str(image), str(mounted)], capture_output=True).returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        yield mounted
    finally:
        subprocess.run(["umount", "-l", str(mounted)], check=True)


@pytest.fixture
def small_memory_disk(tmp_path):
    """The same in memory."""
    mounted = tmp_path / "memory"
    mounted.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={IMAGE_BYTES}", "tmpfs", str(mounted)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        yield mounted
    finally:
        subprocess.run(["umount", "-l", str(mounted)], check=True)


def fill(disk, leave_bytes: int):
    """Takes all room but some."""
    ballast = disk / "ballast"
    free = shutil.disk_usage(disk).free
    with open(ballast, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(free - leave_bytes, 4096))
    return ballast


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_disk_full(server_kind, small_disk, tmp_path):
    if server_kind is PostgresServer:
        # PostgreSQL stops altogether when its log cannot grow: give the log another disk.
        server = PostgresServer(small_disk / "server", waldir=tmp_path / "wal")
    else:
        server = server_kind(small_disk / "server")
    try:
        server.start()
        server.execute("CREATE TABLE full_t (id int PRIMARY KEY, pad bytea)", "ALTER TABLE full_t ALTER COLUMN pad SET STORAGE EXTERNAL"
                       if server.name == "postgres" else "SELECT 1")  # fmt: skip
        acknowledged = set()

        def insert(number: int) -> bool:
            with server.connect(autocommit=True) as connection:
                try:
                    connection.execute("INSERT INTO full_t VALUES (%s, %s)", (number, os.urandom(ROW_BYTES)))
                except psycopg.Error as error:
                    assert error.sqlstate == "53100", error
                    assert not connection.closed
                    # The session goes on, and reads.
                    assert connection.execute("SELECT count(*) FROM full_t").fetchone()[0] >= len(acknowledged)
                    return False
                acknowledged.add(number)
                return True

        for number in range(10):
            assert insert(number)
        ballast = fill(small_disk, leave_bytes=8 << 20)
        number = 10
        while insert(number):
            number += 1
            assert number < IMAGE_BYTES // ROW_BYTES, "the disk never became full"
        # Still full: writers are refused again and again, a transaction as a whole, readers go on.
        for attempt in range(5):
            insert(100_000 + attempt)
        ids = {found for (found,) in server.execute("SELECT id FROM full_t")}
        assert ids == acknowledged
        assert server.execute("SELECT count(*) FROM full_t WHERE length(pad) = %d" % ROW_BYTES) == [(len(acknowledged),)]
        # Room again: the same server goes on.
        ballast.unlink()
        retry = iter(range(200_000, 300_000))
        wait_until(lambda: insert(next(retry)), what="writing goes on when there is room")
        for more in range(300_000, 300_020):
            assert insert(more)
        server.restart_after_kill()
        assert {found for (found,) in server.execute("SELECT id FROM full_t")} == acknowledged
        assert server.stop() == 0
    finally:
        server.kill()


def load(server, table: str, rows: int, first: int) -> bool:
    """Loads rows in one transaction, or hears that the disk is full."""
    with server.connect(autocommit=True) as connection:
        try:
            with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(["int4", "bytea"])
                for number in range(first, first + rows):
                    copy.write_row((number, os.urandom(1000)))
        except psycopg.Error as error:
            assert error.sqlstate == "53100", error
            return False
        return True


def load_until_full(server, tables: list[str], rows: int, refusals: int, loads_max: int) -> dict[str, int]:
    """Loads tables in turn, again and again, though refused, until the checkpoints that are asked for make no room any more; the rows of each."""
    loaded, refused, number = dict.fromkeys(tables, 0), 0, 0
    while refused < refusals:
        table = tables[number % len(tables)]
        if load(server, table, rows, number * 100_000):
            loaded[table] += rows
            refused = 0
        else:
            refused += 1
            time.sleep(0.3)
        number += 1
        assert number < loads_max, "it never became full"
    assert all(loaded.values()), loaded
    return loaded


@pytest.mark.logstead_only
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("size", ["large", pytest.param("small", marks=pytest.mark.long)])
def test_the_way_out_of_a_full_disk(server_kind, small_memory_disk, size):
    """Filled by transactions of any size, the disk takes deletes, truncations and drops; checkpoints go on, and what was removed is free, without a start."""
    rows = {"large": 20_000, "small": 500}[size]
    server = server_kind(small_memory_disk / "server")
    free = lambda: shutil.disk_usage(small_memory_disk).free  # noqa: E731
    try:
        server.start()
        tables = ["deleted", "truncated", "dropped"]
        server.execute(*(f"CREATE TABLE {table} (id int PRIMARY KEY, pad bytea)" for table in tables))
        loaded = load_until_full(server, tables, rows, refusals=20, loads_max=20_000)
        server.execute("CHECKPOINT")
        full = free()
        with server.connect(autocommit=True) as connection:
            # In parts and at once.
            gone = connection.execute("DELETE FROM deleted WHERE id % 2 = 0").rowcount
            gone += connection.execute("DELETE FROM deleted").rowcount
            assert gone == loaded["deleted"]
            for statement in ["TRUNCATE truncated", "DROP TABLE dropped"]:
                connection.execute(statement)
        # The checkpoint that follows by itself frees what was live.
        wait_until(lambda: free() > full + IMAGE_BYTES // 4, what="what was removed is free")
        server.execute("CHECKPOINT")
        wait_until(lambda: load(server, "truncated", rows, 0), what="loads go on")
        server.restart_after_kill()
        assert server.execute("SELECT count(*) FROM truncated") == [(rows,)]
        assert server.execute("SELECT count(*) FROM deleted") == [(0,)]
        assert server.stop() == 0
    finally:
        server.kill()


QUOTA_BYTES = 96 << 20


@pytest.mark.logstead_only
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("store", ["dev-bucket", pytest.param("dev-bucket-s3", marks=pytest.mark.long)])
def test_the_way_out_of_a_bucket_with_a_quota(server_kind, tmp_path, store):
    """What the quota refuses is 53100 for users; deletes, truncations, drops and checkpoints go on in the reserve, and what they free is there for all."""
    # Large transactions: they are stored aside, and go one by one.
    rows = 8_000
    bucket = launch(store, tmp_path / "store", arguments=("--quota", str(QUOTA_BYTES)))
    try:
        server = server_kind(tmp_path / "server")
        server.arguments += ["--home", bucket.url("log"), "--set", f"bucket_reserve={16 << 20}"]
        try:
            server.start(env=bucket.environment)
            tables = ["deleted", "truncated", "dropped"]
            server.execute(*(f"CREATE TABLE {table} (id int PRIMARY KEY, pad bytea)" for table in tables))
            loaded = load_until_full(server, tables, rows, refusals=12, loads_max=5_000)
            for table in tables:
                assert server.execute(f"SELECT count(*) FROM {table}") == [(loaded[table],)]
            with server.connect(autocommit=True) as connection:
                gone = connection.execute("DELETE FROM deleted WHERE id % 2 = 0").rowcount
                gone += connection.execute("DELETE FROM deleted").rowcount
                assert gone == loaded["deleted"]
                for statement in ["TRUNCATE truncated", "DROP TABLE dropped"]:
                    connection.execute(statement)
            # The checkpoint that follows by itself frees what was live.
            wait_until(lambda: load(server, "truncated", rows, 0), what="loads go on")
            server.kill()
            server.start(arguments=("--take-over",), env=bucket.environment)
            assert server.execute("SELECT count(*) FROM truncated") == [(rows,)]
            assert server.execute("SELECT count(*) FROM deleted") == [(0,)]
            assert server.stop() == 0
        finally:
            server.kill()
    finally:
        bucket.kill()


@pytest.mark.logstead_only
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_small_transactions_in_a_bucket_with_a_quota(server_kind, tmp_path):
    """Many times the quota is written over a few rows: the log behind the checkpoints goes, so whoever is refused is not refused for long."""
    # They fill the lanes, whose segments are small beside the quota: each goes as a whole.
    quota_bytes = 24 << 20
    bucket = launch("dev-bucket", tmp_path / "store", arguments=("--quota", str(quota_bytes)))
    try:
        server = server_kind(tmp_path / "server")
        server.arguments += ["--home", bucket.url("log"), "--set", f"bucket_reserve={4 << 20}", "--set", f"segment_size={2 << 20}"]
        try:
            server.start(env=bucket.environment)
            server.execute("CREATE TABLE few (id int PRIMARY KEY, pad bytea)")
            server.execute("INSERT INTO few SELECT g, '' FROM generate_series(1, 50) g")

            def update(connection) -> bool:
                try:
                    # No two rows have the same bytes, so that nothing is gained by compression.
                    connection.execute("UPDATE few SET pad = %s::bytea || decode(lpad(to_hex(id), 8, '0'), 'hex')", (os.urandom(1000),))
                except psycopg.Error as error:
                    assert error.sqlstate == "53100", error
                    return False
                return True

            with server.connect(autocommit=True) as connection:
                for _ in range(2 * quota_bytes // (50 * 1000)):
                    if not update(connection):
                        wait_until(lambda: update(connection), what="a checkpoint has made room")
            assert server.execute("SELECT count(*), min(length(pad)) FROM few") == [(50, 1004)]
            assert server.stop() == 0
        finally:
            server.kill()
    finally:
        bucket.kill()
