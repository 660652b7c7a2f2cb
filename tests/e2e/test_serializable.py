"""SERIALIZABLE with real clients: invariants that snapshot isolation breaks hold, and whoever retries gets on."""

import random
import re
import threading

import psycopg
import pytest

CLIENTS = 8
LEVELS = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]


def in_threads(work, count=CLIENTS):
    """Runs `work(number)` in threads; a failure in one of them is a failure of the test. Gives what they return."""
    results, failures = [None] * count, []

    def guarded(number):
        try:
            results[number] = work(number)
        except Exception as error:  # A thread's failure must reach the test.
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results


def retried(connection, work, tries=10_000):
    """Runs `work` in a SERIALIZABLE transaction until it commits. Gives what it returned and how often it failed."""
    for failed in range(tries):
        try:
            connection.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
            result = work()
            connection.execute("COMMIT")
            return result, failed
        except psycopg.errors.SerializationFailure:
            connection.execute("ROLLBACK")
    raise AssertionError(f"{tries} tries were not enough")


def test_write_skew_in_a_bank(server):
    """Either account of a pair may go below zero, their sum may not: two withdrawals that each look at both must not both
    see enough. An auditor on a safe snapshot never fails."""
    pairs = 3
    server.execute("DROP TABLE IF EXISTS bank", "CREATE TABLE bank (id int PRIMARY KEY, pair int NOT NULL, balance int NOT NULL)")
    server.execute(f"INSERT INTO bank SELECT g, g / 2, 500 FROM generate_series(0, {2 * pairs - 1}) AS g")
    taken = threading.Event()

    def client(number):
        dice, paid = random.Random(number), 0
        with server.connect(autocommit=True) as connection:
            for _ in range(40):
                pair, account = dice.randrange(pairs), dice.randrange(2)

                def withdraw():
                    if dice.random() < 0.5:
                        query = "SELECT sum(balance) FROM bank WHERE pair = %s"
                        total = connection.execute(query, [pair]).fetchone()[0]
                    else:
                        query = "SELECT balance FROM bank WHERE id = %s"
                        total = sum(connection.execute(query, [2 * pair + i]).fetchone()[0] for i in (0, 1))
                    if total < 100:
                        return 0
                    connection.execute("UPDATE bank SET balance = balance - 100 WHERE id = %s", [2 * pair + account])
                    return 100

                paid += retried(connection, withdraw)[0]
        return paid

    def auditor(_):
        with server.connect(autocommit=True) as connection:
            while not taken.is_set():
                connection.execute("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE")
                sums = connection.execute("SELECT pair, sum(balance) FROM bank GROUP BY pair").fetchall()
                connection.execute("COMMIT")
                assert len(sums) == pairs and all(total >= 0 for _, total in sums), sums
        return 0

    def clients(_):
        try:
            return sum(in_threads(client))
        finally:
            taken.set()

    paid, _ = in_threads(lambda number: [clients, auditor][number](number), 2)
    sums = server.execute("SELECT sum(balance) FROM bank GROUP BY pair")
    assert [total for (total,) in sums] == [0] * pairs
    assert paid == 1000 * pairs
    server.execute("DROP TABLE bank")


def test_phantoms_in_a_calendar(server):
    """A room is booked once at a time, though nothing but the look before the booking sees to it."""
    server.execute("DROP TABLE IF EXISTS booking")
    server.execute("CREATE TABLE booking (id int GENERATED ALWAYS AS IDENTITY, room int, since int, until int)")
    server.execute("CREATE INDEX ON booking (room, since)")

    def client(number):
        dice = random.Random(number)
        with server.connect(autocommit=True) as connection:
            for _ in range(30):
                room, since = dice.randrange(2), dice.randrange(60)
                until = since + 1 + dice.randrange(4)

                def book():
                    taken = connection.execute(
                        "SELECT count(*) FROM booking WHERE room = %s AND since < %s AND until > %s", [room, until, since]
                    ).fetchone()[0]
                    if taken == 0:
                        connection.execute(
                            "INSERT INTO booking (room, since, until) VALUES (%s, %s, %s)", [room, since, until]
                        )

                retried(connection, book)

    in_threads(client)
    twice = """SELECT a.*, b.* FROM booking a JOIN booking b
        ON a.room = b.room AND a.id < b.id AND a.since < b.until AND b.since < a.until"""
    assert server.execute(twice) == []
    assert server.execute("SELECT count(*) > 10 FROM booking") == [(True,)]
    server.execute("DROP TABLE booking")


