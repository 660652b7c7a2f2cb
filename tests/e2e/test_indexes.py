"""What an index says is what the table says: random conditions and orders, under writers too; indexes built among writers."""

import random
import threading

import psycopg
import pytest

TABLE = """CREATE TABLE facts (
    id int PRIMARY KEY, a int, b int NOT NULL, c bigint, name text, v varchar(12), k char(4), n numeric, f float8,
    flag boolean, ts timestamptz, d date, iv interval, u uuid, raw bytea, arr int[])"""

INDEXES = [
    "CREATE INDEX facts_a ON facts (a)",
    "CREATE INDEX facts_ab ON facts (a DESC, b)",
    "CREATE INDEX facts_ba ON facts (b, a NULLS FIRST, name DESC NULLS LAST)",
    "CREATE INDEX facts_c ON facts (c DESC NULLS LAST, id)",
    "CREATE INDEX facts_name ON facts (name)",
    "CREATE INDEX facts_lower ON facts (lower(name))",
    "CREATE INDEX facts_lowerv ON facts (lower(v), b DESC)",
    "CREATE INDEX facts_sum ON facts ((a + b) DESC)",
    "CREATE INDEX facts_k ON facts (k, n)",
    "CREATE INDEX facts_n ON facts (n DESC, f)",
    "CREATE INDEX facts_f ON facts (f NULLS FIRST)",
    "CREATE INDEX facts_flag ON facts (flag, a)",
    "CREATE INDEX facts_some ON facts (b) WHERE a > 3",
    "CREATE INDEX facts_bits ON facts (name) WHERE flag AND c IS NOT NULL",
    "CREATE INDEX facts_list ON facts (a, c) WHERE b IN (1, 2, 3)",
    "CREATE INDEX facts_either ON facts (n) WHERE a < 2 OR b = 5",
    "CREATE INDEX facts_null ON facts (id) WHERE name IS NULL",
    "CREATE UNIQUE INDEX facts_unique ON facts (id, (b % 3)) WHERE b <> 4",
    "CREATE INDEX facts_ts ON facts (ts DESC, d)",
    "CREATE INDEX facts_iv ON facts (iv, u)",
    "CREATE INDEX facts_raw ON facts (raw, arr DESC)",
]

VALUES = {
    "a": ["NULL", "-1", "0", "1", "2", "3", "4", "7"],
    "b": ["0", "1", "2", "3", "4", "5"],
    "c": ["NULL", "-5", "0", "3000000000", "7", "2147483647"],
    "name": ["NULL", "''", "'a'", "'A'", "'ab'", "'Ab'", "'b'", "'zz'"],
    "v": ["NULL", "'x'", "'X'", "'xy'", "''"],
    "k": ["NULL", "'q'", "'q  '", "'qq'", "''"],
    "n": ["NULL", "1", "1.00", "-2.5", "'NaN'", "100000000000000000000.1", "0.001"],
    "f": ["NULL", "0", "'-0'", "1.5", "'NaN'", "'Infinity'", "-3"],
    "flag": ["NULL", "true", "false"],
    "ts": ["NULL", "'2020-01-01 00:00+00'", "'2020-01-01 02:00+02'", "'1999-12-31+00'", "'infinity'"],
    "d": ["NULL", "'2020-01-01'", "'1969-01-01'"],
    "iv": ["NULL", "'1 day'", "'24 hours'", "'-1 month'", "'1 month'", "'30 days'"],
    "u": ["NULL", "'00000000-0000-0000-0000-000000000001'", "'ffffffff-0000-0000-0000-000000000000'"],
    "raw": ["NULL", "'\\x00'", "'\\x0000'", "'\\x'", "'\\xff'", "'\\x00ff'"],
    "arr": ["NULL", "'{}'", "'{1}'", "'{1,2}'", "'{1,NULL}'", "'{-1}'"],
}

COMPARISONS = ["=", "<", "<=", ">", ">=", "<>"]

# Expressions that indexes have, with values to compare them with.
EXPRESSIONS = {
    "lower(name)": ["'a'", "'ab'", "'A'", "''"],
    "lower(v)": ["'x'", "'xy'", "'X'"],
    "(a + b)": ["3", "5", "0"],
    "(b % 3)": ["0", "1", "2"],
}


