"""Every built-in function, called with huge, deep and hostile arguments under a small memory budget and a time limit of a second, while others ask.

The server lives, everybody is answered, and memory stays under the budget and a fifth of it.
"""

from __future__ import annotations

import itertools
import os
import threading
import time

import psycopg
import pytest
from harness import LogsteadServer

pytestmark = [pytest.mark.logstead_only, pytest.mark.long]

BUDGET_MB = 256
ASKERS = 16
#: One call in so many, from one of them on: for a look at a part.
ONE_IN, FIRST = int(os.environ.get("ROBUSTNESS_ONE_IN", "1")), int(os.environ.get("ROBUSTNESS_FIRST", "0"))
#: What a call may answer with is anything but these: the session's end, and a broken rule of the server's own.
NEVER = ("XX000", "57P02")
#: PostgreSQL gives XX000 for these, too.
INTERNAL = ("unrecognized object type abbreviation", "unrecognized weight", "cache lookup failed for text search parser")

TEXTS = [
    "repeat('a,', 3000000)",
    "repeat('((a{1,60}', 2000)",
    "repeat('[', 100000)",
    "repeat(chr(1) || '\"''\\', 1000000)",
    "'%1$999999999s'",
    "repeat('äöü€', 1000000)",
]
NUMBERS = ["2147483647", "(-2147483648)", "0", "100000000", "1"]
ARGUMENTS = {
    "text": TEXTS,
    "varchar": [f"{text}::varchar" for text in TEXTS],
    "bpchar": [f"{text}::bpchar" for text in TEXTS],
    "name": ["repeat('n', 63)::name"],
    "unknown": TEXTS,
    "cstring": TEXTS,
    "bytea": ["repeat('x', 5000000)::bytea", "decode(repeat('00', 1000000), 'hex')", "''::bytea"],
    "int2": ["32767::int2", "(-32768)::int2", "0::int2"],
    "int4": NUMBERS,
    "int8": ["9223372036854775807", "(-9223372036854775808)", "0::int8", "1000000000::int8"],
    "numeric": ["repeat('9', 100000)::numeric", "'1e131071'::numeric", "'1e-16383'::numeric", "'NaN'::numeric"],
    "float4": ["'Infinity'::float4", "'1e38'::float4"],
    "float8": ["'Infinity'::float8", "1e308::float8", "'NaN'::float8"],
    "bool": ["true"],
    "json": ["('[' || repeat('1,', 200000) || '1]')::json", "(repeat('[', 1000) || repeat(']', 1000))::json"],
    "jsonb": [
        "('[' || repeat('1,', 200000) || '1]')::jsonb",
        "(repeat('[', 1000) || repeat(']', 1000))::jsonb",
        "('[' || repeat('1e100000,', 2000) || '1]')::jsonb",
    ],
    "jsonpath": ["'$.** ? (@ > 0).** ? (exists($[*] ? (@ > 1)))'::jsonpath"],
    "_text": ["array_fill('a'::text, ARRAY[500000])", "array_fill(repeat('x', 1000), ARRAY[100000])"],
    "_int4": ["array_fill(1000, ARRAY[6])", "array_fill(1, ARRAY[500000])"],
    "anyarray": ["array_fill(1, ARRAY[500000])", "array_fill(repeat('x', 1000), ARRAY[100000])"],
    "anycompatiblearray": ["array_fill(1, ARRAY[500000])"],
    "anyelement": ["1", "repeat('x', 3000000)"],
    "anycompatible": ["1"],
    "anynonarray": ["1"],
    "any": ["repeat('x', 3000000)"],
    "record": ["row(repeat('x', 3000000), row(repeat('\"', 1000000)))"],
    "date": ["'infinity'::date", "date '5874897-12-31'"],
    "timestamp": ["'-infinity'::timestamp", "timestamp '294276-12-31 23:59:59'"],
    "timestamptz": ["'infinity'::timestamptz", "timestamptz '4713-01-01 BC'"],
    "time": ["time '24:00'"],
    "timetz": ["timetz '24:00+14'"],
    "interval": ["interval '178000000 years'", "interval '1 microsecond'", "interval '-1 month'"],
    "uuid": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid"],
    "bit": ["repeat('1', 1000000)::bit(1000000)"],
    "varbit": ["repeat('1', 10000000)::varbit"],
    "inet": ["'::/0'::inet"],
    "cidr": ["'0/0'::cidr"],
    "money": ["92233720368547758.07::money"],
    "tsvector": ["array_to_tsvector(ARRAY(SELECT 'w' || g FROM generate_series(1, 20000) g))"],
    "tsquery": ["repeat('!', 500)::text::tsquery", "('a' || repeat(' & a', 20000))::tsquery"],
    "regconfig": ["'english'::regconfig"],
    "oid": ["1::oid"],
    "regclass": ["'pg_class'::regclass"],
    "char": ["'x'::\"char\""],
    "int4range": ["int4range(-2147483648, 2147483647)"],
    "anyrange": ["int4range(1, 2147483647)"],
    "anymultirange": ["int4multirange(int4range(1, 2147483647))"],
}
#: They wait, end what others rely on, or change the server, by what they are for.
LEFT_OUT = ("pg_sleep", "pg_terminate", "pg_cancel", "pg_advisory", "pg_promote", "pg_reload", "lo_", "dblink", "logstead_")


