"""The protocol by hand: what well-behaved drivers send, in every order they may send it."""

import struct
import time

import pytest
from rawwire import (
    FLUSH,
    GSSENC_REQUEST,
    SSL_REQUEST,
    SYNC,
    TERMINATE,
    Wire,
    bind,
    close,
    describe,
    error,
    execute,
    kinds,
    message,
    parse,
    query,
    rows,
    startup,
    text,
)

INT4, INT8, TEXT, NUMERIC, BOOL, FLOAT8 = 23, 20, 25, 1700, 16, 701


@pytest.fixture
def wire(server):
    with Wire(server) as connection:
        yield connection


def test_startup(server):
    with Wire(server, application_name="raw") as wire:
        expected = {
            "server_encoding": "UTF8", "client_encoding": "UTF8", "DateStyle": "ISO, MDY", "IntervalStyle": "postgres",
            "integer_datetimes": "on", "standard_conforming_strings": "on", "application_name": "raw", "is_superuser": "on",
            "session_authorization": "postgres",
        }  # fmt: skip
        assert expected.items() <= wire.parameters.items()
        assert wire.parameters["server_version"].startswith("15") and "TimeZone" in wire.parameters
        assert wire.process != 0


@pytest.mark.parametrize("code", [SSL_REQUEST, GSSENC_REQUEST])
def test_encryption_is_declined(server, code, is_postgres):
    if is_postgres and code == GSSENC_REQUEST:
        pytest.skip("Debian's PostgreSQL can do GSS encryption")
    with Wire(server, start=False) as wire:
        wire.send(struct.pack("!ii", 8, code))
        assert wire.exactly(1) == b"N"
        assert kinds(wire.ask(startup()))[-1] == "Z"


def test_newer_minor_protocol_is_negotiated(server):
    with Wire(server, start=False) as wire:
        body = struct.pack("!i", 3 << 16 | 2) + text("user") + text("postgres") + text("_pq_.unknown") + text("1") + b"\0"
        wire.send(struct.pack("!i", len(body) + 4) + body)
        assert "v" in kinds(wire.until_ready())


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1", "TDCZ"),
        ("", "IZ"),
        (";", "IZ"),
        ("SELECT 1; SELECT 2", "TDCTDCZ"),
        ("SELECT 1; SELECT 1/0; SELECT 3", "TDCEZ"),
        ("SELECT 1 WHERE false", "TCZ"),
        ("SET application_name = 'x'", "CZ"),
        ("selec", "EZ"),
        ("-- only a comment", "IZ"),
    ],
)
def test_simple_query(wire, sql, expected):
    assert kinds(wire.simple(sql)) == expected


FAILS_AT_3 = "SELECT 10 / (3 - n) FROM generate_series(1, 5) AS n"
CHANGES_AND_FAILS = "WITH w AS (UPDATE wire_rows SET v = v + 1 RETURNING id) SELECT 10 / (3 - n) FROM w, generate_series(1, 5) AS n"


@pytest.mark.parametrize(
    ("sql", "simple", "extended"),
    [
        # What fails at a row has given those before it.
        (FAILS_AT_3, "TDDEZ", "12TDDEZ"),
        ("SELECT n FROM generate_series(0, 5) AS n WHERE 100 / (3 - n) <> 7", "TDDDEZ", "12TDDDEZ"),
        (FAILS_AT_3 + " LIMIT 2", "TDDCZ", "12TDDCZ"),
        # A constant that cannot be computed is found before anything is described, wherever it stands.
        ("SELECT 1 / 0", "EZ", "1EZ"),
        ("SELECT CASE WHEN v > 100 THEN 1 / 0 END FROM wire_rows", "EZ", "1EZ"),
        ("SELECT id FROM wire_rows WHERE false AND 1 / 0 = 1", "TCZ", "12TCZ"),
        ("SELECT id FROM wire_rows WHERE id = 1 OR 1 / 0 = 1", "EZ", "1EZ"),
        ("INSERT INTO wire_rows SELECT 5, 1 / 0 WHERE false", "EZ", "1EZ"),
        ("SELECT coalesce(1, 1 / 0)", "TDCZ", "12TDCZ"),
        # What changes rows gives them when all is changed.
        ("UPDATE wire_rows SET v = 1 / (2 - id) RETURNING id", "EZ", "12TEZ"),
        (CHANGES_AND_FAILS, "EZ", "12TEZ"),
    ],
)
def test_rows_before_an_error(wire, sql, simple, extended):
    wire.simple("DROP TABLE IF EXISTS wire_rows; CREATE TABLE wire_rows (id int PRIMARY KEY, v int)")
    wire.simple("INSERT INTO wire_rows VALUES (1, 1), (2, 2)")
    assert kinds(wire.simple(sql)) == simple
    assert kinds(wire.ask(parse(sql), bind(), describe("P"), execute(), SYNC)) == extended
    assert rows(wire.simple("SELECT sum(v) FROM wire_rows")) == [[b"3"]]


