"""No value ends the server: what functions build is bounded, charged to the memory budget, and refused with PostgreSQL's SQLSTATE or 53200."""

from __future__ import annotations

import threading
from pathlib import Path

import psycopg
import pytest

pytestmark = pytest.mark.logstead_only

BUDGET_MB = 256
REFUSED = ("53200", "54000")


def nested_rows(levels: int) -> str:
    return "SELECT " + "row(" * levels + "1" + ")" * levels


#: Statements whose values would not fit: each is refused, and none of them ends the server.
TOO_LARGE = {
    "doubling a string": "DO $$ DECLARE s text := 'x'; BEGIN FOR i IN 1..40 LOOP s := s || s; END LOOP; END $$",
    "doubling an array": "DO $$ DECLARE s int[] := '{1}'; BEGIN FOR i IN 1..40 LOOP s := s || s; END LOOP; END $$",
    "doubling an array by its elements": """
        DO $$ DECLARE s text := 'x'; BEGIN FOR i IN 1..40 LOOP s := array_to_string(array[s, s], ','); END LOOP; END $$""",
    "rows in rows as text": f"SELECT ({nested_rows(60)})::text",
    "rows in rows to the client": nested_rows(60),
    "concatenation": "SELECT length(repeat('x', 90000000) || repeat('y', 90000000))",
    "bytes": "SELECT length(repeat('x', 90000000)::bytea || repeat('y', 90000000)::bytea)",
    "quote_literal": "SELECT length(quote_literal(repeat('''', 80000000)))",
    "quote_ident": "SELECT length(quote_ident(repeat('\"', 80000000)))",
    "quote_nullable": "SELECT length(quote_nullable(repeat('''', 80000000)))",
    "regexp_replace": "SELECT length(regexp_replace(repeat('x', 500000), 'x', repeat('y', 1000), 'g'))",
    "string_to_array": "SELECT cardinality(string_to_array(repeat('a,', 5000000), ','))",
    "string_to_table": "SELECT count(*) FROM string_to_table(repeat('a,', 5000000), ',')",
    "regexp_split_to_array": "SELECT cardinality(regexp_split_to_array(repeat('a,', 5000000), ','))",
    "regexp_matches": "SELECT count(*) FROM regexp_matches(repeat('a,', 3000000), 'a', 'g')",
    "a row in a row": "SELECT length((1, row(1, row(2, row(repeat('\"', 30000000)))))::text)",
    "format": "SELECT length(format('%500000000s%500000000s%500000000s%500000000s', 'x', 'y', 'z', 'w'))",
    "encode": "SELECT length(encode(decode(repeat('ff', 40000000), 'hex'), 'escape'))",
    "to_json": "SELECT length(to_json(repeat(chr(1), 40000000))::text)",
    "overlay": "SELECT length(overlay(repeat('x', 90000000) PLACING repeat('y', 90000000) FROM 1 FOR 0))",
    "unistr": "SELECT length(unistr(repeat('\\0061', 20000000)))",
    "a recursive query": """
        WITH RECURSIVE r(s, n) AS (SELECT repeat('x', 1000), 1 UNION SELECT s || s, n + 1 FROM r WHERE n < 40)
        SELECT max(length(s)) FROM r""",
    "jsonb_pretty": """
        SELECT length(jsonb_pretty((
            SELECT jsonb_agg((repeat('[', 1000) || repeat(']', 1000))::jsonb) FROM generate_series(1, 200))))""",
    "numbers in jsonb": """
        SELECT length((SELECT jsonb_agg('1e131071'::numeric) FROM generate_series(1, 3000))::text)""",
    "numbers in an array": "SELECT length(array_fill('1e131071'::numeric, ARRAY[3000])::text)",
    "a wide tree of jsonb": "SELECT length(('[' || repeat('1,', 5000000) || '1]')::jsonb::text)",
    "a wide array": "SELECT cardinality(('{' || repeat('1,', 5000000) || '1}')::int[])",
    "array_fill": "SELECT cardinality(array_fill(1, ARRAY[130000000]))",
    "string_agg": "SELECT length(string_agg(repeat('x', 10000000), '')) FROM generate_series(1, 30)",
    "replace": "SELECT length(replace(repeat('x', 1000000), 'x', repeat('y', 1000)))",
    "repeat": "SELECT length(repeat('x', 2000000000))",
    "lpad": "SELECT length(lpad('x', 2000000000))",
    "to_char": "SELECT length(to_char(1.5, repeat('9', 100000000)))",
    "one value to the client": "SELECT repeat('x', 200000000)",
    "many columns to the client": "SELECT s, s, s, s, s, s, s, s FROM (SELECT repeat('x', 40000000) s) x",
}