def atom(rng) -> str:
    """A condition that an index may answer, or nearly."""
    kind = rng.randrange(12)
    column = rng.choice(list(VALUES))
    values = [value for value in VALUES[column] if value != "NULL"]
    if kind < 4:
        return f"{column} {rng.choice(COMPARISONS)} {rng.choice(values)}"
    if kind == 4:
        return f"{column} IS {rng.choice(['', 'NOT '])}NULL"
    if kind == 5:
        return f"{column} IN ({', '.join(rng.choices(VALUES[column], k=rng.randint(1, 4)))})"
    if kind == 6:
        low, high = rng.choices(values, k=2)
        return f"{column} BETWEEN {low} AND {high}"
    if kind == 7:
        expression = rng.choice(list(EXPRESSIONS))
        return f"{expression} {rng.choice(COMPARISONS)} {rng.choice(EXPRESSIONS[expression])}"
    if kind == 8:
        pair = rng.choice([("a", "b"), ("b", "a"), ("c", "id"), ("n", "f"), ("a", "c"), ("flag", "a"), ("k", "n"), ("b", "a", "name")])
        values = [rng.choice(VALUES.get(column, ["10", "500"])) for column in pair]
        return f"({', '.join(pair)}) {rng.choice(['<', '<=', '>', '>=', '='])} ({', '.join(values)})"
    if kind == 9:
        return rng.choice(["flag", "NOT flag", "flag IS TRUE", "flag IS FALSE", "flag IS NOT TRUE", "flag IS UNKNOWN", "flag = true"])
    if kind == 10:
        return rng.choice(["a > 3", "a > 4", "a >= 4", "a = 4", "b IN (1, 2)", "b = 2", "a < 2", "a < 1 OR b = 5", "name IS NULL", "b <> 4", "b = 3"])
    return f"id {rng.choice(COMPARISONS)} {rng.randrange(700)}"