def test_rows_before_an_error_of_what_is_kept(wire):
    """FETCH and EXECUTE give their rows when they have them all; a portal gives as many as are asked for."""
    wire.simple(f"BEGIN; DECLARE c CURSOR FOR {FAILS_AT_3}")
    assert kinds(wire.simple("FETCH 2 FROM c")) == "TDDCZ"
    assert kinds(wire.simple("FETCH 2 FROM c")) == "EZ"
    wire.simple("ROLLBACK")
    wire.simple(f"PREPARE wire_fails AS {FAILS_AT_3}")
    assert kinds(wire.simple("EXECUTE wire_fails")) == "EZ"
    assert kinds(wire.ask(parse(FAILS_AT_3), bind(), *[execute("", 1)] * 4, SYNC)) == "12DsDsEZ"


def test_statement_timeout_between_messages(wire):
    """The time of a statement counts while the client has not sent all of it: the next message finds that it is up."""
    wire.simple("SET statement_timeout = 50")
    wire.send(parse("SELECT 1"), FLUSH)
    assert wire.receive().kind == "1"
    time.sleep(0.1)
    assert error(wire.ask(bind(), execute(), SYNC))["C"] == "57014"
    # What comes behind Sync is another statement.
    assert kinds(wire.ask(parse("SELECT 1"), bind(), execute(), SYNC)) == "12DCZ"


def test_failed_portals_are_refused(wire):
    """A portal stays in a failed transaction, to be refused as all else is; one that failed behind a savepoint cannot be run after it."""
    def portal(*messages):
        return error(wire.ask(*messages, execute("p", 1), SYNC))["C"]

    wire.simple("BEGIN")
    assert portal(parse(FAILS_AT_3, "fails"), bind(portal="p", statement="fails"), execute("p", 2)) == "22012"
    assert portal() == "25P02"
    assert error(wire.ask(execute("nope"), SYNC))["C"] == "34000"
    wire.simple("ROLLBACK; BEGIN")
    wire.ask(bind(portal="p", statement="fails"), execute("p", 2), SYNC)
    wire.simple("SAVEPOINT s")
    assert portal() == "22012"
    wire.simple("ROLLBACK TO s")
    assert portal() == "55000"
    wire.simple("ROLLBACK")


def test_what_cannot_be_in_a_pipeline(wire):
    for sql, code in [("VACUUM", "25001"), ("DECLARE c CURSOR FOR SELECT 1", "25P01")]:
        assert error(wire.ask(parse("SELECT 1"), bind(), execute(), parse(sql), bind(), execute(), SYNC))["C"] == code


def test_a_changed_result_is_named_as_drivers_look_for_it(wire):
    """They prepare the statement again if the error comes from this function."""
    wire.simple("DROP TABLE IF EXISTS wire_shape; CREATE TABLE wire_shape (a int)")
    wire.ask(parse("SELECT * FROM wire_shape", "shape"), SYNC)
    wire.simple("ALTER TABLE wire_shape ADD COLUMN b int")
    found = error(wire.ask(bind(statement="shape"), execute(), SYNC))
    assert (found["C"], found["R"]) == ("0A000", "RevalidateCachedQuery")
    wire.simple("DROP TABLE wire_shape")


