"""Snapshots that sessions hand to each other: pg_dump with several connections, and importers while others write."""

from __future__ import annotations

import threading
import time

import psycopg
import pytest
from harness import TIMEOUT_S
from psycopg import IsolationLevel

ACCOUNTS = 200
TABLES = 6


def importer(server, snapshot: str, isolation=IsolationLevel.REPEATABLE_READ) -> psycopg.Connection:
    """A session whose transaction uses another's snapshot."""
    connection = server.connect()
    connection.isolation_level = isolation
    connection.execute(psycopg.sql.SQL("SET TRANSACTION SNAPSHOT {}").format(psycopg.sql.Literal(snapshot)))
    return connection


def test_a_dump_by_several_connections_is_one_moment(private_server, tmp_path):
    """Money moves between tables all the time, and none is lost or doubled in what is dumped of them."""
    server = private_server
    server.start()
    with server.connect(autocommit=True) as one:
        for n in range(TABLES):
            one.execute(f"CREATE TABLE part_{n} (id int PRIMARY KEY, balance bigint, note text)")
            one.execute(f"INSERT INTO part_{n} SELECT g, 100, repeat('x', 200) FROM generate_series(1, {ACCOUNTS}) g")
        one.execute("CREATE TABLE moves (n int)")
    stop = threading.Event()
    moved = [0]

    def move(worker: int) -> None:
        with server.connect() as connection:
            n = worker
            while not stop.is_set():
                n += 1
                source, target, row = n % TABLES, (n * 5 + 1) % TABLES, n * 7 % ACCOUNTS + 1
                connection.execute(f"UPDATE part_{source} SET balance = balance - 1 WHERE id = %s", [row])
                connection.execute(f"UPDATE part_{target} SET balance = balance + 1 WHERE id = %s", [row])
                connection.execute("INSERT INTO moves VALUES (1)")
                # Gone before the end, and rows that are there for a moment: the collector has work all the time.
                connection.execute(f"DELETE FROM part_{target} WHERE id > {ACCOUNTS}")
                try:
                    connection.commit()
                    moved[0] += 1
                except psycopg.Error:
                    connection.rollback()

    def run_move(worker: int) -> None:
        while not stop.is_set():
            try:
                move(worker)
            except psycopg.errors.DeadlockDetected:
                continue

    writers = [threading.Thread(target=run_move, args=(worker * 1000,)) for worker in range(2)]
    for writer in writers:
        writer.start()
    try:
        dumps = []
        for n in range(3):
            directory = tmp_path / f"dump_{n}"
            server.run("pg_dump", "-Fd", "-j", "2", "-f", directory)
            dumps.append(directory)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert moved[0] > 0
    for n, directory in enumerate(dumps):
        name = f"restored_{n}"
        server.execute(f"CREATE DATABASE {name}")
        server.run("pg_restore", "-j", "2", "-d", name, directory)
        with server.connect(dbname=name, autocommit=True) as restored:
            total, rows = 0, 0
            for part in range(TABLES):
                balance, count = restored.execute(f"SELECT sum(balance), count(*) FROM part_{part}").fetchone()
                total, rows = total + int(balance), rows + count
            assert (total, rows) == (TABLES * ACCOUNTS * 100, TABLES * ACCOUNTS)


def test_an_importer_sees_what_the_exporter_sees(private_server):
    """Whoever has ended meanwhile, and whatever was changed and collected."""
    server = private_server
    server.start(("--workers", "2"))
    with server.connect(autocommit=True) as one:
        one.execute("CREATE TABLE seen (id int PRIMARY KEY, v int)")
        one.execute("INSERT INTO seen SELECT g, 0 FROM generate_series(1, 500) g")
    sums = "SELECT count(*), sum(v) FROM seen"
    exporter = server.connect()
    exporter.isolation_level = IsolationLevel.REPEATABLE_READ
    first = exporter.execute("SELECT pg_export_snapshot()").fetchone()[0]
    ids = exporter.execute("SELECT pg_current_snapshot()::text").fetchone()
    second = exporter.execute("SELECT pg_export_snapshot()").fetchone()[0]
    assert first != second

    def change(connection, rounds: int) -> None:
        for _ in range(rounds):
            connection.execute("UPDATE seen SET v = v + 1")

    with server.connect(autocommit=True) as writer:
        change(writer, 5)
        writer.execute("DELETE FROM seen WHERE id > 400")
        # Several sessions, so that they are on both workers.
        importers = [importer(server, name) for name in (first, second, first, second)]
        for connection in importers:
            assert connection.execute(sums).fetchone() == (500, 0)
            assert connection.execute("SELECT pg_current_snapshot()::text").fetchone() == ids
        exporter.commit()
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="invalid snapshot identifier"):
            importer(server, first)
        # Who has it keeps what it sees, though nobody else would.
        change(writer, 20)
        writer.execute("INSERT INTO seen SELECT g, 7 FROM generate_series(401, 600) g")
        writer.execute("CREATE INDEX ON seen (v)")
        change(writer, 20)
        for connection in importers:
            assert connection.execute(sums).fetchone() == (500, 0)
            assert connection.execute("SELECT count(*) FROM seen WHERE id = 450 AND v = 0").fetchone() == (1,)
        with pytest.raises(psycopg.errors.SerializationFailure):
            importers[0].execute("UPDATE seen SET v = 1 WHERE id = 1")
        for connection in importers:
            connection.rollback()
            assert connection.execute("SELECT count(*) FROM seen WHERE id = 450 AND v = 0").fetchone() == (0,)
            connection.close()
    exporter.close()


