"""Large objects as clients use them: libpq's function calls, snapshots of descriptors, kill -9, dumps, more than memory holds."""

from __future__ import annotations

import random
import threading

import psycopg
import pytest
from harness import TIMEOUT_S, wait_until

# INV_READ, INV_WRITE
READ, WRITE = 0x40000, 0x20000


def drawn(length: int) -> bytes:
    """The same bytes in every run."""
    return random.Random(length).randbytes(length)


def one(connection: psycopg.Connection, query: str, *values):
    """The value of a query of one row."""
    return connection.execute(query, values).fetchone()[0]


def objects(server, dbname="postgres") -> list:
    """All objects of a database: numbers, owners, privileges, comments, bytes."""
    with server.connect(dbname=dbname, autocommit=True) as connection:
        return connection.execute(
            "SELECT oid::int8, pg_get_userbyid(lomowner), lomacl::text, obj_description(oid, 'pg_largeobject'), md5(lo_get(oid)),"
            " length(lo_get(oid)) FROM pg_largeobject_metadata ORDER BY oid"
        ).fetchall()


def test_libpq_calls_the_functions_by_number(server, tmp_path):
    # psql's commands are libpq's lo_import and lo_export: a function call message for each piece.
    there, back = tmp_path / "there", tmp_path / "back"
    there.write_bytes(drawn(300_001))
    told = server.psql("-qAt", "-c", f"\\lo_import {there} 'a picture'", "-c", "\\echo :LASTOID", check=False)
    oid = int(told.split()[-1])
    try:
        assert "a picture" in server.psql("-c", "\\lo_list")
        server.psql("-c", f"\\lo_export {oid} {back}")
        assert back.read_bytes() == there.read_bytes()
        with server.connect() as connection:
            assert one(connection, "SELECT lo_get(%s)", oid) == there.read_bytes()
        refused = server.run("psql", "-X", "-c", f"\\lo_export {oid + 1_000_000} {back}", check=False)
        assert f"large object {oid + 1_000_000} does not exist" in refused.stdout + refused.stderr
    finally:
        server.psql("-c", f"\\lo_unlink {oid}")
    with server.connect() as connection:
        assert one(connection, "SELECT count(*) FROM pg_largeobject_metadata WHERE oid = %s", oid) == 0
        assert one(connection, "SELECT count(*) FROM pg_largeobject WHERE loid = %s", oid) == 0


