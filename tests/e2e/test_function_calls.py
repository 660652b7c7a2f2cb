"""The function call message: one function by its number, without a query."""

import struct

import pytest
from rawwire import Wire, error, kinds, message, query, rows

INT4PL, TEXTCAT, VERSION, LO_CREATE, LO_OPEN, LOREAD = 177, 1258, 89, 715, 952, 954


@pytest.fixture
def wire(server):
    with Wire(server) as connection:
        yield connection


def call(function: int, *values, formats=(1,), result: int = 1) -> bytes:
    """FunctionCall; values are bytes or None."""
    body = struct.pack("!I", function) + struct.pack(f"!h{len(formats)}h", len(formats), *formats) + struct.pack("!h", len(values))
    for value in values:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return message("F", body + struct.pack("!h", result))


def answer(messages) -> bytes | None:
    """The result in the answer."""
    payload = next(m.payload for m in messages if m.kind == "V")
    (length,) = struct.unpack_from("!i", payload)
    return None if length < 0 else payload[4:]


def number(value: int) -> bytes:
    return struct.pack("!i", value)


def test_results_and_formats(wire):
    got = wire.ask(call(INT4PL, number(40), number(2)))
    assert kinds(got) == "VZ" and answer(got) == number(42)
    assert answer(wire.ask(call(INT4PL, b"40", b"2", formats=(), result=0))) == b"42"
    assert answer(wire.ask(call(INT4PL, b"40", number(2), formats=(0, 1), result=0))) == b"42"
    assert answer(wire.ask(call(TEXTCAT, "kä".encode(), b"se"))).decode() == "käse"
    assert answer(wire.ask(call(TEXTCAT, None, b"se"))) is None
    assert answer(wire.ask(call(VERSION, result=0, formats=()))).startswith(b"PostgreSQL 15")
    wire.ask(query("SET client_encoding = 'LATIN1'"))
    assert answer(wire.ask(call(TEXTCAT, b"k\xe4", b"se", result=0, formats=(0,)))) == b"k\xe4se"
    assert answer(wire.ask(call(TEXTCAT, b"k\xe4", b"se"))) == b"k\xe4se"


def test_functions_of_users(wire):
    wire.ask(query("CREATE OR REPLACE FUNCTION fc_twice(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN $1 * 2; END'"))
    oid = int(rows(wire.ask(query("SELECT 'fc_twice'::regproc::oid")))[0][0])
    assert answer(wire.ask(call(oid, number(21)))) == number(42)
    wire.ask(query("DROP FUNCTION fc_twice(int)"))
    assert error(wire.ask(call(oid, number(21))))["C"] == "42883"


def test_errors_end_the_request_not_the_connection(wire):
    missing = wire.ask(call(999_999))
    assert kinds(missing) == "EZ" and error(missing)["C"] == "42883"
    few = wire.ask(call(INT4PL, number(1)))
    assert kinds(few) == "EZ" and error(few)["C"] == "08P01"
    short = wire.ask(message("F", struct.pack("!Ihh", INT4PL, 0, 2)))
    assert kinds(short) == "EZ" and error(short)["C"] == "08P01"
    assert error(wire.ask(call(INT4PL, b"x", b"2", formats=(), result=0)))["C"] == "22P02"
    assert error(wire.ask(call(INT4PL, number(2**31 - 1), number(1))))["C"] == "22003"
    assert answer(wire.ask(call(INT4PL, number(1), number(2)))) == number(3)


def test_it_is_a_statement_of_the_transaction(wire):
    wire.ask(query("BEGIN"))
    oid = answer(wire.ask(call(LO_CREATE, number(0))))
    opened = wire.ask(call(LO_OPEN, oid, number(0x60000)))
    assert opened[-1].payload == b"T" and answer(opened) == number(0)
    assert answer(wire.ask(call(LOREAD, number(0), number(10)))) == b""
    failed = wire.ask(call(LOREAD, number(5), number(10)))
    assert error(failed)["C"] == "42704" and failed[-1].payload == b"E"
    assert error(wire.ask(call(INT4PL, number(1), number(2))))["C"] == "25P02"
    assert wire.ask(query("ROLLBACK"))[-1].payload == b"I"
    assert error(wire.ask(call(LO_OPEN, oid, number(0x60000))))["C"] == "42704"
    # Outside of a block each call is a transaction, which its descriptors end with.
    oid = answer(wire.ask(call(LO_CREATE, number(0))))
    assert answer(wire.ask(call(LO_OPEN, oid, number(0x60000)))) == number(0)
    assert error(wire.ask(call(LOREAD, number(0), number(10))))["C"] == "42704"
    wire.ask(query(f"SELECT lo_unlink({struct.unpack('!I', oid)[0]})"))