def test_several_statements_are_one_transaction(wire):
    wire.simple("DROP TABLE IF EXISTS wire_multi; CREATE TABLE wire_multi (id int)")
    assert error(wire.simple("INSERT INTO wire_multi VALUES (1); SELECT 1/0; INSERT INTO wire_multi VALUES (2)"))["C"] == "22012"
    assert rows(wire.simple("SELECT count(*) FROM wire_multi")) == [[b"0"]]
    wire.simple("INSERT INTO wire_multi VALUES (1); COMMIT; INSERT INTO wire_multi VALUES (2); SELECT 1/0")
    assert rows(wire.simple("SELECT id FROM wire_multi")) == [[b"1"]]
    wire.simple("DROP TABLE wire_multi")


def test_transaction_status(wire):
    def status(sql):
        return wire.simple(sql)[-1].payload

    assert [status(sql) for sql in ["BEGIN", "SELECT 1", "SELECT 1/0", "SELECT 1", "ROLLBACK"]] == [b"T", b"T", b"E", b"E", b"I"]


def test_command_tags(wire):
    expected = [
        ("CREATE TABLE wire_tag (id int)", b"CREATE TABLE"),
        ("INSERT INTO wire_tag VALUES (1), (2)", b"INSERT 0 2"),
        ("UPDATE wire_tag SET id = 3 WHERE id = 1", b"UPDATE 1"),
        ("SELECT * FROM wire_tag", b"SELECT 2"),
        ("DELETE FROM wire_tag WHERE id = 9", b"DELETE 0"),
        ("CREATE INDEX wire_tag_i ON wire_tag (id)", b"CREATE INDEX"),
        ("ALTER TABLE wire_tag ADD COLUMN x int", b"ALTER TABLE"),
        ("TRUNCATE wire_tag", b"TRUNCATE TABLE"),
        ("BEGIN", b"BEGIN"),
        ("SAVEPOINT s", b"SAVEPOINT"),
        ("ROLLBACK TO s", b"ROLLBACK"),
        ("RELEASE s", b"RELEASE"),
        ("COMMIT", b"COMMIT"),
        ("SHOW timezone", b"SHOW"),
        ("PREPARE wire_p AS SELECT 1", b"PREPARE"),
        ("DEALLOCATE wire_p", b"DEALLOCATE"),
        ("EXPLAIN SELECT 1", b"EXPLAIN"),
        ("DROP INDEX wire_tag_i", b"DROP INDEX"),
        ("DROP TABLE wire_tag", b"DROP TABLE"),
        ("CREATE SEQUENCE wire_seq", b"CREATE SEQUENCE"),
        ("DROP SEQUENCE wire_seq", b"DROP SEQUENCE"),
    ]
    said = [(sql, [m.payload.rstrip(b"\0") for m in wire.simple(sql) if m.kind in "CE"]) for sql, _ in expected]
    assert said == [(sql, [tag]) for sql, tag in expected]


def test_extended_query(wire):
    found = wire.ask(parse("SELECT $1::int + 1, $2::text", types=(INT4, TEXT)), bind([b"41", b"x"]), describe("P"), execute(), SYNC)
    assert kinds(found) == "12TDCZ"
    assert rows(found) == [[b"42", b"x"]]
    assert [column[1] for column in found[2].columns] == [INT4, TEXT]


def test_describe_statement_infers_types(wire):
    wire.simple("DROP TABLE IF EXISTS wire_d; CREATE TABLE wire_d (id int PRIMARY KEY, name varchar(9), n numeric(7,3))")
    found = wire.ask(parse("UPDATE wire_d SET n = $1, name = $3 WHERE id = $2 RETURNING n, name", "u"), describe("S", "u"), SYNC)
    assert kinds(found) == "1tTZ"
    assert struct.unpack("!h3I", found[1].payload) == (3, NUMERIC, INT4, 1043)
    assert found[2].columns == [("n", NUMERIC, (7 << 16 | 3) + 4, 0), ("name", 1043, 13, 0)]
    found = wire.ask(parse("INSERT INTO wire_d (id) VALUES ($1)", "i"), describe("S", "i"), SYNC)
    assert kinds(found) == "1tnZ"
    found = wire.ask(parse("SELECT $1", "s"), describe("S", "s"), SYNC)
    assert struct.unpack("!hI", found[1].payload) == (1, TEXT)
    found = wire.ask(parse("", "empty"), describe("S", "empty"), bind(statement="empty"), execute(), SYNC)
    assert kinds(found) == "1tn2IZ"
    wire.simple("DROP TABLE wire_d")


