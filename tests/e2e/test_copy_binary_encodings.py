"""COPY in binary form with clients that do not speak UTF-8: the texts in it are theirs, whatever ENCODING says."""

from __future__ import annotations

import struct

import psycopg
import pytest

SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)


def fields(*values: bytes) -> bytes:
    """A stream of one row of these fields."""
    row = b"".join(struct.pack("!i", len(value)) + value for value in values)
    return SIGNATURE + struct.pack("!h", len(values)) + row + struct.pack("!h", -1)


@pytest.mark.parametrize("option", ["", ", ENCODING 'UTF8'", ", ENCODING 'LATIN9'"])
def test_texts_are_in_the_clients_encoding(server, option):
    with server.connect() as connection:
        connection.execute("CREATE TEMP TABLE ce (t text, v varchar, b bytea, a text[], i int)")
        connection.execute("SET client_encoding = 'LATIN9'")
        euro = "10 €".encode("latin9")
        array = struct.pack("!iii", 1, 0, 25) + struct.pack("!ii", 1, 1) + struct.pack("!i", len(euro)) + euro
        sent = fields(euro, b"plain", "€".encode(), array, struct.pack("!i", 7))
        with connection.cursor().copy(f"COPY ce FROM STDIN (FORMAT binary{option})") as copy:
            copy.write(sent)
        with connection.cursor().copy(f"COPY ce TO STDOUT (FORMAT binary{option})") as copy:
            assert b"".join(bytes(piece) for piece in copy) == sent
        connection.execute("SET client_encoding = 'UTF8'")
        row = connection.execute("SELECT t, v, b, a, i FROM ce").fetchone()
        assert row == ("10 €", "plain", "€".encode(), ["10 €"], 7)
        with connection.cursor().copy("COPY ce TO STDOUT (FORMAT binary)") as copy:
            assert "10 €".encode() in b"".join(bytes(piece) for piece in copy)


def test_what_the_encoding_does_not_have_fails(server):
    with server.connect() as connection:
        connection.execute("CREATE TEMP TABLE ce AS SELECT 'žluťoučký'::text AS t")
        connection.execute("SET client_encoding = 'LATIN1'")
        with pytest.raises(psycopg.errors.UntranslatableCharacter):
            with connection.cursor().copy("COPY ce TO STDOUT (FORMAT binary)") as copy:
                list(copy)
