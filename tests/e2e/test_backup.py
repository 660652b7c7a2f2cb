"""`logstead backup` and `logstead restore`: copies of databases that are in use, on any home, cut short at any time, and what they refuse."""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

import pytest
from harness import LogsteadServer, Server
from objectserver import ObjectServer, go_on, home
from objectstores import start as start_store
from test_checkpoints import BY_HAND, SMALL_SEGMENTS, assert_clean, fsck, tables
from test_operation import refused
from transfers import ACCOUNTS, OPENING, Bank

pytestmark = pytest.mark.logstead_only


def command(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.Popen:
    """`logstead backup SOURCE TARGET`, started."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("LOGSTEAD_")}
    return subprocess.Popen(
        [LogsteadServer.binary(), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**inherited, **(environment or {})},
    )


def copy(verb: str, source: str, target: str, environment: dict[str, str] | None = None) -> str:
    """The same to its end, which must be a good one; what it said."""
    process = command(verb, source, target, environment=environment)
    said, errors = process.communicate(timeout=300)
    assert process.returncode == 0, said + errors
    return said


def copy_fails(verb: str, source: str, target: str, environment: dict[str, str] | None = None) -> str:
    process = command(verb, source, target, environment=environment)
    said, errors = process.communicate(timeout=300)
    assert process.returncode == 1, (process.returncode, said, errors)
    return errors


def server_in(directory: Path) -> LogsteadServer:
    """A server whose data directory is `directory`/data."""
    return LogsteadServer(directory)


@pytest.fixture
def copied(tmp_path):
    """A second server, not started; its data directory is where copies go."""
    server = server_in(tmp_path / "copied")
    server.root.mkdir()
    yield server
    server.kill()


def fill(server: Server) -> None:
    with server.connect(autocommit=True) as connection:
        connection.execute("CREATE TABLE a (id int PRIMARY KEY, v text)")
        connection.execute("CREATE TABLE b (id serial PRIMARY KEY, v numeric, w timestamptz)")
        connection.execute("CREATE INDEX ON a (v)")
        connection.execute("INSERT INTO a SELECT g, md5(g::text) FROM generate_series(1, 20000) AS g")
        connection.execute("INSERT INTO b (v, w) SELECT g / 7.0, '2026-01-01 00:00Z' FROM generate_series(1, 3000) AS g")
        connection.execute("CHECKPOINT")
        connection.execute("UPDATE a SET v = 'tail' WHERE id % 100 = 0")
        connection.execute("DELETE FROM b WHERE id % 3 = 0")
        # A large transaction: its records lie beside the log.
        connection.execute("UPDATE a SET v = repeat(v, 100) WHERE id <= 2000")
        connection.execute("BEGIN")
        connection.execute("DELETE FROM a")
        connection.execute("ROLLBACK")


def test_a_running_servers_backup_is_the_database(private_server, copied, tmp_path):
    """With the log's tail; incremental; served beside its source; restored from; and not overwritten once it was served."""
    private_server.start((*BY_HAND, *SMALL_SEGMENTS, "--workers", "3"))
    fill(private_server)
    source, target = private_server.home, copied.home
    said = copy("backup", source, target)
    assert "a new copy" in said and "behind the checkpoint" in said, said
    assert_clean(target)
    held = tables(private_server)
    # Nothing has changed: everything is there, but the tail, which is copied again.
    said = copy("backup", source, target)
    assert "copy before" in said, said
    assert int(said.split(" objects were there")[0].split()[-1]) > 0, said
    # What has changed.
    private_server.execute("UPDATE a SET v = 'second' WHERE id % 50 = 0", "CHECKPOINT", "INSERT INTO a VALUES (0, 'zero')")
    private_server.execute("CREATE TABLE c (id int PRIMARY KEY)", "INSERT INTO c VALUES (1)")
    assert copy("backup", source, target).startswith(target)
    assert_clean(target)
    held = tables(private_server)
    assert len(held["a"]) == 20001 and len(held["c"]) == 1
    # A copy of the copy, while nobody runs there.
    again = server_in(tmp_path / "again")
    again.root.mkdir()
    copy("restore", target, again.home)
    assert_clean(again.home)
    try:
        copied.start(BY_HAND)
        again.start(BY_HAND)
        assert tables(copied) == held and tables(again) == held
        assert copied.execute("SELECT count(*) FROM a WHERE v = 'second'") == [(400,)]
        # Three databases, of which each goes its own way.
        private_server.execute("INSERT INTO c VALUES (2)", "CHECKPOINT")
        copied.execute("INSERT INTO c VALUES (3)", "CHECKPOINT")
        again.execute("INSERT INTO c VALUES (4)", "CHECKPOINT")
        for server, own in ((private_server, 2), (copied, 3), (again, 4)):
            server.restart_after_kill(arguments=BY_HAND)
            assert server.execute("SELECT id FROM c ORDER BY 1") == [(1,), (own,)]
            serial = server.execute("INSERT INTO b (v) VALUES (1) RETURNING id")[0][0]
            assert serial > 3000
        assert "in use" in copy_fails("backup", source, target)
        copied.stop()
        assert "a server has used since" in copy_fails("backup", source, target)
        again.stop()
        assert_clean(target)
        copied.start(BY_HAND)
        assert copied.execute("SELECT id FROM c ORDER BY 1") == [(1,), (3,)]
    finally:
        again.kill()


def test_nothing_else_is_overwritten(private_server, copied, tmp_path):
    private_server.start((*BY_HAND, *SMALL_SEGMENTS))
    private_server.execute("CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1)")
    source, target = private_server.home, copied.home
    copied.start((*BY_HAND, *SMALL_SEGMENTS))
    copied.execute("CREATE TABLE precious (id int PRIMARY KEY)", "INSERT INTO precious VALUES (1)")
    copied.stop()
    assert "a database, and no backup" in copy_fails("backup", source, target)
    # A backup of another one; a source that is not there; one that is no database.
    other = str(tmp_path / "other")
    copy("backup", target, other)
    assert "another database" in copy_fails("backup", source, other)
    assert copy_fails("backup", str(tmp_path / "nothing"), str(tmp_path / "new"))
    assert not (tmp_path / "nothing").exists()
    copied.start(BY_HAND)
    assert copied.execute("SELECT * FROM precious") == [(1,)]
    # What would be gone at once, lie within what is copied, or among other people's files.
    for nowhere in ("memory:", "sim://?model=s3express"):
        assert "gone when this command ends" in copy_fails("backup", source, nowhere)
    for within in (f"{source}/backup", f"file://{source}/log/../backup"):
        assert "lies within" in copy_fails("backup", source, within)
    assert not (private_server.data / "backup").exists()
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("the only copy")
    assert "thesis.txt" in copy_fails("backup", source, str(foreign))
    assert [path.name for path in foreign.iterdir()] == ["thesis.txt"]
    (foreign / "thesis.txt").unlink()
    copy("backup", source, str(foreign))
    # What is there beside a backup is nobody's concern.
    (foreign / "notes.txt").write_text("of last night")
    copy("backup", source, str(foreign))


def test_a_database_without_a_checkpoint(private_server, copied):
    private_server.start((*BY_HAND, *SMALL_SEGMENTS))
    private_server.execute("CREATE TABLE a (id int PRIMARY KEY, v text)", "INSERT INTO a VALUES (1, 'one'), (2, 'two')")
    private_server.kill()
    copy("backup", private_server.home, copied.home)
    assert "no checkpoint" in assert_clean(copied.home)
    copied.start(BY_HAND)
    assert copied.execute("SELECT * FROM a ORDER BY 1") == [(1, "one"), (2, "two")]
    copied.execute("INSERT INTO a VALUES (3, 'three')", "CHECKPOINT")
    copied.restart_after_kill()
    assert copied.execute("SELECT count(*) FROM a") == [(3,)]


def assert_holds(bank: Bank, server: Server, told: list[set[int]]) -> int:
    """A copy that was made while clients went on: everything they had been told of before it began, and each transfer whole or not at all."""
    with server.connect(autocommit=True) as connection:
        balances = dict(connection.execute("SELECT id, balance FROM account").fetchall())
        rows = connection.execute("SELECT client, number, src, dst, amount FROM ledger").fetchall()
        counters = dict(connection.execute("SELECT client, n FROM counter").fetchall())
    expected = dict.fromkeys(range(1, ACCOUNTS + 1), OPENING)
    found: list[set[int]] = [set() for _ in told]
    for client, transfer, src, dst, amount in rows:
        assert transfer not in found[client], "there twice"
        found[client].add(transfer)
        expected[src] -= amount
        expected[dst] += amount
    assert balances == expected, "part of a transaction"
    for client, before in enumerate(told):
        assert before <= found[client], f"client {client}: acknowledged and not in the copy: {sorted(before - found[client])[:20]}"
        assert counters[client] == len(found[client]), "part of a transaction"
        unheard = found[client] - bank.books[client].acknowledged - set(bank.books[client].doubtful)
        assert not unheard, f"client {client}: nobody asked for these: {sorted(unheard)[:20]}"
    return len(rows)


def state_of(url: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [LogsteadServer.binary(), "log", "verify", url], capture_output=True, text=True, timeout=300, env={**os.environ, **environment}
    )
    return done.stdout + done.stderr


@pytest.mark.slow
def test_backups_among_transfers_and_kills(private_server, copied, tmp_path, seed):
    """From a directory to a bucket, under load and with checkpoints all the time; killed at any time and repeated; back to a directory."""
    rng = random.Random(seed)
    private_server.arguments += [*SMALL_SEGMENTS, "--workers", "3", "--checkpoint-interval", "300ms"]
    private_server.start()
    bank = Bank(seed).open(private_server)
    source = private_server.home
    with start_store("dev-bucket", tmp_path) as store:
        bucket, environment = home(store), store.environment
        bank.start(private_server)
        go_on(private_server, bank, 100)
        ends = {"finished": 0, "killed": 0, "half": 0}
        began = time.monotonic()
        copy("backup", source, home(store, "elsewhere"), environment)
        takes = time.monotonic() - began
        for number in range(10):
            began = time.monotonic()
            process = command("backup", source, bucket, environment=environment)
            try:
                # What is copied again takes less each time: the next one is killed within what this one took.
                said, errors = process.communicate(timeout=rng.uniform(0, takes))
                assert process.returncode == 0, said + errors
                takes = time.monotonic() - began
                ends["finished"] += 1
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                ends["killed"] += 1
            if ends["finished"] == 0 and "not completed" in state_of(bucket, environment):
                # Half a copy is never started.
                ends["half"] += 1
                half = ObjectServer(tmp_path / f"half{number}", bucket, environment, *BY_HAND)
                assert "not completed" in refused(half)
        assert ends["killed"] > 0, ends
        with bank.lock:
            told = [set(books.acknowledged) for books in bank.books]
        print(copy("backup", source, bucket, environment), ends)
        assert_clean(bucket, environment)
        copy("restore", bucket, copied.home, environment)
        assert_clean(copied.home)
        copied.start(BY_HAND)
        held = assert_holds(bank, copied, told)
        assert held >= sum(len(before) for before in told) > 100
        go_on(private_server, bank, 50)
        bank.stop()
        total = bank.check(private_server)
        assert total > held
        # Without load, the two are equal.
        print(copy("backup", source, bucket, environment))
        assert_clean(bucket, environment)
        served = ObjectServer(tmp_path / "served", bucket, environment, *BY_HAND)
        try:
            served.start()
            assert bank.check(served) == total
        finally:
            served.kill()


@pytest.mark.slow
def test_looking_at_a_log_that_its_server_truncates(tmp_path, seed):
    """`log verify`, `log dump` and fsck of a bucket, while its server takes checkpoints and removes what was before them all the time."""
    with start_store("dev-bucket", tmp_path) as store:
        bucket, environment = home(store), store.environment
        server = ObjectServer(tmp_path / "server", bucket, environment, "--checkpoint-interval", "20ms")
        try:
            server.start()
            bank = Bank(seed).open(server)
            bank.start(server)
            go_on(server, bank, 50)
            for _ in range(8):
                said = state_of(bucket, environment)
                assert "the log is good" in said and "a server may be at work" in said, said
                dumped = subprocess.run(
                    [LogsteadServer.binary(), "log", "dump", bucket], capture_output=True, text=True, timeout=300, env={**os.environ, **environment}
                )
                assert dumped.returncode == 0 and "CORRUPT" not in dumped.stdout, dumped.stdout[-2000:] + dumped.stderr
                # It may say that it cannot keep up, never that anything is wrong.
                checked = fsck(bucket, environment)
                if "taken faster than they can be read" not in checked.stderr:
                    assert checked.returncode == 0 and "the log is good" in checked.stdout, checked.stdout + checked.stderr
            bank.stop()
            bank.check(server)
            server.stop()
            assert "the log is good" in assert_clean(bucket, environment)
        finally:
            server.kill()