def test_pgbench_retries(server, tmp_path):
    """pgbench retries 40001 by itself; in the end nothing has failed and the sum is what it was."""
    server.execute("DROP TABLE IF EXISTS moved", "CREATE TABLE moved (id int PRIMARY KEY, n int NOT NULL)")
    server.execute("INSERT INTO moved SELECT g, 100 FROM generate_series(1, 20) AS g")
    script = tmp_path / "move.sql"
    script.write_text(
        "\\set a random(1, 20)\n\\set b random(1, 20)\nBEGIN ISOLATION LEVEL SERIALIZABLE;\n"
        "SELECT n FROM moved WHERE id = :b;\nUPDATE moved SET n = n - 1 WHERE id = :a;\n"
        "UPDATE moved SET n = n + 1 WHERE id = :b;\nCOMMIT;\n"
    )
    done = server.run(
        "pgbench", "-n", "-f", str(script), "-c", str(CLIENTS), "-j", "2", "-t", "50", "--max-tries=1000"
    )
    assert re.search(r"number of transactions actually processed: 400/400", done.stdout), done.stdout
    assert re.search(r"number of failed transactions: 0 ", done.stdout), done.stdout
    assert server.execute("SELECT sum(n) FROM moved") == [(2000,)]
    server.execute("DROP TABLE moved")


def circle(edges):
    """Does a graph {node: successors} have a circle?"""
    white, done = set(edges), set()
    while white:
        path = [(white.pop(), None)]
        on_path = set()
        while path:
            node, successors = path.pop()
            if successors is None:
                on_path.add(node)
                successors = iter(edges.get(node, ()))
            for to in successors:
                if to in on_path:
                    return True
                if to not in done:
                    white.discard(to)
                    path += [(node, successors), (to, None)]
                    break
            else:
                on_path.discard(node)
                done.add(node)
    return False


@pytest.mark.parametrize("level", LEVELS)
def test_lists(server, level):
    """Appends of unique elements to lists, and reads of whole lists: what was seen has no circle that the level forbids
    (crates/sim has the long story)."""
    keys, each = 4, 60
    server.execute("DROP TABLE IF EXISTS list", "CREATE TABLE list (k int PRIMARY KEY, l text NOT NULL)")

    def client(number):
        dice, committed = random.Random(number), []
        with server.connect(autocommit=True) as connection:
            for n in range(each):
                name, reads, appends = f"{number}.{n}", [], []
                try:
                    connection.execute(f"BEGIN ISOLATION LEVEL {level}")
                    for _ in range(dice.randrange(1, 4)):
                        k, what = dice.randrange(keys), dice.randrange(4)
                        if what == 0:
                            found = connection.execute("SELECT l FROM list WHERE k = %s", [k]).fetchone()
                            reads.append((k, found[0] if found else ""))
                        elif what == 1:
                            found = dict(connection.execute("SELECT k, l FROM list WHERE l <> 'x'").fetchall())
                            reads += [(k, found.get(k, "")) for k in range(keys)]
                        elif k not in appends:
                            connection.execute(
                                "INSERT INTO list VALUES (%s, %s) ON CONFLICT (k) DO UPDATE SET l = list.l || excluded.l",
                                [k, name + " "],
                            )
                            appends.append(k)
                    connection.execute("COMMIT")
                    committed.append((name, reads, appends))
                except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
                    connection.execute("ROLLBACK")
        return committed

    history = [transaction for committed in in_threads(client) for transaction in committed]
    lists = {k: l.split() for k, l in server.execute("SELECT k, l FROM list")}
    names = {name for name, _, _ in history}
    edges = {name: set() for name in names}
    for k in range(keys):
        written = lists.get(k, [])
        assert sorted(written) == sorted(name for name, _, appends in history if k in appends), "no more, no less"
        for one, next_one in zip(written, written[1:]):
            edges[one].add(next_one)
    for name, reads, _ in history:
        for k, seen in reads:
            seen, written = seen.split(), lists.get(k, [])
            assert written[: len(seen)] == seen, "a beginning of the final list"
            others = [other for other in seen if other != name]
            if others:
                edges[others[-1]].add(name)
            following = [other for other in written[len(seen) :] if other != name]
            if level == "SERIALIZABLE" and following:
                edges[name].add(following[0])
    assert not circle(edges)
    assert len(history) > CLIENTS * each / 8
    server.execute("DROP TABLE list")
