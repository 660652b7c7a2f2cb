"""kill -9 under load, start again, check the books: what was acknowledged or read is there, and nothing is by half."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field

import psycopg
import pytest
from harness import TIMEOUT_S, Server

ACCOUNTS = 64
OPENING = 1000
BATCH = 200
WORKERS = 6
# A fresh data directory every so many rounds, so that both young and grown logs are recovered.
ROUNDS_PER_LIFE = 50
# What a client may be told about a transaction that certainly did not happen.
RETRYABLE = ("40001", "40P01")

SCHEMA = [
    "CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL CHECK (balance > -1000000000))",
    "CREATE TABLE ledger (id bigint PRIMARY KEY, src int NOT NULL, dst int NOT NULL, amount bigint NOT NULL,"
    " n bigserial UNIQUE, note text)",
    "CREATE INDEX ledger_src ON ledger (src, id)",
    "CREATE TABLE batch (id bigint, k int, pad text, PRIMARY KEY (id, k))",
    f"INSERT INTO account SELECT g, {OPENING} FROM generate_series(1, {ACCOUNTS}) AS g",
]


@dataclass
class Outcome:
    """What the clients of one round know."""

    acknowledged: set[int] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)
    batches: set[int] = field(default_factory=set)
    batches_unknown: set[int] = field(default_factory=set)
    seen: set[int] = field(default_factory=set)
    unexpected: list[str] = field(default_factory=list)


@dataclass
class Books:
    """What must be in the database."""

    balances: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(1, ACCOUNTS + 1), OPENING))
    by_source: dict[int, int] = field(default_factory=dict)
    ledger: int = 0
    batches: int = 0


def transfer(connection: psycopg.Connection, rng: random.Random, number: int, pipelined: bool) -> None:
    """One transfer with its ledger row; returns when COMMIT is acknowledged."""
    src, dst = rng.sample(range(1, ACCOUNTS + 1), 2)
    amount = rng.randrange(1, 100)
    changes = sorted([(src, -amount), (dst, amount)])
    if rng.random() < 0.03:
        changes.reverse()  # Now and then a deadlock.
    level = rng.choice(["READ COMMITTED", "REPEATABLE READ"])

    def statements():
        connection.execute(f"BEGIN ISOLATION LEVEL {level}")
        for account, change in changes:
            connection.execute("UPDATE account SET balance = balance + %s WHERE id = %s", (change, account))
        connection.execute(
            "INSERT INTO ledger (id, src, dst, amount, note) VALUES (%s, %s, %s, %s, %s)",
            (number, src, dst, amount, "x" * rng.randrange(200)),
        )
        connection.execute("COMMIT")

    if pipelined:
        with connection.pipeline():
            statements()
    else:
        statements()


def insert_batch(connection: psycopg.Connection, number: int) -> None:
    """Many rows by one statement: all or nothing."""
    connection.execute(f"INSERT INTO batch SELECT %s, g, repeat('p', 100) FROM generate_series(1, {BATCH}) AS g", (number,))


def worker(server: Server, seed: int, first: int, outcome: Outcome, stop: threading.Event) -> None:
    """Transfers until the server dies."""
    rng = random.Random(seed)
    pipelined = rng.random() < 0.5
    number = first
    try:
        # psycopg loses count of its prepared statements when a pipeline fails: no preparing there.
        connection = server.connect(autocommit=True, prepare_threshold=None if pipelined else rng.choice([0, 3, None]))
    except psycopg.OperationalError:
        return
    try:
        while not stop.is_set():
            number += 1
            batch = rng.random() < 0.02
            sure, unsure = (outcome.batches, outcome.batches_unknown) if batch else (outcome.acknowledged, outcome.unknown)
            unsure.add(number)
            try:
                if batch:
                    insert_batch(connection, number)
                else:
                    transfer(connection, rng, number, pipelined)
                sure.add(number)
                unsure.discard(number)
            except psycopg.Error as error:
                if connection.closed or error.sqlstate is None or error.sqlstate[:2] in ("08", "57"):
                    return  # The outcome is unknown, the server is gone.
                unsure.discard(number)
                if error.sqlstate not in RETRYABLE:
                    outcome.unexpected.append(f"{error.sqlstate}: {error}")
                    return
                connection.execute("ROLLBACK")
    except psycopg.OperationalError:
        pass
    finally:
        connection.close()


def reader(server: Server, seed: int, outcome: Outcome, stop: threading.Event) -> None:
    """Reads the newest ledger rows: what a client was shown as committed must survive as well."""
    rng = random.Random(seed)
    try:
        with server.connect(autocommit=True) as connection:
            while not stop.is_set():
                rows = connection.execute("SELECT id FROM ledger ORDER BY n DESC LIMIT %s", (rng.randrange(1, 10),)).fetchall()
                outcome.seen.update(number for (number,) in rows)
                if rng.random() < 0.2:
                    total = connection.execute("SELECT sum(balance) FROM account").fetchone()[0]
                    if total != ACCOUNTS * OPENING:
                        outcome.unexpected.append(f"a reader saw a total of {total}")
    except psycopg.OperationalError:
        pass


def load(server: Server, rng: random.Random, base: int) -> Outcome:
    """Load from several clients, and kill -9 in the midst of it."""
    outcome, stop = Outcome(), threading.Event()
    threads = [
        threading.Thread(target=worker, args=(server, rng.random(), base + i * 100_000_000, outcome, stop))
        for i in range(WORKERS)
    ]
    threads.append(threading.Thread(target=reader, args=(server, rng.random(), outcome, stop)))
    for thread in threads:
        thread.start()
    time.sleep(rng.uniform(0.02, 0.6))
    server.kill()
    stop.set()
    for thread in threads:
        thread.join(TIMEOUT_S)
        assert not thread.is_alive(), "a client hangs although the server is dead"
    assert not outcome.unexpected, outcome.unexpected
    return outcome


def check(server: Server, rng: random.Random, base: int, outcome: Outcome, books: Books) -> None:
    """The database holds what it must, and the books are brought up to date with what it may hold."""
    with server.connect(autocommit=True) as connection:
        rows = connection.execute("SELECT id, src, dst, amount FROM ledger WHERE id >= %s", (base,)).fetchall()
        found = {row[0] for row in rows}
        assert len(found) == len(rows), "a ledger row is there twice"
        assert not outcome.acknowledged - found, f"acknowledged and lost: {sorted(outcome.acknowledged - found)[:20]}"
        seen = {number for number in outcome.seen if number >= base}
        assert not seen - found, f"shown to a reader and lost: {sorted(seen - found)[:20]}"
        surplus = found - outcome.acknowledged - outcome.unknown
        assert not surplus, f"never committed, yet there: {sorted(surplus)[:20]}"
        for _, src, dst, amount in rows:
            books.balances[src] -= amount
            books.balances[dst] += amount
            books.by_source[src] = books.by_source.get(src, 0) + 1
        books.ledger += len(rows)
        assert dict(connection.execute("SELECT id, balance FROM account").fetchall()) == books.balances
        assert connection.execute("SELECT count(*), count(DISTINCT n) FROM ledger").fetchone() == (books.ledger, books.ledger)
        for src in rng.sample(range(1, ACCOUNTS + 1), 4):
            by_index = connection.execute("SELECT count(*) FROM ledger WHERE src = %s", (src,)).fetchone()[0]
            assert by_index == books.by_source.get(src, 0), f"the index on src disagrees for {src}"
        batches = dict(connection.execute("SELECT id, count(*) FROM batch WHERE id >= %s GROUP BY id", (base,)).fetchall())
        assert set(batches.values()) <= {BATCH}, f"half a batch: {batches}"
        assert outcome.batches <= set(batches) <= outcome.batches | outcome.batches_unknown
        books.batches += len(batches)
        assert connection.execute("SELECT count(*) FROM batch").fetchone() == (books.batches * BATCH,)


def kill_during_start(server: Server, rng: random.Random) -> None:
    """A start that does not get to its end."""
    server.start(wait=False)
    time.sleep(rng.uniform(0.0, 0.15))
    server.kill()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_crash(server_kind, tmp_path, seed, request):
    rounds = request.config.getoption("--crash-rounds") or (200 if request.config.getoption("--long") else 30)
    transfers = starts = 0
    server = books = None
    for number in range(rounds):
        rng = random.Random(seed * 1_000_003 + number)
        base = (number + 1) * 1_000_000_000
        if number % ROUNDS_PER_LIFE == 0:
            if server:
                server.stop()
            server, books = server_kind(tmp_path / f"life{number // ROUNDS_PER_LIFE}"), Books()
            server.start()
            server.execute(*SCHEMA)
        try:
            outcome = load(server, rng, base)
            transfers += len(outcome.acknowledged)
            while rng.random() < 0.25:
                kill_during_start(server, rng)
                starts += 1
            server.start()
            check(server, rng, base, outcome, books)
        except BaseException as error:
            server.kill()
            raise AssertionError(
                f"round {number} of --seed {seed}, data in {server.data}: {error}\n{server.output_text()[-3000:]}"
            ) from error
    assert server.stop() == 0
    print(f"{rounds} rounds, {transfers} acknowledged transfers, {starts} starts killed; seed {seed}")


# What a client does with a table, step by step, and how to see which step the table has reached.
DDL_STEPS = [
    "BEGIN; CREATE TABLE {t} (id serial PRIMARY KEY, v text NOT NULL); INSERT INTO {t} (v) VALUES ('a'), ('b'), ('c'); COMMIT",
    "CREATE INDEX {t}_v ON {t} (v)",
    "ALTER TABLE {t} ADD COLUMN extra int DEFAULT 7",
    "UPDATE {t} SET extra = 8",
    "ALTER TABLE {t} DROP COLUMN v",
    "DROP TABLE {t}",
]


def ddl_state(connection: psycopg.Connection, table: str) -> int:
    """How many of the steps a table has taken; 0 is also what it is after the last."""
    if not connection.execute("SELECT 1 FROM pg_class WHERE relname = %s", (table,)).fetchone():
        return 0
    columns = [
        name
        for (name,) in connection.execute(
            "SELECT a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
            " WHERE c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
            (table,),
        )
    ]
    rows = connection.execute(f"SELECT * FROM {table} ORDER BY id").fetchall()
    indexed = connection.execute("SELECT 1 FROM pg_class WHERE relname = %s", (f"{table}_v",)).fetchone() is not None
    plain = [(1, "a"), (2, "b"), (3, "c")]
    for state, expected in enumerate(
        [
            (["id", "v"], False, plain),
            (["id", "v"], True, plain),
            (["id", "v", "extra"], True, [(*row, 7) for row in plain]),
            (["id", "v", "extra"], True, [(*row, 8) for row in plain]),
            (["id", "extra"], False, [(1, 8), (2, 8), (3, 8)]),
        ],
        start=1,
    ):
        if (columns, indexed, rows) == expected:
            if "v" in columns:
                assert connection.execute(f"SELECT id FROM {table} WHERE v = 'b'").fetchall() == [(2,)]
            return state
    raise AssertionError(f"{table} is in no state that a client left it in: {columns}, index {indexed}, {rows}")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ddl_crash(private_server, seed):
    """DDL is all or nothing across a crash, and what it built can be used."""
    server = private_server
    server.start()
    reached: dict[str, int] = {}

    def work(name: str, steps_seed: float, stop: threading.Event):
        rng = random.Random(steps_seed)
        try:
            with server.connect(autocommit=True) as connection:
                serial = 0
                while not stop.is_set():
                    table = f"ddl_{name}_{serial}"
                    for step, statement in enumerate(DDL_STEPS, start=1):
                        connection.execute(statement.format(t=table))
                        reached[table] = step
                        if rng.random() < 0.05:
                            break
                    serial += 1
        except psycopg.OperationalError:
            pass

    for number in range(20):
        rng = random.Random(seed * 1_000_003 + number)
        reached.clear()
        stop = threading.Event()
        threads = [threading.Thread(target=work, args=(f"{number}_{i}", rng.random(), stop)) for i in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(rng.uniform(0.05, 0.5))
        server.kill()
        stop.set()
        for thread in threads:
            thread.join(TIMEOUT_S)
        while rng.random() < 0.3:
            kill_during_start(server, rng)
        server.start()
        with server.connect(autocommit=True) as connection:
            for table, step in reached.items():
                state = ddl_state(connection, table)
                allowed = {step % len(DDL_STEPS), (step + 1) % len(DDL_STEPS)}
                assert state in allowed, f"round {number}, --seed {seed}: {table} was at step {step}, is at {state}"
            listed = connection.execute("SELECT relname FROM pg_class WHERE relname LIKE 'ddl%%' AND relkind = 'r'").fetchall()
            for (table,) in listed:
                connection.execute(f"DROP TABLE {table}")
    assert server.stop() == 0