def test_statement_and_portal_lifetimes(wire):
    assert kinds(wire.ask(parse("SELECT 1", "one"), SYNC)) == "1Z"
    assert error(wire.ask(parse("SELECT 2", "one"), SYNC))["C"] == "42P05"
    assert kinds(wire.ask(parse("SELECT 3"), parse("SELECT 4"), bind(), execute(), SYNC)) == "112DCZ"
    # A portal lives to the end of the transaction.
    assert kinds(wire.ask(bind(portal="p", statement="one"), SYNC)) == "2Z"
    assert error(wire.ask(execute("p"), SYNC))["C"] == "34000"
    wire.simple("BEGIN")
    assert kinds(wire.ask(bind(portal="p", statement="one"), SYNC)) == "2Z"
    assert kinds(wire.ask(execute("p"), SYNC)) == "DCZ"
    wire.simple("COMMIT")
    assert kinds(wire.ask(close("S", "one"), close("S", "one"), close("P", "none"), SYNC)) == "333Z"
    assert error(wire.ask(bind(statement="one"), SYNC))["C"] == "26000"
    assert error(wire.ask(describe("S", "one"), SYNC))["C"] == "26000"
    assert error(wire.ask(describe("P", "nope"), SYNC))["C"] == "34000"


def test_statements_fall_with_sql_deallocate(wire):
    wire.ask(parse("SELECT 1", "shared"), SYNC)
    assert kinds(wire.simple("EXECUTE shared")) == "TDCZ"
    wire.simple("DEALLOCATE shared")
    assert error(wire.ask(bind(statement="shared"), SYNC))["C"] == "26000"


def test_portal_row_limit(wire):
    wire.simple("DROP TABLE IF EXISTS wire_rows; CREATE TABLE wire_rows (id int PRIMARY KEY)")
    wire.simple("INSERT INTO wire_rows VALUES (1), (2), (3), (4), (5)")
    found = wire.ask(
        parse("SELECT id FROM wire_rows ORDER BY id"), bind(portal="p"), execute("p", 2), execute("p", 2), execute("p", 2), SYNC
    )
    assert kinds(found) == "12DDsDDsDCZ"
    assert rows(found) == [[b"1"], [b"2"], [b"3"], [b"4"], [b"5"]]
    assert [m.payload for m in found if m.kind == "C"] == [b"SELECT 1\0"]
    # Between Flushes, inside a transaction, with other statements between.
    wire.simple("BEGIN")
    wire.send(parse("SELECT id FROM wire_rows ORDER BY id"), bind(portal="p"), execute("p", 3), FLUSH)
    assert kinds(wire.until("s")) == "12DDDs"
    assert rows(wire.ask(parse("SELECT 'between'"), bind(), execute(), SYNC)) == [[b"between"]]
    assert rows(wire.ask(execute("p", 9), SYNC)) == [[b"4"], [b"5"]]
    wire.simple("COMMIT")
    # A limit on a statement that gives no rows does not matter.
    assert kinds(wire.ask(parse("DELETE FROM wire_rows"), bind(), execute("", 1), SYNC)) == "12CZ"
    wire.simple("DROP TABLE wire_rows")


