"""Many sessions on few rows: no update is lost, and what is acknowledged adds up."""

import random
import threading

import psycopg
import pytest

THREADS = 8
EACH = 100

BODIES = {
    "alone": ["UPDATE hot SET n = n + 1 WHERE id = 1"],
    "in-transaction": ["BEGIN", "UPDATE hot SET n = n + 1 WHERE id = 1", "COMMIT"],
    "two-rows": ["BEGIN", "UPDATE hot SET n = n + 1 WHERE id = 1", "UPDATE hot SET n = n + 1 WHERE id = 2", "COMMIT"],
    "locked-first": ["BEGIN", "SELECT n FROM hot WHERE id = 1 FOR UPDATE", "UPDATE hot SET n = n + 1 WHERE id = 1", "COMMIT"],
    "by-scan": ["BEGIN", "UPDATE hot SET n = n + 1 WHERE v = 'x'", "COMMIT"],
    "upsert": ["BEGIN", "INSERT INTO hot VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET n = hot.n + excluded.n", "COMMIT"],
    "repeatable-read": ["BEGIN ISOLATION LEVEL REPEATABLE READ", "UPDATE hot SET n = n + 1 WHERE id = 1", "COMMIT"],
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_counter(server, body):
    """Concurrent increments of one row: the counter ends at the number that was acknowledged."""
    server.execute("DROP TABLE IF EXISTS hot", "CREATE TABLE hot (id int PRIMARY KEY, n int NOT NULL, v text DEFAULT 'x')")
    server.execute("INSERT INTO hot VALUES (1, 0, 'x'), (2, 0, 'y')")
    acknowledged, failures = [], []

    def work():
        done = 0
        try:
            with server.connect(autocommit=True) as connection:
                for _ in range(EACH):
                    try:
                        for statement in body:
                            connection.execute(statement)
                        done += 1
                    except psycopg.errors.SerializationFailure:
                        connection.execute("ROLLBACK")
        except Exception as error:  # A thread's failure must reach the test.
            failures.append(error)
        acknowledged.append(done)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    if "REPEATABLE" not in body[0]:
        assert sum(acknowledged) == THREADS * EACH
    assert server.execute("SELECT n FROM hot WHERE id = 1") == [(sum(acknowledged),)]
    server.execute("DROP TABLE hot")


def test_queue_with_skip_locked(server):
    """Workers take jobs with SKIP LOCKED: each job is done once."""
    server.execute("DROP TABLE IF EXISTS job", "CREATE TABLE job (id int PRIMARY KEY, done_by int)")
    server.execute("INSERT INTO job SELECT g, NULL FROM generate_series(1, 200) AS g")
    taken, failures = [], []

    def work(number):
        try:
            with server.connect() as connection:
                while True:
                    row = connection.execute(
                        "SELECT id FROM job WHERE done_by IS NULL ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
                    ).fetchone()
                    if row is None:
                        return
                    connection.execute("UPDATE job SET done_by = %s WHERE id = %s", (number, row[0]))
                    connection.commit()
                    taken.append(row[0])
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(taken) == len(set(taken)) == 200 - server.execute("SELECT count(*) FROM job WHERE done_by IS NULL")[0][0]
    server.execute("DROP TABLE job")


def test_snapshots_add_up(server, seed):
    """While transfers run, every snapshot sees the same total, by whatever path it reads."""
    server.execute("DROP TABLE IF EXISTS sums", "CREATE TABLE sums (id int PRIMARY KEY, n int, tag text)")
    server.execute("INSERT INTO sums SELECT g, 100, 't' || (g % 3) FROM generate_series(1, 20) AS g", "CREATE INDEX sums_tag ON sums (tag)")
    stop, failures = threading.Event(), []

    def transfer(number):
        rng = random.Random(seed + number)
        try:
            with server.connect(autocommit=True) as connection:
                while not stop.is_set():
                    first, second = sorted(rng.sample(range(1, 21), 2))
                    with connection.transaction():
                        connection.execute("UPDATE sums SET n = n - 1, tag = 't' || ((id + n) %% 3) WHERE id = %s", (first,))
                        connection.execute("UPDATE sums SET n = n + 1 WHERE id = %s", (second,))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=transfer, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        with server.connect(autocommit=True) as connection:
            for _ in range(150):
                assert connection.execute("SELECT sum(n), count(*) FROM sums").fetchone() == (2000, 20)
                assert connection.execute("SELECT sum(n) FROM sums WHERE tag IN ('t0', 't1', 't2')").fetchone() == (2000,)
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            first = connection.execute("SELECT id, n, tag FROM sums ORDER BY id").fetchall()
            for _ in range(20):
                assert connection.execute("SELECT id, n, tag FROM sums ORDER BY id").fetchall() == first
                by_key = [connection.execute("SELECT id, n, tag FROM sums WHERE id = %s", (i,)).fetchone() for i in range(1, 21)]
                assert by_key == first
            connection.execute("COMMIT")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures
    server.execute("DROP TABLE sums")