def test_who_may_import_what(private_server):
    server = private_server
    server.start()
    server.execute("CREATE DATABASE elsewhere")
    with server.connect() as exporter, server.connect() as other, server.connect(dbname="elsewhere") as away:
        exporter.execute("CREATE TABLE imported AS SELECT 1 AS a")
        exporter.commit()
        # Also in READ COMMITTED: it is its transaction that it stays for.
        name = exporter.execute("SELECT pg_export_snapshot()").fetchone()[0]
        statement = f"SET TRANSACTION SNAPSHOT '{name}'"
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="must have isolation level"):
            other.execute(statement)
        other.rollback()
        other.isolation_level = away.isolation_level = IsolationLevel.REPEATABLE_READ
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="from a different database"):
            away.execute(statement)
        other.execute("INSERT INTO imported VALUES (2)")
        with pytest.raises(psycopg.errors.ActiveSqlTransaction, match="before any query"):
            other.execute(statement)
        other.rollback()
        exporter.execute("INSERT INTO imported VALUES (3)")
        other.execute(statement)
        # Its own changes are not handed on.
        assert other.execute("SELECT a FROM imported").fetchall() == [(1,)]
        other.execute("INSERT INTO imported VALUES (4)")
        exporter.commit()
        assert other.execute("SELECT a FROM imported ORDER BY a").fetchall() == [(1,), (4,)]
        # An importer may export.
        again = other.execute("SELECT pg_export_snapshot()").fetchone()[0]
        third = importer(server, again)
        other.commit()
        assert third.execute("SELECT a FROM imported").fetchall() == [(1,)]
        third.close()
        other.isolation_level = IsolationLevel.SERIALIZABLE
        name = exporter.execute("SELECT pg_export_snapshot()").fetchone()[0]
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="non-serializable"):
            other.execute(f"SET TRANSACTION SNAPSHOT '{name}'")
        other.rollback()
        # A session that goes away takes what it offers with it.
        exporter.close()
        other.isolation_level = IsolationLevel.REPEATABLE_READ
        for _ in range(200):
            try:
                other.execute(f"SET TRANSACTION SNAPSHOT '{name}'")
            except psycopg.errors.InvalidParameterValue:
                break
            finally:
                other.rollback()
            other.execute("SELECT pg_sleep(0.05)")
            other.rollback()
        else:
            pytest.fail("the snapshot of a session that is gone can be imported")
        assert server.execute("SELECT count(*) FROM imported") == [(3,)]


@pytest.mark.logstead_only
@pytest.mark.parametrize("asked", ["status", "snapshot"])
def test_what_is_told_of_a_commit_is_durable(private_server, asked):
    """On a home where an append takes some 0.2 s: who hears that a transaction has committed finds what it wrote, also after kill -9."""
    server = private_server
    server.arguments = ["--workers", "2", "--home", f"sim://?model=s3express&dir={server.root / 'objects'}&scale=20"]
    server.start()
    server.execute("CREATE TABLE told (n int)")
    question = {
        "status": "SELECT txid_status(%s) = 'committed'",
        "snapshot": "SELECT pg_visible_in_snapshot(%s::text::xid8, pg_current_snapshot())",
    }[asked]
    with server.connect(autocommit=True) as writer, server.connect(autocommit=True) as asker:
        writer.execute("BEGIN")
        writer.execute("INSERT INTO told VALUES (42)")
        ((xid,),) = writer.execute("SELECT txid_current()").fetchall()

        def commit() -> None:
            try:
                writer.execute("COMMIT")
            except psycopg.OperationalError:
                pass

        committing = threading.Thread(target=commit)
        committing.start()
        deadline = time.monotonic() + TIMEOUT_S
        while asker.execute(question, (xid,)).fetchone() != (True,):
            assert time.monotonic() < deadline, "it never committed"
        server.kill()
        committing.join(TIMEOUT_S)
    server.start()
    assert server.execute("SELECT n FROM told") == [(42,)], "it was told of, and is gone"


@pytest.mark.logstead_only
def test_a_transaction_exports_so_many_snapshots(server):
    with server.connect() as exporter:
        with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="cannot export more than 1000 snapshots"):
            exporter.execute("SELECT count(pg_export_snapshot()) FROM generate_series(1, 1001)")
        exporter.rollback()
        exporter.execute("SELECT count(pg_export_snapshot()) FROM generate_series(1, 1000)")
        exporter.rollback()


@pytest.mark.logstead_only
def test_no_snapshot_is_imported_beside_temporary_objects(server):
    with server.connect() as exporter, server.connect(autocommit=True) as one:
        ((snapshot,),) = exporter.execute("SELECT pg_export_snapshot()").fetchall()
        one.execute("CREATE TEMP TABLE mine (a int)")
        one.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="temporary objects"):
            one.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
        one.execute("ROLLBACK")