def test_pipeline_recovers_at_sync(wire):
    wire.simple("DROP TABLE IF EXISTS wire_pipe; CREATE TABLE wire_pipe (id int PRIMARY KEY)")

    def insert(value):
        return parse("INSERT INTO wire_pipe VALUES ($1)") + bind([value]) + execute()

    wire.send(insert(b"1"), SYNC, insert(b"2"), insert(b"x"), insert(b"3"), SYNC, insert(b"4"), SYNC)
    assert kinds(wire.until_ready()) == "12CZ"
    second = wire.until_ready()
    assert kinds(second) == "12C1EZ" and error(second)["C"] == "22P02"
    assert kinds(wire.until_ready()) == "12CZ"
    # The failed group was one transaction: 2 is not there.
    assert rows(wire.simple("SELECT id FROM wire_pipe ORDER BY id")) == [[b"1"], [b"4"]]
    # After an error everything up to Sync is skipped, also a simple query.
    found = wire.ask(parse("SELECT bogus"), query("INSERT INTO wire_pipe VALUES (9)"), describe("S"), SYNC)
    assert kinds(found) == "EZ"
    # An error in a transaction block: Sync leaves it failed.
    wire.simple("BEGIN")
    assert wire.ask(insert(b"1"), SYNC)[-1].payload == b"E"
    assert error(wire.ask(insert(b"7"), SYNC))["C"] == "25P02"
    assert wire.simple("ROLLBACK")[-1].payload == b"I"
    assert rows(wire.simple("SELECT count(*) FROM wire_pipe")) == [[b"2"]]
    wire.simple("DROP TABLE wire_pipe")


def test_large_pipeline(wire):
    """Thousands of messages in one write, with the answers read only afterwards."""
    count = 5000
    wire.simple("DROP TABLE IF EXISTS wire_many; CREATE TABLE wire_many (id int PRIMARY KEY)")
    wire.ask(parse("INSERT INTO wire_many VALUES ($1)", "ins"), SYNC)
    wire.send(*[bind([str(i).encode()], statement="ins") + execute() for i in range(count)], SYNC)
    assert kinds(wire.until_ready()) == "2C" * count + "Z"
    assert rows(wire.simple("SELECT count(*) FROM wire_many")) == [[str(count).encode()]]
    wire.simple("DROP TABLE wire_many")


BINARY = [
    ("$1::int2", 21, struct.pack("!h", -5), b"-5"),
    ("$1::int4", INT4, struct.pack("!i", 1 << 30), b"1073741824"),
    ("$1::int8", INT8, struct.pack("!q", -(1 << 62)), b"-4611686018427387904"),
    ("$1::float4", 700, struct.pack("!f", 1.5), b"1.5"),
    ("$1::float8", FLOAT8, struct.pack("!d", -0.1), b"-0.1"),
    ("$1::bool", BOOL, b"\1", b"t"),
    ("$1::text", TEXT, "é".encode(), "é".encode()),
    ("$1::varchar", 1043, b"v", b"v"),
    ("$1::bytea", 17, b"\0\xff", b"\\x00ff"),
    ("$1::date", 1082, struct.pack("!i", 8825), b"2024-02-29"),
    ("$1::time", 1083, struct.pack("!q", 3_600_000_001), b"01:00:00.000001"),
    ("$1::timestamp", 1114, struct.pack("!q", 0), b"2000-01-01 00:00:00"),
    ("$1::uuid", 2950, bytes(range(16)), b"00010203-0405-0607-0809-0a0b0c0d0e0f"),
    ("$1::numeric", NUMERIC, struct.pack("!hhHh3h", 3, 1, 0, 3, 1, 2345, 6780), b"12345.678"),
    ("$1::numeric", NUMERIC, struct.pack("!hhHh", 0, 0, 0xC000, 0), b"NaN"),
    ("$1::numeric", NUMERIC, struct.pack("!hhHh1h", 1, -1, 0x4000, 4, 5), b"-0.0005"),
]


@pytest.mark.parametrize(("sql", "oid", "binary", "shown"), BINARY, ids=[f"{b[0][4:]}-{b[3].decode()}" for b in BINARY])
def test_binary_formats(wire, sql, oid, binary, shown):
    """A binary parameter comes back right as text and as the same bytes."""
    found = wire.ask(parse(f"SELECT {sql}, {sql}", types=(oid,)), bind([binary], formats=[1], results=[0, 1]), execute(), SYNC)
    assert rows(found) == [[shown, binary]]
    found = wire.ask(parse(f"SELECT {sql}", types=(oid,)), bind([shown], results=[1]), describe("P"), execute(), SYNC)
    assert rows(found) == [[binary]]
    assert [m.columns[0][3] for m in found if m.kind == "T"] == [1]


