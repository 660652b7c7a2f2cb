"""Types that users make outlive the server, go through pg_dump, are found by drivers, and keep their order in indexes."""

import enum
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from psycopg.types.enum import EnumInfo, register_enum

CLIENTS = Path(__file__).parent / "clients"

MADE = """
CREATE TYPE ut_mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE ut_person (id int PRIMARY KEY, now ut_mood NOT NULL DEFAULT 'ok', was ut_mood[]);
CREATE INDEX ut_now ON ut_person (now, id);
COMMENT ON TYPE ut_mood IS 'how one feels';
INSERT INTO ut_person VALUES (1, 'happy', '{sad,ok}'), (2, 'sad', NULL), (3, 'ok', '{}');
ALTER TYPE ut_mood ADD VALUE 'meh' BEFORE 'ok';
ALTER TYPE ut_mood ADD VALUE 'dead' BEFORE 'sad';
INSERT INTO ut_person VALUES (4, 'meh', '{meh,NULL}'), (5, 'dead', NULL);
"""
DROP = ["DROP TABLE IF EXISTS ut_person", "DROP TYPE IF EXISTS ut_mood"]
ORDER = "SELECT now, id FROM ut_person ORDER BY now, id"
ORDERED = [("dead", 5), ("sad", 2), ("meh", 4), ("ok", 3), ("happy", 1)]


@pytest.fixture
def mood(server):
    server.execute(*DROP)
    server.psql("-q", stdin=MADE)
    yield server
    server.execute(*DROP)


def by_index(server):
    """The order in which the index has the rows."""
    return server.execute("SET enable_seqscan = off", ORDER)


def test_enums_outlive_a_crash(private_server):
    private_server.start()
    private_server.psql("-q", stdin=MADE)
    private_server.kill()
    private_server.start()
    assert by_index(private_server) == ORDERED
    assert private_server.execute("SELECT id FROM ut_person WHERE now >= 'meh' AND now < 'happy' ORDER BY id") == [(3,), (4,)]
    private_server.execute("ALTER TYPE ut_mood ADD VALUE 'so so' AFTER 'meh'", "ALTER TYPE ut_mood RENAME VALUE 'ok' TO 'fine'")
    private_server.execute("INSERT INTO ut_person (id, now) VALUES (6, 'so so')")
    private_server.stop()
    private_server.start()
    names = [now for now, _ in by_index(private_server)]
    assert names == ["dead", "sad", "meh", "so so", "fine", "happy"]


def test_pg_dump_brings_enums_back(private_server):
    private_server.start()
    private_server.psql("-q", stdin=MADE)
    dump = private_server.run("pg_dump").stdout
    assert "CREATE TYPE public.ut_mood AS ENUM (\n    'dead',\n    'sad',\n    'meh',\n    'ok',\n    'happy'\n);" in dump
    private_server.execute(*DROP)
    private_server.psql("-q", "-v", "ON_ERROR_STOP=1", stdin=dump)
    assert by_index(private_server) == ORDERED
    # What is dumped again is the same; lines of pg_dump itself begin with a backslash.
    again = private_server.run("pg_dump").stdout
    without = lambda text: [line for line in text.splitlines() if not line.startswith("\\")]  # noqa: E731
    assert without(again) == without(dump)


def test_psql_lists_enums(mood):
    listed = mood.psql("-Atc", "\\dT+ ut_mood")
    assert listed.startswith("public|ut_mood|ut_mood|4|dead\nsad\nmeh\nok\nhappy|postgres|")
    assert listed.rstrip().endswith("|how one feels")
    assert "| ut_mood   |" in mood.psql("-c", "\\d ut_person")


def test_a_label_is_another_only_when_it_is_committed(mood):
    with mood.connect() as one, mood.connect() as other:
        one.execute("ALTER TYPE ut_mood RENAME VALUE 'ok' TO 'fine'")
        assert [n for n, _ in other.execute(ORDER).fetchall()] == [n for n, _ in ORDERED]
        assert [n for n, _ in one.execute(ORDER).fetchall()] == ["dead", "sad", "meh", "fine", "happy"]
        other.rollback()
        one.rollback()
        assert one.execute(ORDER).fetchall() == ORDERED