def calls(connection):
    """Statements that call each function with each argument in turn, the others being its type's first."""
    types = dict(connection.execute("SELECT oid, typname FROM pg_type").fetchall())
    functions = connection.execute(
        "SELECT proname, proargtypes::text, provariadic FROM pg_proc WHERE prokind = 'f' ORDER BY proname, oid"
    ).fetchall()
    for name, arguments, variadic in functions:
        if name.startswith(LEFT_OUT):
            continue
        kinds = [types.get(int(oid)) for oid in arguments.split()]
        if variadic and kinds:
            kinds[-1] = types.get(variadic)
        if any(kind not in ARGUMENTS for kind in kinds):
            continue
        width = max((len(ARGUMENTS[kind]) for kind in kinds), default=1)
        for turn in range(width):
            given = [ARGUMENTS[kind][(turn + place) % len(ARGUMENTS[kind])] for place, kind in enumerate(kinds)]
            shown = ", ".join(given)
            yield f'SELECT count(length(x::text)) FROM (SELECT pg_catalog."{name}"({shown}) AS x) y'


def peak_mb(server) -> float:
    """The most memory that the process has had, without the program itself, which nobody asked for."""
    with open(f"/proc/{server.process.pid}/status") as status:
        kept = dict(line.split(":", 1) for line in status)
    return (int(kept["VmHWM"].split()[0]) - int(kept["RssFile"].split()[0])) / 1024


@pytest.mark.timeout(7200)
def test_no_function_stops_the_server(tmp_path):
    server = LogsteadServer(tmp_path)
    server.start(arguments=("--memory", f"{BUDGET_MB}MB", "--workers", "2"))
    waits: list[float] = []
    ended = threading.Event()

    def ask():
        with server.connect(autocommit=True) as connection:
            while not ended.is_set():
                began = time.monotonic()
                assert connection.execute("SELECT 1").fetchone() == (1,)
                waits.append(time.monotonic() - began)
                time.sleep(0.01)

    askers = [threading.Thread(target=ask, daemon=True) for _ in range(ASKERS)]
    for asker in askers:
        asker.start()
    wrong: list[str] = []
    late: list[str] = []
    large: list[str] = []
    asked, peak = 0, 0.0
    try:
        connection = server.connect(autocommit=True)
        connection.execute("SET statement_timeout = '1s'")
        for statement in itertools.islice(calls(connection), FIRST, None, ONE_IN):
            asked += 1
            began = time.monotonic()
            try:
                connection.execute(statement).fetchall()
            except psycopg.Error as error:
                if connection.closed or not server.running:
                    raise AssertionError(f"the server or the session ended: {statement}\n{server.output_text()[-2000:]}") from error
                if error.sqlstate in NEVER and not str(error).startswith(INTERNAL):
                    wrong.append(f"{error.sqlstate} {error}: {statement}")
            took = time.monotonic() - began
            if took > 3:
                late.append(f"{took:.1f} s: {statement}")
            now = peak_mb(server)
            if now > max(peak, BUDGET_MB * 1.2):
                large.append(f"{now:.0f} MB: {statement}")
            peak = max(peak, now)
    finally:
        ended.set()
    for asker in askers:
        asker.join(30)
    assert asked > 1000 // ONE_IN, asked
    waits.sort()
    print(f"{asked} calls, peak {peak:.0f} MB, {len(waits)} answers, p99 {waits[len(waits) * 99 // 100]:.3f} s, longest {waits[-1]:.3f} s")
    print("\n".join(late + [line for line in server.output_text().splitlines() if "has held worker" in line]))
    assert not wrong, "\n".join(wrong)
    assert not large, "\n".join(large)
    assert server.stop() == 0