def test_null_parameters_and_results(wire):
    found = wire.ask(parse("SELECT $1::int, $2::text, NULL"), bind([None, None], formats=[1], results=[1]), execute(), SYNC)
    assert rows(found) == [[None, None, None]]


@pytest.mark.parametrize(
    ("bound", "sqlstate"),
    [
        (bind([b"1"]), "08P01"),
        (bind([b"1", b"2", b"3"]), "08P01"),
        (bind([b"1", b"2"], formats=[0, 0, 0]), "08P01"),
        (bind([b"1", b"2"], formats=[7]), "22023"),
        (bind([b"\0\0\1", b"x"], formats=[1]), "08P01"),
        (bind([b"\0\0\0\1\1", b"x"], formats=[1]), "22P03"),
        (bind([b"notanint", b"x"]), "22P02"),
        (bind([b"1", b"\xff\xfe"]), "22021"),
        (bind([b"1", b"2"], results=[0, 1, 0]), "08P01"),
    ],
    ids=["too-few", "too-many", "format-count", "format-code", "binary-short", "binary-long", "text-syntax", "utf8", "result-count"],
)
def test_bad_bind(wire, bound, sqlstate):
    wire.ask(parse("SELECT $1::int, $2::text", "two", (INT4, TEXT)), SYNC)
    fixed = bytearray(bound)
    # The statement's name goes in after the empty portal name.
    body = bytes(fixed[5:6]) + b"two\0" + bytes(fixed[7:])
    assert error(wire.ask(message("B", body), SYNC))["C"] == sqlstate
    assert kinds(wire.simple("SELECT 1")) == "TDCZ"


def test_copy_in_and_out(wire):
    wire.simple("DROP TABLE IF EXISTS wire_copy; CREATE TABLE wire_copy (id int, v text)")
    wire.send(query("COPY wire_copy FROM STDIN"))
    assert wire.until("G", "E")[-1].payload == b"\0\0\2\0\0\0\0"
    # A row cut anywhere between messages.
    wire.send(message("d", b"1\ton"), message("d", b"e\n2"), message("d", b"\t"), message("d", b"two\n\\.\n"), message("c"))
    assert [m.payload for m in wire.until_ready() if m.kind == "C"] == [b"COPY 2\0"]
    found = wire.simple("COPY wire_copy TO STDOUT")
    assert kinds(found) == "HddcCZ"
    assert b"".join(m.payload for m in found if m.kind == "d") == b"1\tone\n2\ttwo\n"
    # The client gives up.
    wire.send(query("COPY wire_copy FROM STDIN"))
    wire.until("G")
    found = wire.send(message("d", b"3\tx\n"), message("f", text("changed my mind"))).until_ready()
    assert error(found)["C"] == "57014" and "changed my mind" in error(found)["M"]
    # An error in the middle: what follows up to CopyDone is swallowed.
    wire.send(query("COPY wire_copy FROM STDIN"))
    wire.until("G")
    found = wire.send(message("d", b"oops\tx\n"), *[message("d", b"4\tx\n")] * 1000, message("c")).until_ready()
    assert error(found)["C"] == "22P02"
    assert rows(wire.simple("SELECT count(*) FROM wire_copy")) == [[b"2"]]
    # In the extended protocol.
    wire.send(parse("COPY wire_copy FROM STDIN"), bind(), execute(), SYNC)
    wire.until("G")
    assert kinds(wire.send(message("d", b"5\tx\n"), message("c"), SYNC).until_ready()) == "CZ"
    assert kinds(wire.ask(parse("COPY wire_copy TO STDOUT"), bind(), execute(), SYNC)) == "12HdddcCZ"
    wire.simple("DROP TABLE wire_copy")


def test_notices_and_parameter_changes(wire):
    assert [m.fields["C"] for m in wire.simple("COMMIT") if m.kind == "N"] == ["25P01"]
    changed = [m.payload for m in wire.simple("SET application_name = 'renamed'") if m.kind == "S"]
    assert changed == [b"application_name\0renamed\0"]
    changed = [m.payload for m in wire.simple("SET timezone = 'Europe/Berlin'") if m.kind == "S"]
    assert changed == [b"TimeZone\0Europe/Berlin\0"]


