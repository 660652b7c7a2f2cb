"""COPY in the binary format: what comes out goes in again, and damaged input is refused as PostgreSQL refuses it."""

import struct

import psycopg
import pytest

HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
TRAILER = struct.pack("!h", -1)


def row(*fields: bytes | None) -> bytes:
    """A row of the stream."""
    parts = [struct.pack("!h", len(fields))]
    for field in fields:
        parts.append(struct.pack("!i", -1) if field is None else struct.pack("!i", len(field)) + field)
    return b"".join(parts)


@pytest.fixture
def connection(server):
    """A connection, and a table with a number and a text."""
    with server.connect(autocommit=True) as connection:
        connection.execute("CREATE TABLE copy_binary (id int PRIMARY KEY, v varchar(5))")
        yield connection
        connection.execute("DROP TABLE copy_binary")


def put(connection, data: bytes, piece: int = 1 << 20) -> int:
    """Copies a stream in, cut into pieces; how many rows."""
    cursor = connection.cursor()
    with cursor.copy("COPY copy_binary FROM STDIN (FORMAT binary)") as copy:
        for at in range(0, len(data), piece):
            copy.write(data[at : at + piece])
    return cursor.rowcount


def get(connection, sql: str) -> bytes:
    """What a COPY TO STDOUT gives."""
    with connection.cursor().copy(sql) as copy:
        return b"".join(bytes(data) for data in copy)


def test_out_is_what_the_format_says(connection):
    connection.execute("INSERT INTO copy_binary VALUES (1, 'one'), (2, NULL)")
    found = get(connection, "COPY (SELECT * FROM copy_binary ORDER BY id) TO STDOUT (FORMAT binary)")
    assert found == HEADER + row(b"\0\0\0\1", b"one") + row(b"\0\0\0\2", None) + TRAILER
    assert get(connection, "COPY (SELECT 1 WHERE false) TO STDOUT WITH BINARY") == HEADER + TRAILER


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_in_takes_it_however_it_is_cut(connection, piece):
    data = HEADER + row(b"\0\0\0\1", b"one") + row(b"\0\0\0\2", None) + TRAILER
    assert put(connection, data, piece) == 2
    assert connection.execute("SELECT * FROM copy_binary ORDER BY id").fetchall() == [(1, "one"), (2, None)]


def test_a_stream_may_lack_its_trailer_and_have_an_extension(connection):
    extended = HEADER[:-4] + struct.pack("!i", 3) + b"abc"
    assert put(connection, extended + row(b"\0\0\0\1", b"one")) == 1
    assert put(connection, HEADER + TRAILER) == 0


EVERY = [
    *("1::int2", "2::int8", "1.5::float4", "-2.25::float8", "12345.6789::numeric", "'NaN'::numeric", "true", "'x'::text", "'ab'::char(4)"),
    *("'n'::name", "'\\xdeadbeef'::bytea", "'2024-02-29'::date", "'12:34:56.789'::time", "'2024-02-29 12:00'::timestamp"),
    *("'2024-02-29 12:00+00'::timestamptz", "'1 mon 2 days 3 s'::interval", "'00112233-4455-6677-8899-aabbccddeeff'::uuid"),
    *("""'{"a": 1}'::json""", """'{"b": [2]}'::jsonb""", "ARRAY[1, NULL, 3]", "ARRAY['a', 'b']", "'{}'::int[]", "7::oid"),
]


def test_every_type_comes_back(connection):
    columns = ", ".join(f"{value} AS c{number}" for number, value in enumerate(EVERY))
    connection.execute(f"CREATE TABLE copy_every AS SELECT {columns}")
    try:
        data = get(connection, "COPY copy_every TO STDOUT (FORMAT binary)")
        with connection.cursor().copy("COPY copy_every FROM STDIN (FORMAT binary)") as copy:
            copy.write(data)
        only = data[len(HEADER) : -len(TRAILER)]
        assert get(connection, "COPY copy_every TO STDOUT (FORMAT binary)") == HEADER + only + only + TRAILER
    finally:
        connection.execute("DROP TABLE copy_every")


WRONG = {
    "signature": (b"PGCOPX\n\xff\r\n\0" + HEADER[11:], "22P04", "COPY file signature not recognized", None),
    "flags": (HEADER[:11], "22P04", "invalid COPY file header (missing flags)", None),
    "critical": (HEADER[:11] + b"\0\2\0\0\0\0\0\0", "22P04", "unrecognized critical flags in COPY file header", None),
    "oids": (HEADER[:11] + b"\0\1\0\0\0\0\0\0", "22P04", "invalid COPY file header (WITH OIDS)", None),
    "length": (HEADER[:15] + b"\0\0\0\7ab", "22P04", "invalid COPY file header (wrong length)", None),
    "count": (HEADER + row(b"\0\0\0\1"), "22P04", "row field count is 1, expected 2", "COPY copy_binary, line 1"),
    "cut": (HEADER + row(b"\0\0\0\1", b"one")[:-1], "22P04", "unexpected EOF in COPY data", "COPY copy_binary, line 1, column v"),
    "size": (
        HEADER + struct.pack("!hi", 2, -5),
        "22P04",
        "invalid field size",
        "COPY copy_binary, line 1, column id",
    ),
    "behind": (HEADER + TRAILER + b"x", "22P04", "received copy data after EOF marker", "COPY copy_binary, line 1"),
    "wide": (HEADER + row(b"\0\0\0\0\1", b"one"), "22P03", "incorrect binary data format", "COPY copy_binary, line 1, column id"),
    "narrow": (HEADER + row(b"\0\1", b"one"), "08P01", "insufficient data left in message", "COPY copy_binary, line 1, column id"),
    "long": (
        HEADER + row(b"\0\0\0\1", b"1") + row(b"\0\0\0\2", b"too long"),
        "22001",
        "value too long for type character varying(5)",
        "COPY copy_binary, line 2, column v",
    ),
    "utf8": (HEADER + row(b"\0\0\0\1", b"a\xff"), "22021", 'invalid byte sequence for encoding "UTF8": 0xff', "COPY copy_binary, line 1, column v"),
    "twice": (
        HEADER + row(b"\0\0\0\1", b"1") * 2 + TRAILER,
        "23505",
        'duplicate key value violates unique constraint "copy_binary_pkey"',
        "COPY copy_binary, line 2",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_damaged_input(connection, case):
    data, state, message, context = WRONG[case]
    with pytest.raises(psycopg.Error) as error:
        put(connection, data)
    diag = error.value.diag
    assert (diag.sqlstate, diag.message_primary, diag.context) == (state, message, context)
    assert connection.execute("SELECT count(*) FROM copy_binary").fetchone() == (0,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("FORMAT binary, DELIMITER ','", "cannot specify DELIMITER in BINARY mode"),
        ("FORMAT binary, NULL 'x'", "cannot specify NULL in BINARY mode"),
        ("FORMAT binary, HEADER", "cannot specify HEADER in BINARY mode"),
    ],
)
def test_options_of_text(connection, options, message):
    with pytest.raises(psycopg.Error, match=message):
        get(connection, f"COPY copy_binary TO STDOUT ({options})")