def condition(rng) -> str:
    """Some atoms joined."""
    parts = [atom(rng) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.25:
        parts.append(f"({atom(rng)} OR {atom(rng)})")
    if rng.random() < 0.1:
        parts.append(f"NOT ({atom(rng)})")
    return " AND ".join(f"({part})" for part in parts)


def order(rng) -> list[str]:
    """Sort keys, the key of the table last: the order is then complete."""
    columns = rng.choices([*VALUES, "id", "lower(name)", "lower(v)", "(a + b)"], k=rng.randint(0, 3))
    wanted = rng.choice([columns, ["a", "b"], ["b", "a", "name"], ["c", "id"], ["n", "f"], ["ts", "d"], ["flag", "a"]])
    backwards = rng.random() < 0.4
    keys = []
    for column in wanted:
        desc = backwards if rng.random() < 0.8 else not backwards
        nulls = rng.choice(["", "", " NULLS FIRST", " NULLS LAST"])
        keys.append(f"{column}{' DESC' if desc else ''}{nulls}")
    return [*keys, "id"]


def query(rng) -> str:
    """A statement whose answer does not depend on the plan."""
    where = f" WHERE {condition(rng)}" if rng.random() < 0.95 else ""
    kind = rng.randrange(4)
    if kind == 0:
        return f"SELECT count(*), sum(id) FROM facts{where}"
    if kind == 1:
        of = rng.choice(["min(a)", "max(a)", "max(c)", "min(n)", "min(lower(name))", "max(a + b)", "min(name)", "max(ts)::text"])
        return f"SELECT {of} FROM facts{where}"
    limit = f" LIMIT {rng.randint(0, 20)}" if kind == 2 else ""
    return f"SELECT id, a, b, c, name, n::text FROM facts{where} ORDER BY {', '.join(order(rng))}{limit}"


def row(rng, number: int) -> str:
    """A row's values."""
    return f"({number}, {', '.join(rng.choice(VALUES[column]) for column in VALUES)})"


def fill(server, rng, rows: int) -> None:
    """Makes the table; its indexes are made before, between and after its rows."""
    columns = ", ".join(["id", *VALUES])
    statements = ["DROP TABLE IF EXISTS facts", TABLE]
    third = rows // 3
    for part in range(3):
        statements += INDEXES[part::3]
        values = ", ".join(row(rng, number) for number in range(part * third, (part + 1) * third))
        statements.append(f"INSERT INTO facts ({columns}) VALUES {values}")
    server.execute(*statements)


def both_ways(connection, statement: str) -> None:
    """Runs a query with indexes only and without any, and compares."""
    answers = []
    for scan in ("seqscan", "indexscan"):
        connection.execute(f"SET LOCAL enable_{scan} = off")
        rows = connection.execute(statement).fetchall()
        # NaN is equal to itself in SQL only.
        answers.append([tuple("NaN" if value != value else value for value in row) for row in rows])
        plan = "\n".join(line for (line,) in connection.execute(f"EXPLAIN (COSTS OFF) {statement}").fetchall())
        answers.append(plan)
        connection.execute(f"SET LOCAL enable_{scan} = on")
    indexed, how, scanned, _ = answers
    assert indexed == scanned, f"{statement}\nwith\n{how}\ngives {indexed[:10]} instead of {scanned[:10]}"


@pytest.mark.logstead_only
def test_random_queries_agree_with_a_scan(server, seed):
    """Nothing missing, nothing twice, in order: on a quiet table."""
    rng = random.Random(seed)
    fill(server, rng, 300)
    with server.connect() as connection:
        for _ in range(700):
            both_ways(connection, query(rng))
    server.execute("DROP TABLE facts")


@pytest.mark.logstead_only
def test_random_queries_agree_while_keys_move(server, seed):
    """A snapshot's rows are the same through every index while others change keys, delete and insert."""
    rng = random.Random(seed)
    fill(server, rng, 240)
    stop = threading.Event()
    failures = []

    def write(number: int):
        own = random.Random(seed + number)
        try:
            with server.connect(autocommit=True) as connection:
                while not stop.is_set():
                    try:
                        turn(connection, own)
                    except (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected):
                        pass
        except Exception as error:  # A thread's failure must reach the test.
            failures.append(error)

    def turn(connection, own):
        column = own.choice(list(VALUES))
        value = own.choice(VALUES[column])
        where = own.choice([f"id = {own.randrange(500)}", f"id BETWEEN {own.randrange(500)} AND {own.randrange(500)}", condition(own)])
        kind = own.randrange(8)
        if kind < 5:
            connection.execute(f"UPDATE facts SET {column} = {value} WHERE {where}")
        elif kind == 5:
            connection.execute(f"DELETE FROM facts WHERE id = {own.randrange(500)}")
        elif kind == 6:
            columns = ", ".join(["id", *VALUES])
            connection.execute(f"INSERT INTO facts ({columns}) VALUES {row(own, own.randrange(500))} ON CONFLICT DO NOTHING")
        else:
            with connection.transaction(force_rollback=True):
                connection.execute(f"UPDATE facts SET {column} = {value} WHERE {where}")

    writers = [threading.Thread(target=write, args=(number,)) for number in (1, 2)]
    for writer in writers:
        writer.start()
    try:
        with server.connect() as connection:
            for _ in range(40):
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                for _ in range(4):
                    both_ways(connection, query(rng))
                connection.commit()
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert not failures
    with server.connect() as connection:
        for _ in range(200):
            both_ways(connection, query(rng))
    server.execute("DROP TABLE facts")


@pytest.mark.logstead_only
def test_indexes_are_built_among_writers(server, seed):
    """CREATE INDEX while others write: it never blocks them, and the index agrees with the table; a unique one lets no key in twice."""
    rng = random.Random(seed)
    server.execute("DROP TABLE IF EXISTS live", "CREATE TABLE live (id int PRIMARY KEY, k int, t text)")
    server.execute("INSERT INTO live SELECT g, g, 'Row ' || g FROM generate_series(1, 3000) AS g")
    stop = threading.Event()
    failures, done = [], []

    def write(number: int):
        own = random.Random(seed + number)
        count = 0
        try:
            with server.connect(autocommit=True) as connection:
                while not stop.is_set():
                    key = own.randrange(1, 3200)
                    statement = own.choice([
                        f"UPDATE live SET k = {own.randrange(1, 4000)} WHERE id = {key}",
                        f"UPDATE live SET t = 'Row ' || k WHERE id = {key}",
                        f"DELETE FROM live WHERE id = {key}",
                        f"INSERT INTO live VALUES ({key}, {key}, 'Row {key}') ON CONFLICT (id) DO NOTHING",
                    ])
                    try:
                        if own.random() < 0.3:
                            with connection.transaction(force_rollback=own.random() < 0.5):
                                connection.execute(statement)
                                connection.execute(f"UPDATE live SET k = k WHERE id = {own.randrange(1, 3200)}")
                        else:
                            connection.execute(statement)
                    except (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected):
                        pass
                    count += 1
        except Exception as error:  # A thread's failure must reach the test.
            failures.append(error)
        done.append(count)

    writers = [threading.Thread(target=write, args=(number,)) for number in (1, 2, 3)]
    for writer in writers:
        writer.start()
    made = 0
    try:
        with server.connect(autocommit=True) as connection:
            for turn in range(12):
                plain = rng.choice(["(k)", "(lower(t), k DESC)", "(id) WHERE k > 1500", "((k % 7))"])
                connection.execute(f"CREATE INDEX {rng.choice(['', 'CONCURRENTLY '])}live_{turn} ON live {plain}")
                # Duplicates are there or not; either way nothing is left behind by a failure.
                connection.execute("UPDATE live SET k = id WHERE k <> id")
                try:
                    connection.execute(f"CREATE UNIQUE INDEX {rng.choice(['', 'CONCURRENTLY '])}live_u ON live (k)")
                    made += 1
                    assert connection.execute("SELECT k FROM live GROUP BY k HAVING count(*) > 1 AND k IS NOT NULL").fetchall() == []
                    connection.execute("DROP INDEX live_u")
                except (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected):
                    left = connection.execute("SELECT 1 FROM pg_class WHERE relname = 'live_u'").fetchall()
                    assert left == []
                if rng.random() < 0.5:
                    connection.execute(f"DROP INDEX live_{turn}")
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert not failures
    assert all(count > 0 for count in done)
    with server.connect() as connection:
        for where in ["k > 0", "lower(t) > ''", "k > 1500", "k % 7 = 3", "k IS NULL", "id > 0", "k BETWEEN 100 AND 900"]:
            both_ways(connection, f"SELECT count(*), sum(id), sum(k) FROM live WHERE {where}")
        both_ways(connection, "SELECT id, k FROM live ORDER BY k, id")
    server.execute("DROP TABLE live")