def test_terminate_ends_the_session(server):
    with Wire(server) as wire:
        wire.send(TERMINATE)
        assert wire.closed() == []


def test_portals_survive_a_rollback_to_a_savepoint(wire):
    wire.simple("BEGIN")
    series = parse("SELECT g FROM generate_series(1, 6) g")
    assert rows(wire.ask(series, bind(portal="old"), execute("old", 2), SYNC)) == [[b"1"], [b"2"]]
    wire.simple("SAVEPOINT s")
    wire.ask(series, bind(portal="new"), execute("new", 1), SYNC)
    wire.simple("ROLLBACK TO s")
    assert rows(wire.ask(execute("old", 2), SYNC)) == [[b"3"], [b"4"]]
    assert error(wire.ask(execute("new", 1), SYNC))["C"] == "34000"
    # That has failed the block, from the savepoint on.
    assert error(wire.ask(execute("old", 1), SYNC))["C"] == "25P02"
    wire.simple("ROLLBACK TO s")
    wire.ask(series, bind(portal="new"), execute("new", 1), SYNC)
    wire.simple("RELEASE s; SAVEPOINT t")
    wire.simple("ROLLBACK TO t")
    assert rows(wire.ask(execute("new", 1), SYNC)) == [[b"2"]]
    assert rows(wire.ask(execute("old"), SYNC)) == [[b"5"], [b"6"]]
    wire.simple("ROLLBACK")


def test_rows_of_no_columns_are_described(wire):
    assert kinds(wire.simple("SELECT FROM generate_series(1, 2)")) == "TDDCZ"
    nothing = parse("SELECT FROM generate_series(1, 2)")
    assert kinds(wire.ask(nothing, describe("S"), bind(), describe("P"), execute(), SYNC)) == "1tT2TDDCZ"


def test_portals_are_cursors(wire):
    """FETCH and MOVE take portals, wherever they stand; Execute takes cursors; a portal that locks its rows is one for WHERE CURRENT OF."""
    wire.simple("DROP TABLE IF EXISTS wire_held; CREATE TABLE wire_held (id int PRIMARY KEY, v int)")
    wire.simple("INSERT INTO wire_held SELECT n, 0 FROM generate_series(1, 5) AS n")
    wire.simple("BEGIN")
    select = parse("SELECT id FROM wire_held ORDER BY id", "held")
    wire.ask(select, bind(portal="p", statement="held", results=(1,)), SYNC)
    assert wire.simple("MOVE FORWARD 1 FROM p")[0].payload == b"MOVE 1\0"
    assert rows(wire.ask(execute("p", 1), SYNC)) == [[struct.pack("!i", 2)]]
    assert rows(wire.simple("FETCH 1 FROM p")) == [[b"3"]]
    assert error(wire.simple("FETCH BACKWARD 1 FROM p"))["C"] == "55000"
    wire.simple("ROLLBACK")
    wire.simple("BEGIN; DECLARE c CURSOR FOR SELECT id FROM wire_held ORDER BY id")
    found = wire.ask(describe("P", "c"), execute("c", 2), execute("c", 9), SYNC)
    assert kinds(found) == "TDDsDDDCZ" and found[-2].payload == b"SELECT 3\0"
    wire.ask(parse("SELECT id FROM wire_held ORDER BY id FOR UPDATE"), bind(portal="p"), execute("p", 2), SYNC)
    assert rows(wire.simple("SELECT name FROM pg_cursors ORDER BY name")) == [[b"c"], [b"p"]]
    assert rows(wire.simple("UPDATE wire_held SET v = 7 WHERE CURRENT OF p RETURNING id")) == [[b"2"]]
    assert kinds(wire.ask(close("P", "p"), SYNC)) == "3Z"
    assert error(wire.simple("FETCH 1 FROM p"))["C"] == "34000"
    wire.simple("ROLLBACK; DROP TABLE wire_held")
