"""Types that users make outlive the server, go through pg_dump, are found by drivers, and keep their order in indexes."""

import contextlib
import enum
import os
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
from psycopg.types.composite import CompositeInfo, register_composite
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


DOMAINS = """
CREATE DOMAIN ut_posint AS int CONSTRAINT ut_positive CHECK (VALUE > 0);
CREATE DOMAIN ut_zip varchar(5) NOT NULL DEFAULT '12345' CHECK (VALUE ~ '^[0-9]+$');
CREATE DOMAIN ut_even ut_posint CHECK (VALUE % 2 = 0);
CREATE TABLE ut_place (id ut_posint PRIMARY KEY, zip ut_zip, e ut_even DEFAULT 2, all_of ut_posint[]);
CREATE DOMAIN ut_word AS text COLLATE "C";
CREATE TABLE ut_words (word ut_word, words ut_word[]);
CREATE VIEW ut_places AS SELECT id, zip FROM ut_place;
INSERT INTO ut_place VALUES (1, '04103', 4, '{1,2}'), (2, DEFAULT, DEFAULT, NULL);
ALTER DOMAIN ut_even ADD CONSTRAINT ut_small CHECK (VALUE < 4) NOT VALID;
COMMENT ON DOMAIN ut_zip IS 'of a place';
COMMENT ON CONSTRAINT ut_positive ON DOMAIN ut_posint IS 'more than nothing';
"""
DROP_DOMAINS = ["DROP VIEW IF EXISTS ut_places", "DROP TABLE IF EXISTS ut_place, ut_words", "DROP DOMAIN IF EXISTS ut_even, ut_zip, ut_posint, ut_word"]
PLACES = [(1, "04103", 4, "{1,2}"), (2, "12345", 2, None)]


def places(server):
    return server.execute("SELECT id, zip, e, all_of::text FROM ut_place ORDER BY id")


def refused(server, statement):
    with pytest.raises(psycopg.errors.IntegrityError) as caught:
        server.execute(statement)
    return caught.value.diag


def check_domains(server):
    assert places(server) == PLACES
    comments = "SELECT description FROM pg_description d WHERE objoid IN (SELECT oid FROM pg_constraint WHERE conname = 'ut_positive') OR objoid = 'ut_zip'::regtype ORDER BY 1"
    assert server.execute(comments) == [("more than nothing",), ("of a place",)]
    diag = refused(server, "INSERT INTO ut_place (id) VALUES (0)")
    assert (diag.sqlstate, diag.schema_name, diag.datatype_name) == ("23514", "public", "ut_posint")
    assert (diag.constraint_name, diag.table_name) == ("ut_positive", None)
    assert refused(server, "UPDATE ut_place SET zip = NULL").sqlstate == "23502"
    assert refused(server, "UPDATE ut_place SET e = 6").constraint_name == "ut_small"
    assert refused(server, "UPDATE ut_place SET all_of = '{0}'").datatype_name == "ut_posint"


def test_domains_outlive_a_crash(private_server):
    private_server.start()
    private_server.psql("-q", "-v", "ON_ERROR_STOP=1", stdin=DOMAINS)
    private_server.kill()
    private_server.start()
    check_domains(private_server)
    private_server.stop()
    private_server.start()
    check_domains(private_server)


def test_pg_dump_brings_domains_back(private_server):
    private_server.start()
    private_server.psql("-q", "-v", "ON_ERROR_STOP=1", stdin=DOMAINS)
    dump = private_server.run("pg_dump").stdout
    assert "CREATE DOMAIN public.ut_posint AS integer\n\tCONSTRAINT ut_positive CHECK ((VALUE > 0));" in dump
    assert "    word public.ut_word,\n    words public.ut_word[]\n" in dump
    private_server.execute(*DROP_DOMAINS)
    private_server.psql("-q", "-v", "ON_ERROR_STOP=1", stdin=dump)
    check_domains(private_server)
    again = private_server.run("pg_dump").stdout
    without = lambda text: [line for line in text.splitlines() if not line.startswith("\\")]  # noqa: E731
    assert without(again) == without(dump)