def test_psycopg_knows_an_enum(mood):
    class Mood(enum.Enum):
        dead = 1
        sad = 2
        meh = 3
        ok = 4
        happy = 5

    with mood.connect() as connection:
        info = EnumInfo.fetch(connection, "ut_mood")
        assert list(info.labels) == ["dead", "sad", "meh", "ok", "happy"]
        register_enum(info, connection, Mood)
        for binary in (False, True):
            with connection.cursor(binary=binary) as cursor:
                found = cursor.execute("SELECT now, was FROM ut_person WHERE now = %s", [Mood.happy]).fetchall()
                assert found == [(Mood.happy, [Mood.sad, Mood.ok])]
                given = cursor.execute("SELECT %b::ut_mood[]", [[Mood.ok, Mood.dead]]).fetchone()
                assert given == ([Mood.ok, Mood.dead],)
        connection.execute("INSERT INTO ut_person VALUES (9, %b, %t)", [Mood.meh, [Mood.sad]])
        with connection.cursor().copy("COPY ut_person (id, now) FROM STDIN") as copy:
            copy.write_row([10, Mood.ok])
        assert connection.execute("SELECT now FROM ut_person WHERE id > 8 ORDER BY id").fetchall() == [(Mood.meh,), (Mood.ok,)]
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            connection.execute("INSERT INTO ut_person VALUES (11, 'angry')")


def test_node_postgres_gives_labels(mood):
    modules = os.environ.get("E2E_NODE_MODULES")
    if not modules:
        pytest.skip("no node-postgres: run through ./test")
    done = mood.run("node", CLIENTS / "node/enums.js", env={"NODE_PATH": modules})
    assert "node-postgres: ok" in done.stdout


# What a driver asks that meets an unknown type, elements, bases and attributes followed.
INTROSPECTION = """
WITH RECURSIVE seen (oid, depth) AS (
    SELECT oid, 0 FROM pg_type WHERE oid = any($1::oid[])
    UNION
    SELECT n.oid, s.depth + 1
    FROM seen s JOIN pg_type t ON t.oid = s.oid CROSS JOIN LATERAL unnest(ARRAY[t.typelem, t.typbasetype]) AS n(oid)
    WHERE n.oid <> 0 AND s.depth < 5
)
SELECT t.typname, t.typtype, n.nspname, t.typelem::regtype::text,
       (SELECT array_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid)
FROM (SELECT DISTINCT oid FROM seen) s JOIN pg_type t USING (oid) JOIN pg_namespace n ON n.oid = t.typnamespace
ORDER BY 1
"""


def test_an_unknown_type_is_found_by_its_number(mood):
    with mood.connect() as connection:
        cursor = connection.execute("SELECT was, now FROM ut_person WHERE false")
        array, own = (column.type_code for column in cursor.description)
        assert array not in (0, 25) and own not in (0, 25)
        found = psycopg.RawCursor(connection).execute(INTROSPECTION, [[array]]).fetchall()
        labels = ["dead", "sad", "meh", "ok", "happy"]
        assert found == [("_ut_mood", "b", "public", "ut_mood", None), ("ut_mood", "e", "public", "-", labels)]


def test_changes_of_one_type_wait_for_each_other(mood):
    def later(statement):
        with mood.connect(autocommit=True) as connection:
            try:
                connection.execute(statement)
            except psycopg.Error as error:
                return error.sqlstate

    with ThreadPoolExecutor(2) as threads, mood.connect() as connection:
        connection.execute("ALTER TYPE ut_mood ADD VALUE 'a' BEFORE 'ok'")
        waiting = threads.submit(later, "ALTER TYPE ut_mood ADD VALUE 'b' BEFORE 'ok'")
        with pytest.raises(TimeoutError):
            waiting.result(1)
        connection.commit()
        assert waiting.result(60) is None
        labels = connection.execute("SELECT enum_range(NULL::ut_mood)::text").fetchone()
        assert labels == ("{dead,sad,meh,a,b,ok,happy}",)
        # Who makes something of a type keeps it from being dropped.
        connection.execute("DROP TABLE ut_person")
        connection.commit()
        connection.execute("CREATE TABLE ut_person (now ut_mood)")
        waiting = threads.submit(later, "DROP TYPE ut_mood")
        with pytest.raises(TimeoutError):
            waiting.result(1)
        connection.commit()
        assert waiting.result(60) == "2BP01"