#: Patterns that are too large when their repetitions are written out, and ones that PostgreSQL takes.
PATTERNS = {
    "SELECT repeat('xyzzy', 15000) ~ repeat('xyzzy', 15000)": "2201B",
    "SELECT repeat('a', 1000) ~ '((a{1,60}){1,60}){1,60}b'": "2201B",
    "SELECT regexp_replace('aaa', '(((a{1,90}){1,90}){1,90}){1,90}', 'b')": "2201B",
    "SELECT repeat('a', 100) ~ '(a{1,60}){1,60}b'": False,
    "SELECT repeat('xyzzy', 2000) ~ repeat('xyzzy', 2000)": True,
    "SELECT (repeat('ab', 5000000) || 'c') ~ 'b+c$'": True,
    "SELECT repeat('ab', 5000000) ~ '(a|b)+c'": False,
    "SELECT regexp_count(repeat('ab', 1000), '(a)(b)?')": 1000,
    "SELECT (repeat('äb', 3000000) || ' x') ~ '\\mx'": True,
}

#: What fits is answered.
FITS = {
    "SELECT length(repeat('x', 50000000))": 50_000_000,
    "SELECT length(repeat('x', 20000000) || repeat('y', 20000000))": 40_000_000,
    "SELECT split_part(repeat('a,', 20000000), ',', 20000001)": "",
    "SELECT split_part(repeat('a,', 2000000) || 'z', ',', -1)": "z",
    "SELECT md5(repeat('x', 50000000))": "f93183ac51243e1e98730836550aaa53",
    "SELECT length(upper(repeat('äb', 10000000)))": 20_000_000,
    "SELECT strpos(repeat('a', 3000000) || 'äbc', 'bc')": 3_000_002,
    "SELECT md5(replace(repeat('ab', 1000000), 'ba', 'x'))": "2ff50403572b58f0117be3f274bb0ec3",
    "SELECT cardinality(string_to_array(repeat('a,', 300000), ','))": 300_001,
}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A server with little memory."""
    from harness import LogsteadServer

    server = LogsteadServer(tmp_path_factory.mktemp("values"))
    server.start(arguments=("--memory", f"{BUDGET_MB}MB", "--workers", "2"))
    yield server
    assert server.stop() == 0


def refusal(server, statement: str) -> str | None:
    with server.connect(autocommit=True) as connection:
        connection.execute("SET statement_timeout = '100s'")
        try:
            connection.execute(statement).fetchall()
        except psycopg.errors.DatabaseError as error:
            assert not connection.closed, error
            return error.sqlstate
    return None


@pytest.mark.timeout(120)
@pytest.mark.parametrize("statement", TOO_LARGE.values(), ids=TOO_LARGE.keys())
def test_a_value_that_is_too_large_is_refused(small, statement):
    assert refusal(small, statement) in REFUSED
    assert small.execute("SELECT 1") == [(1,)]


@pytest.mark.timeout(120)
def test_values_that_fit_are_answered(small):
    with small.connect(autocommit=True) as connection:
        for statement, answer in FITS.items():
            assert connection.execute(statement).fetchone() == (answer,), statement


@pytest.mark.timeout(240)
def test_patterns_are_bounded(small):
    with small.connect(autocommit=True) as connection:
        for statement, answer in PATTERNS.items():
            try:
                found = connection.execute(statement).fetchone()[0]
            except psycopg.errors.DatabaseError as error:
                found = error.sqlstate
            assert found == answer, statement


@pytest.mark.timeout(180)
def test_several_at_once_share_the_budget(small):
    """Each alone fits, all of them do not: the last to ask are refused, and what they held is given back."""
    statement = "SELECT length(s), pg_sleep(3), length(s) FROM (SELECT repeat('x', 70000000) AS s OFFSET 0) x"
    answers: list[str | None] = []
    clients = [threading.Thread(target=lambda: answers.append(refusal(small, statement))) for _ in range(6)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert set(answers) == {None, "53200"}, answers
    assert refusal(small, statement) is None


def test_the_process_keeps_to_the_budget(small):
    """Buffers that grew, and were refused or freed, are the system's again: what the process had at most, its program aside, is the budget and a fifth."""
    process = Path(f"/proc/{small.process.pid}")
    # Nothing of it is computed before it runs.
    number = "(SELECT '1e131071'::numeric AS n OFFSET 0) x"
    # The kernel's peak begins anew here.
    (process / "clear_refs").write_text("5")
    for statement in (
        # Thousands of small pieces, which an allocator keeps when they are freed, and then one large piece.
        f"SELECT cardinality(array_fill(n, ARRAY[3000])) FROM {number}",
        f"SELECT length(repeat(n::text, 700)) FROM {number}",
        TOO_LARGE["numbers in an array"],
        "SELECT length(array_to_string(array_fill(1, ARRAY[500000]), repeat('x', 1000000)))",
        "SELECT length(ts_headline(repeat('a,', 3000000), ('a' || repeat(' & a', 2000))::tsquery))",
        "SELECT length(rpad('x', 100000000))",
    ):
        for _ in range(3):
            refusal(small, statement)
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    peak_kb, program_kb = (int(status[key].split()[0]) for key in ("VmHWM", "RssFile"))
    assert peak_kb - program_kb < BUDGET_MB * 1024 * 6 // 5, f"{peak_kb >> 10} MB, {program_kb >> 10} MB of the program"