def test_drivers_see_what_a_domain_is_made_over(server):
    server.execute(*DROP_DOMAINS)
    server.psql("-q", stdin=DOMAINS)
    try:
        with server.connect() as connection:
            cursor = connection.execute("SELECT id, zip, 2::ut_even FROM ut_places WHERE id = %s", (1,))
            assert [column.type_code for column in cursor.description] == [23, 1043, 23]
            assert cursor.description[1].display_size == 5
            for binary in (False, True):
                with connection.cursor(binary=binary) as cursor, connection.transaction():
                    row = cursor.execute("INSERT INTO ut_place VALUES (%s, %s) RETURNING id, zip", (7 + binary, "99"))
                    assert row.fetchone() == (7 + binary, "99")
            with pytest.raises(psycopg.errors.CheckViolation), connection.transaction():
                connection.execute("INSERT INTO ut_place VALUES (%b)", (-1,))
            for number in (9, -1):
                copied = contextlib.nullcontext() if number > 0 else pytest.raises(psycopg.errors.CheckViolation)
                with copied, connection.transaction(), connection.cursor() as cursor:
                    with cursor.copy("COPY ut_place (id) FROM STDIN (FORMAT BINARY)") as copy:
                        copy.set_types(["int4"])
                        copy.write_row((number,))
    finally:
        server.execute(*DROP_DOMAINS)


def test_a_new_rule_waits_for_who_writes_and_holds_for_who_waited(server):
    server.execute(*DROP_DOMAINS)
    server.psql("-q", stdin=DOMAINS)
    # Arrays of a domain keep it from being altered.
    server.execute("ALTER TABLE ut_place DROP COLUMN all_of")
    try:
        with server.connect() as writer, ThreadPoolExecutor(2) as pool:
            writer.execute("INSERT INTO ut_place VALUES (50)")
            adds = pool.submit(server.execute, "ALTER DOMAIN ut_posint ADD CONSTRAINT ut_low CHECK (VALUE < 50)")
            with pytest.raises(TimeoutError):
                adds.result(timeout=0.5)
            writer.commit()
            with pytest.raises(psycopg.errors.CheckViolation):
                adds.result(timeout=20)
        server.execute("DELETE FROM ut_place WHERE id = 50")
        with server.connect() as altering, ThreadPoolExecutor(2) as pool:
            altering.execute("ALTER DOMAIN ut_posint ADD CONSTRAINT ut_low CHECK (VALUE < 50)")
            inserts = pool.submit(server.execute, "INSERT INTO ut_place VALUES (50)")
            with pytest.raises(TimeoutError):
                inserts.result(timeout=0.5)
            altering.commit()
            with pytest.raises(psycopg.errors.CheckViolation):
                inserts.result(timeout=20)
    finally:
        server.execute(*DROP_DOMAINS)


COMPOSITES = """
CREATE TYPE ut_item AS (name text COLLATE "C", price numeric(10,2));
CREATE TYPE ut_order AS (no int, item ut_item, gone bool, tags text[]);
ALTER TYPE ut_order DROP ATTRIBUTE gone;
CREATE TABLE ut_plain (a int, b text);
CREATE TABLE ut_orders (id int PRIMARY KEY, o ut_order, items ut_item[], row ut_plain);
CREATE INDEX ut_by_order ON ut_orders (o, id);
CREATE VIEW ut_named AS SELECT id, ((o).item).name AS name FROM ut_orders WHERE (o).no > 0;
COMMENT ON TYPE ut_item IS 'what is sold';
CREATE FUNCTION ut_price(i ut_item, n int DEFAULT 2) RETURNS numeric LANGUAGE sql IMMUTABLE STRICT SET search_path = public AS $$ SELECT i.price * n $$;
CREATE PROCEDURE ut_none(IN a int, INOUT b text) LANGUAGE plpgsql AS $$ BEGIN NULL; END $$;
COMMENT ON FUNCTION ut_price(ut_item, int) IS 'of several';
REVOKE EXECUTE ON FUNCTION ut_price(ut_item, int) FROM PUBLIC;
INSERT INTO ut_orders VALUES
    (1, ROW(2, ROW('cup, "red"', 1.5), '{a,b}'), '{"(x,1)",NULL}', ROW(1, 'one')), (2, ROW(1, NULL, NULL), '{}', NULL), (3, NULL, NULL, '(,)');
"""
DROP_COMPOSITES = ["DROP FUNCTION IF EXISTS ut_price", "DROP PROCEDURE IF EXISTS ut_none", "DROP TABLE IF EXISTS ut_orders CASCADE", "DROP TABLE IF EXISTS ut_plain", "DROP TYPE IF EXISTS ut_order, ut_item"]
ORDERS = [(2, "(1,,)", "{}", None), (1, '(2,"(""cup, """"red"""""",1.50)","{a,b}")', '{"(x,1.00)",NULL}', "(1,one)"), (3, None, None, "(,)")]


