"""Many sessions insert, move and delete children and parents at once: no orphan is left, and no key stands twice."""

import random
import threading

import psycopg
import pytest

THREADS = 6
EACH = 60
PARENTS = 12

# What a transaction of the stress may be told; it is rolled back then.
EXPECTED = ("23503", "23505", "40001", "40P01")

ACTIONS = {
    "no-action": "REFERENCES parent",
    "cascade": "REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE",
    "set-null": "REFERENCES parent ON DELETE SET NULL ON UPDATE SET NULL",
    "deferred": "REFERENCES parent DEFERRABLE INITIALLY DEFERRED",
}
LEVELS = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]


def together(server, work):
    """Runs `work(connection, random)` on several connections at once."""
    failures = []

    def one(seed):
        try:
            with server.connect(autocommit=True) as connection:
                work(connection, random.Random(seed))
        except Exception as error:  # A thread's failure must reach the test.
            failures.append(error)

    threads = [threading.Thread(target=one, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def attempt(connection, *statements):
    """One transaction; whatever of the expected errors ends it."""
    try:
        for statement in statements:
            connection.execute(statement)
    except psycopg.Error as error:
        assert error.sqlstate in EXPECTED, error
        connection.execute("ROLLBACK")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("indexed", [True, False], ids=["indexed", "scanned"])
def test_no_orphans(server, action, level, indexed):
    """Children come, move and go while their parents do."""
    server.execute("DROP TABLE IF EXISTS child, parent")
    server.execute("CREATE TABLE parent (id int PRIMARY KEY, v int NOT NULL DEFAULT 0)")
    server.execute(f"CREATE TABLE child (n serial PRIMARY KEY, p int {ACTIONS[action]})")
    if indexed:
        server.execute("CREATE INDEX ON child (p)")
    server.execute(f"INSERT INTO parent SELECT generate_series(1, {PARENTS})")
    begin = f"BEGIN ISOLATION LEVEL {level}"
    orphans = "SELECT child.* FROM child LEFT JOIN parent ON parent.id = child.p WHERE parent.id IS NULL AND child.p IS NOT NULL"

    def work(connection, chance):
        for _ in range(EACH):
            a, b = chance.randint(1, PARENTS), chance.randint(1, PARENTS)
            body = chance.choice(
                [
                    [f"INSERT INTO child (p) VALUES ({a})"],
                    [f"INSERT INTO child (p) VALUES ({a}), ({b})"],
                    [f"INSERT INTO parent VALUES ({a}) ON CONFLICT DO NOTHING", f"INSERT INTO child (p) VALUES ({a})"],
                    [f"UPDATE child SET p = {a} WHERE p = {b}"],
                    [f"DELETE FROM child WHERE p = {a}"],
                    [f"DELETE FROM parent WHERE id = {a}"],
                    [f"DELETE FROM child WHERE p = {a}", f"DELETE FROM parent WHERE id = {a}"],
                    [f"UPDATE parent SET id = {a} WHERE id = {b}"],
                    [f"UPDATE parent SET v = v + 1 WHERE id = {a}"],
                    [f"INSERT INTO child (p) VALUES ({a})", f"DELETE FROM parent WHERE id = {b}"],
                ]
            )
            attempt(connection, begin, *body, "COMMIT")
            # Every snapshot must show none: an orphan is adopted when its parent comes back.
            assert connection.execute(orphans).fetchall() == []
            attempt(connection, f"INSERT INTO parent VALUES ({b}) ON CONFLICT DO NOTHING")

    together(server, work)
    assert server.execute(orphans) == []
    server.execute("DROP TABLE child, parent")


@pytest.mark.parametrize("level", LEVELS)
def test_deferred_keys_stand_once(server, level):
    """Keys that are judged at COMMIT are exchanged and fought over."""
    server.execute("DROP TABLE IF EXISTS keyed", "CREATE TABLE keyed (n serial PRIMARY KEY, k int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    server.execute(f"INSERT INTO keyed (k) SELECT generate_series(1, {PARENTS})")

    def work(connection, chance):
        for _ in range(EACH):
            a, b = chance.randint(1, PARENTS), chance.randint(1, PARENTS)
            body = chance.choice(
                [
                    [f"UPDATE keyed SET k = {a} + {b} - k WHERE k IN ({a}, {b})"],
                    [f"UPDATE keyed SET k = {a} WHERE k = {b}", f"UPDATE keyed SET k = k + 1 WHERE k = {a}"],
                    [f"INSERT INTO keyed (k) VALUES ({a})", f"DELETE FROM keyed WHERE k = {a}"],
                    [f"INSERT INTO keyed (k) VALUES ({a})"],
                    [f"DELETE FROM keyed WHERE k = {a}"],
                ]
            )
            attempt(connection, f"BEGIN ISOLATION LEVEL {level}", *body, "COMMIT")

    together(server, work)
    assert server.execute("SELECT k, count(*) FROM keyed GROUP BY k HAVING count(*) > 1") == []
    server.execute("DROP TABLE keyed")


def test_constraints_survive_a_crash(private_server):
    """What was made before kill -9 is enforced after it, deferrable or not."""
    server = private_server
    server.start()
    server.execute("CREATE TABLE parent (id int PRIMARY KEY)", "INSERT INTO parent VALUES (1)")
    server.execute("CREATE TABLE child (p int REFERENCES parent ON DELETE CASCADE)", "INSERT INTO child VALUES (1)")
    server.execute("CREATE TABLE later (p int REFERENCES parent DEFERRABLE INITIALLY DEFERRED, k int UNIQUE DEFERRABLE)")
    server.execute("ALTER TABLE later ADD CONSTRAINT small CHECK (k < 9) NOT VALID", "INSERT INTO later VALUES (1, 1), (1, 2)")
    server.restart_after_kill()
    with server.connect(autocommit=True) as connection:
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            connection.execute("INSERT INTO child VALUES (2)")
        with pytest.raises(psycopg.errors.CheckViolation):
            connection.execute("INSERT INTO later VALUES (1, 10)")
        connection.execute("UPDATE later SET k = k + 1")
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute("INSERT INTO later VALUES (1, 2)")
        connection.execute("BEGIN")
        connection.execute("INSERT INTO later VALUES (7, 7)")
        connection.execute("INSERT INTO parent VALUES (7)")
        connection.execute("COMMIT")
        connection.execute("DELETE FROM later")
        connection.execute("DELETE FROM parent WHERE id = 1")
        assert connection.execute("SELECT count(*) FROM child").fetchone() == (0,)
        defined = "SELECT conname, condeferrable, condeferred, convalidated FROM pg_constraint WHERE conrelid = 'later'::regclass ORDER BY 1"
        assert connection.execute(defined).fetchall() == [
            ("later_k_key", True, False, True),
            ("later_p_fkey", True, True, True),
            ("small", False, False, False),
        ]