def test_a_descriptor_for_reading_keeps_what_it_has_opened(server):
    with server.connect() as reader, server.connect(autocommit=True) as writer:
        oid = one(writer, "SELECT lo_from_bytea(0, %s)", b"a" * 5000)
        reading = one(reader, "SELECT lo_open(%s, %s)", oid, READ)
        newest = one(reader, "SELECT lo_open(%s, %s)", oid, READ | WRITE)
        assert one(reader, "SELECT loread(%s, 10)", reading) == b"a" * 10
        writer.execute("SELECT lo_put(%s, 0, %s)", (oid, b"b" * 100))
        writer.execute("SELECT lo_put(%s, 6000, %s)", (oid, b"c"))
        assert one(reader, "SELECT loread(%s, 10000)", reading) == b"a" * 4990
        assert one(reader, "SELECT loread(%s, 10000)", newest) == b"b" * 100 + b"a" * 4900 + bytes(1000) + b"c"
        # Whoever begins anew sees the new one; nobody sees what is rolled back.
        reader.rollback()
        assert one(reader, "SELECT lo_get(%s, 0, 3)", oid) == b"bbb"
        reader.execute("SELECT lo_put(%s, 0, %s)", (oid, b"zzz"))
        assert one(writer, "SELECT lo_get(%s, 0, 3)", oid) == b"bbb"
        reader.rollback()
        assert one(writer, "SELECT lo_get(%s, 0, 3)", oid) == b"bbb"
        # Two who write parts of one page lose nothing.
        reader.execute("SELECT lo_put(%s, 0, %s)", (oid, b"1"))
        with server.connect() as other:
            other.execute("SET lock_timeout = '100ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute("SELECT lo_put(%s, 1, %s)", (oid, b"2"))
            other.rollback()
            reader.commit()
            other.execute("SELECT lo_put(%s, 1, %s)", (oid, b"2"))
            other.commit()
        assert one(writer, "SELECT lo_get(%s, 0, 3)", oid) == b"12b"
        writer.execute("SELECT lo_unlink(%s)", (oid,))


# What two write into an object, and what it holds when the second has waited for the first.
FIRST = ("lo_put", 0, b"AAAA")
MEETINGS = {
    "beside": ([FIRST], [("lo_put", 8, b"BBBB")], b"AAAA" + bytes(4) + b"BBBB"),
    "across": ([FIRST], [("lo_put", 2, b"BBBB")], b"AABBBB"),
    "in front": ([("lo_put", 8, b"AAAA")], [("lo_put", 0, b"BBBB")], b"BBBB" + bytes(4) + b"AAAA"),
    "over two pages": ([("lo_put", 2048, b"AAAA")], [("lo_put", 2040, b"B" * 9)], bytes(2040) + b"B" * 9 + b"AAA"),
    "over three pages": (
        [FIRST, ("lo_put", 4096, b"AAAA")],
        [("lo_put", 2, b"B" * 4095)],
        b"AA" + b"B" * 4095 + b"AAA",
    ),
    "longer": ([FIRST], [("lo_truncate", 8)], b"AAAA" + bytes(4)),
    "shorter": ([FIRST], [("lo_truncate", 2)], b"AA"),
    "after it was longer": ([("lo_truncate", 100)], [("lo_put", 8, b"BBBB")], bytes(8) + b"BBBB" + bytes(88)),
    "after it came and went": ([FIRST, ("lo_truncate", 2)], [("lo_put", 8, b"BBBB")], b"AA" + bytes(6) + b"BBBB"),
}


def do_all(connection: psycopg.Connection, oid: int, work: list) -> None:
    """Calls functions that change an object."""
    for name, at, *values in work:
        if name == "lo_put":
            connection.execute("SELECT lo_put(%s, %s, %s)", (oid, at, *values))
        else:
            descriptor = one(connection, "SELECT lo_open(%s, %s)", oid, WRITE)
            connection.execute("SELECT lo_truncate(%s, %s)", (descriptor, at))


def meet(server, oid: int, firsts: list, seconds: list, commits: bool, level=None) -> "Exception | None":
    """Two transactions change one object; the second one has to wait for the first. What it failed with, if it did."""
    failed = []

    def work(connection: psycopg.Connection) -> None:
        try:
            do_all(connection, oid, seconds)
            connection.commit()
        except psycopg.Error as error:
            failed.append(error)
            connection.rollback()

    with server.connect() as first, server.connect() as second, server.connect(autocommit=True) as watcher:
        second.isolation_level = level
        second.execute("SELECT 1")
        do_all(first, oid, firsts)
        thread = threading.Thread(target=work, args=(second,))
        thread.start()
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
        wait_until(lambda: one(watcher, waiting, second.info.backend_pid) == 1, what="the second waits")
        (first.commit if commits else first.rollback)()
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()
    return failed[0] if failed else None


@pytest.mark.parametrize("meeting", MEETINGS)
def test_two_who_make_one_page_lose_nothing(server, meeting):
    firsts, seconds, both = MEETINGS[meeting]
    with server.connect(autocommit=True) as connection:
        for commits in (True, False):
            oid = one(connection, "SELECT lo_create(0)")
            failed = meet(server, oid, firsts, seconds, commits)
            found = one(connection, "SELECT lo_get(%s)", oid)
            connection.execute("SELECT lo_unlink(%s)", (oid,))
            alone = one(connection, "SELECT lo_create(0)")
            do_all_alone(server, alone, firsts if failed else seconds)
            only = one(connection, "SELECT lo_get(%s)", alone)
            connection.execute("SELECT lo_unlink(%s)", (alone,))
            # PostgreSQL refuses the second, and here it merges: what was committed is there.
            if failed:
                assert isinstance(failed, psycopg.errors.UniqueViolation)
            assert found == (only if failed or not commits else both)
        assert one(connection, "SELECT count(*) FROM pg_largeobject") == 0


def do_all_alone(server, oid: int, work: list) -> None:
    """The same with nobody beside."""
    with server.connect() as connection:
        do_all(connection, oid, work)


@pytest.mark.parametrize("level", [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE])
@pytest.mark.parametrize("seconds", [[("lo_put", 8, b"BBBB")], [("lo_truncate", 8)]], ids=["put", "truncate"])
def test_who_has_a_snapshot_does_not_overwrite_a_page_made_since(server, level, seconds):
    with server.connect(autocommit=True) as connection:
        oid = one(connection, "SELECT lo_create(0)")
        failed = meet(server, oid, [FIRST], seconds, True, level)
        # PostgreSQL's large objects know the first error alone.
        assert isinstance(failed, psycopg.errors.UniqueViolation | psycopg.errors.SerializationFailure)
        assert one(connection, "SELECT lo_get(%s)", oid) == b"AAAA"
        connection.execute("SELECT lo_unlink(%s)", (oid,))


@pytest.mark.logstead_only
def test_repeatable_read_keeps_its_snapshot(server):
    with server.connect() as reader, server.connect(autocommit=True) as writer:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        oid = one(writer, "SELECT lo_from_bytea(0, 'old')")
        reader.execute("SELECT 1")
        writer.execute("SELECT lo_put(%s, 0, 'new')", (oid,))
        made = one(writer, "SELECT lo_from_bytea(0, 'made')")
        assert one(reader, "SELECT lo_get(%s)", oid) == b"old"
        with pytest.raises(psycopg.errors.UndefinedObject):
            reader.execute("SELECT lo_get(%s)", (made,))
        reader.rollback()
        assert one(reader, "SELECT lo_get(%s)", oid) == b"new"
        reader.rollback()
        for each in (oid, made):
            writer.execute("SELECT lo_unlink(%s)", (each,))


def test_kill_9_keeps_what_was_committed(private_server):
    private_server.start()
    whole = drawn(50_000)
    connection = private_server.connect()
    oid = one(connection, "SELECT lo_from_bytea(0, %s)", whole)
    gone = one(connection, "SELECT lo_from_bytea(0, 'gone')")
    connection.execute(f"COMMENT ON LARGE OBJECT {oid} IS 'kept'")
    connection.commit()
    connection.execute("SELECT lo_unlink(%s)", (gone,))
    connection.execute("SELECT lo_put(%s, 100, %s)", (oid, b"changed"))
    connection.commit()
    connection.execute("SELECT lo_put(%s, 0, %s)", (oid, b"never"))
    never = one(connection, "SELECT lo_creat(-1)")
    expected = whole[:100] + b"changed" + whole[107:]
    private_server.kill()
    private_server.start()
    with private_server.connect(autocommit=True) as connection:
        assert one(connection, "SELECT lo_get(%s)", oid) == expected
        assert one(connection, "SELECT obj_description(%s, 'pg_largeobject')", oid) == "kept"
        found = connection.execute("SELECT oid::int8 FROM pg_largeobject_metadata").fetchall()
        assert found == [(oid,)]
        assert one(connection, "SELECT count(*) FROM pg_largeobject WHERE loid <> %s", oid) == 0
        # From a checkpoint, without the log.
        connection.execute("CHECKPOINT")
        assert never != one(connection, "SELECT lo_from_bytea(0, 'more')")
    private_server.kill()
    private_server.start()
    with private_server.connect(autocommit=True) as connection:
        assert one(connection, "SELECT lo_get(%s)", oid) == expected
        assert one(connection, "SELECT count(*) FROM pg_largeobject_metadata") == 2
        # Another database has its own, which go with it.
        connection.execute("CREATE DATABASE lo_other")
        with private_server.connect(dbname="lo_other", autocommit=True) as other:
            assert one(other, "SELECT count(*) FROM pg_largeobject_metadata") == 0
            other.execute("SELECT lo_from_bytea(%s, 'other')", (oid,))
            assert one(other, "SELECT lo_get(%s)", oid) == b"other"
        assert one(connection, "SELECT lo_get(%s)", oid) == expected
        connection.execute("DROP DATABASE lo_other")
        connection.execute("CREATE DATABASE lo_other")
        with private_server.connect(dbname="lo_other", autocommit=True) as other:
            assert one(other, "SELECT count(*) FROM pg_largeobject") == 0
            other.execute("SELECT lo_from_bytea(%s, 'again')", (oid,))
    private_server.kill()
    private_server.start()
    with private_server.connect(dbname="lo_other") as other:
        assert one(other, "SELECT lo_get(%s)", oid) == b"again"


@pytest.mark.parametrize("form", ["plain", "custom"])
def test_a_dump_restores_large_objects(private_server, tmp_path, form):
    private_server.start()
    private_server.execute(
        "CREATE ROLE lo_dumper",
        "CREATE ROLE lo_reader",
        "CREATE TABLE pictures (id int PRIMARY KEY, picture oid)",
        "INSERT INTO pictures VALUES (1, lo_from_bytea(70001, decode(repeat('00ff27', 20000), 'hex'))), (2, lo_from_bytea(70002, ''))",
        "COMMENT ON LARGE OBJECT 70001 IS 'it''s'",
        "ALTER LARGE OBJECT 70001 OWNER TO lo_dumper",
        "GRANT SELECT ON LARGE OBJECT 70001 TO lo_reader",
        "SELECT lo_create(70003)",
        "CREATE DATABASE lo_restored",
    )
    before = objects(private_server)
    assert [row[0] for row in before] == [70001, 70002, 70003]
    assert before[0][1:4] == ("lo_dumper", "{lo_dumper=rw/lo_dumper,lo_reader=r/lo_dumper}", "it's")
    # pg_dump of a newer release than 15 may write settings that 15 does not know.
    if form == "plain":
        dump = private_server.run("pg_dump", "-b").stdout
        private_server.run("psql", "-X", "-q", "-d", "lo_restored", stdin=dump)
    else:
        private_server.run("pg_dump", "-b", "-Fc", "-f", str(tmp_path / "dump"))
        private_server.run("pg_restore", "-d", "lo_restored", str(tmp_path / "dump"), check=False)
    assert objects(private_server, "lo_restored") == before
    with private_server.connect(dbname="lo_restored") as connection:
        rows = connection.execute("SELECT id, length(lo_get(picture)) FROM pictures ORDER BY id").fetchall()
        assert rows == [(1, 60_000), (2, 0)]


@pytest.mark.logstead_only
def test_an_object_larger_than_memory_is_written_and_read_in_pieces(private_server):
    private_server.start(arguments=("--memory", "24MB", "--checkpoint-interval", "500ms"))
    pieces = 48
    with private_server.connect() as connection:
        oid = one(connection, "SELECT lo_creat(-1)")
        fd = one(connection, "SELECT lo_open(%s, %s)", oid, WRITE)
        connection.commit()
        for number in range(pieces):
            fd = one(connection, "SELECT lo_open(%s, %s)", oid, WRITE)
            one(connection, "SELECT lo_lseek64(%s, %s, 0)", fd, number << 20)
            assert one(connection, "SELECT lowrite(%s, %b)", fd, drawn((1 << 20) + number)[: 1 << 20]) == 1 << 20
            connection.commit()
        fd = one(connection, "SELECT lo_open(%s, %s)", oid, READ)
        assert one(connection, "SELECT lo_lseek64(%s, 0, 2)", fd) == pieces << 20
        one(connection, "SELECT lo_lseek64(%s, 0, 0)", fd)
        for number in range(pieces):
            assert one(connection, "SELECT loread(%s, %s)", fd, 1 << 20) == drawn((1 << 20) + number)[: 1 << 20]
        connection.commit()
        # What one transaction changes must fit: it goes in pieces, too.
        for left in range(pieces - 4, -1, -4):
            fd = one(connection, "SELECT lo_open(%s, %s)", oid, WRITE)
            one(connection, "SELECT lo_truncate64(%s, %s)", fd, left << 20)
            connection.commit()
        assert one(connection, "SELECT lo_unlink(%s)", oid) == 1
        connection.commit()
        assert one(connection, "SELECT count(*) FROM pg_largeobject") == 0