def test_composites_outlive_a_crash_and_pg_dump_and_drivers_know_them(private_server):
    orders = lambda: private_server.execute(  # noqa: E731
        "SET enable_seqscan = off", "SELECT id, o::text, items::text, row::text FROM ut_orders ORDER BY o, id"
    )
    functions = lambda: private_server.execute(  # noqa: E731
        "SELECT p.oid::regprocedure::text, ut_price((o).item), obj_description(p.oid, 'pg_proc'), has_function_privilege('pg_monitor', p.oid, 'EXECUTE') "
        "FROM pg_proc p, ut_orders WHERE proname = 'ut_price' AND id = 1"
    )
    priced = [("ut_price(ut_item,integer)", Decimal("3.00"), "of several", False)]
    private_server.start()
    private_server.psql("-q", "-v", "ON_ERROR_STOP=1", stdin=COMPOSITES)
    private_server.kill()
    private_server.start()
    assert orders() == ORDERS
    assert functions() == priced
    assert "ut_none" in (listed := private_server.psql("-c", "\\df ut_*")) and "i ut_item, n integer DEFAULT 2" in listed
    assert " SET search_path TO 'public'\nAS $function$ SELECT i.price * n $function$" in private_server.psql("-At", "-c", "\\sf ut_price")
    assert private_server.execute("SELECT id FROM ut_orders WHERE o = ROW(2, ROW('cup, \"red\"', 1.5), '{a,b}')::ut_order") == [(1,)]
    dump = private_server.run("pg_dump").stdout
    assert "CREATE TYPE public.ut_order AS (\n\tno integer,\n\titem public.ut_item,\n\ttags text[]\n);" in dump
    assert 'name text COLLATE pg_catalog."C"' in dump
    private_server.execute(*DROP_COMPOSITES)
    private_server.psql("-q", "-v", "ON_ERROR_STOP=1", stdin=dump)
    assert orders() == ORDERS
    assert private_server.execute("SELECT * FROM ut_named") == [(1, 'cup, "red"'), (2, None)]
    assert functions() == priced
    without = lambda text: [line for line in text.splitlines() if not line.startswith("\\")]  # noqa: E731
    assert without(private_server.run("pg_dump").stdout) == without(dump)
    with private_server.connect() as connection:
        for name in ("ut_item", "ut_order", "ut_plain"):
            info = CompositeInfo.fetch(connection, name)
            register_composite(info, connection)
        assert list(info.field_names) == ["a", "b"]
        for binary in (False, True):
            with connection.cursor(binary=binary) as cursor:
                found = cursor.execute("SELECT o, items, row FROM ut_orders WHERE id = 1").fetchone()
                assert found[0].item.name == 'cup, "red"' and found[0].tags == ["a", "b"] and found[2] == (1, "one")
                assert [item and item.name for item in found[1]] == ["x", None]
                # What was read goes back as it came, in both formats.
                for place in ("%t", "%b"):
                    same = cursor.execute(f"SELECT id FROM ut_orders WHERE o = {place} AND row = {place}", [found[0], found[2]]).fetchall()
                    assert same == [(1,)]
