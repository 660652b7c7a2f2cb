"""An instance that is restarted: nothing is lost, nobody sees anything wrong, and the other instances answer
meanwhile.
"""

from __future__ import annotations

import random
import threading
import time

import psycopg
import pytest
from harness import TIMEOUT_S, wait_until
from test_instances import ACCOUNTS, INSTANCES, PARTITIONS, STILL, instances, transfers
from test_undo import Running

pytestmark = pytest.mark.logstead_only

ROWS = 3000


@pytest.fixture
def divided(private_server):
    """Three instances whose partitions stay where they are, and rows of all of them."""
    private_server.arguments = ["--instances", str(INSTANCES)]
    private_server.start(STILL)
    private_server.execute("CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL)", f"INSERT INTO t SELECT g, 0 FROM generate_series(1, {ROWS}) AS g")
    return private_server


def ids_of(server, instance: int) -> list[int]:
    """The keys of an instance."""
    of = "logstead_instance_of_partition(logstead_partition_of('t', id))"
    return [row[0] for row in server.execute(f"SELECT id FROM t WHERE {of} = {instance} ORDER BY id")]


def restart(connection, instance: int) -> None:
    assert connection.execute("SELECT logstead_restart_instance(%s)", (instance,)).fetchone() == (True,)


def test_what_an_instance_has_comes_back(divided):
    ids = ids_of(divided, 1)
    assert 100 < len(ids) < ROWS - 100
    with divided.connect(autocommit=True) as connection:
        connection.execute("CREATE INDEX ON t (v)")
        connection.execute("UPDATE t SET v = id")
        for step in range(4):
            if step == 2:
                connection.execute("CHECKPOINT")
            restart(connection, 1)
            assert connection.execute("SELECT count(*), sum(v) FROM t").fetchone() == (ROWS, sum(range(1, ROWS + 1)) + step * len(ids))
            with_index = "SELECT count(*) FROM t WHERE v BETWEEN 1 AND 100000"
            assert connection.execute(with_index).fetchone() == (ROWS,)
            assert connection.execute("SELECT v FROM t WHERE id = %s", (ids[7],)).fetchone() == (ids[7] + step,)
            connection.execute("UPDATE t SET v = v + 1 WHERE id = ANY(%s)", (ids,))
            connection.execute("DELETE FROM t WHERE id = %s", (ids[3],))
            connection.execute("INSERT INTO t VALUES (%s, %s)", (ids[3], ids[3] + step + 1))
        row = wait_until(lambda: (found := instances(connection)[1])["loaded_ms"] is not None and found, TIMEOUT_S, "all of it is in memory")
        assert (row["state"], row["restarts"]) == ("serving", 4)
        assert row["loaded_ms"] >= row["takeover_ms"] > 0
        others = [instances(connection)[n] for n in (0, 2)]
        assert [(o["restarts"], o["takeover_ms"], o["loaded_ms"]) for o in others] == [(0, None, None)] * 2
    divided.kill()
    divided.start(STILL)
    assert divided.execute("SELECT count(*), sum(v) FROM t") == [(ROWS, sum(range(1, ROWS + 1)) + 4 * len(ids))]


def test_who_may_restart_what(private_server):
    private_server.start(["--instances", "2"])
    private_server.execute("CREATE ROLE plain LOGIN")
    with private_server.connect(autocommit=True) as connection:
        for number in (2, -1, 70_000):
            with pytest.raises(psycopg.errors.InvalidParameterValue, match="does not exist"):
                connection.execute(f"SELECT logstead_restart_instance({number})")
        assert connection.execute("SELECT logstead_restart_instance(NULL)").fetchone() == (None,)
        connection.execute("SET ROLE plain")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT logstead_restart_instance(0)")
    assert private_server.stop() == 0
    private_server.start(["--instances", "1"])
    with private_server.connect(autocommit=True) as connection:
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="one instance"):
            connection.execute("SELECT logstead_restart_instance(0)")


def test_transactions_with_writes_there_end_and_others_go_on(divided):
    here, there = ids_of(divided, 0)[0], ids_of(divided, 1)[0]
    with divided.connect() as idle, divided.connect() as busy, divided.connect() as other, divided.connect(autocommit=True) as admin:
        idle.execute("UPDATE t SET v = 7 WHERE id IN (%s, %s)", (here, there))
        busy.execute("SELECT v FROM t WHERE id = %s FOR UPDATE", (ids_of(divided, 1)[1],))
        other.execute("UPDATE t SET v = 5 WHERE id = %s", (ids_of(divided, 0)[1],))
        failed = []

        def sleeps():
            try:
                busy.execute("SELECT pg_sleep(600)")
            except psycopg.Error as error:
                failed.append(error)

        sleeping = threading.Thread(target=sleeps)
        sleeping.start()
        wait_until(lambda: admin.execute("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()").fetchone() == (1,), TIMEOUT_S, "it sleeps")
        restart(admin, 1)
        sleeping.join(TIMEOUT_S)
        assert [error.sqlstate for error in failed] == ["40001"]
        # Its connection is as good as before.
        busy.rollback()
        assert busy.execute("SELECT 1").fetchone() == (1,)
        with pytest.raises(psycopg.OperationalError, match="an instance is restarted"):
            idle.execute("SELECT 1")
        other.commit()
        assert admin.execute("SELECT v FROM t WHERE id IN (%s, %s)", (here, there)).fetchall() == [(0,), (0,)]
        assert admin.execute("SELECT v FROM t WHERE id = %s", (ids_of(divided, 0)[1],)).fetchone() == (5,)


def test_no_handler_keeps_such_a_transaction_alive(divided):
    """A body that catches whatever it is told, again and again, and one that would go on in its block."""
    there = ids_of(divided, 1)[:2]
    divided.execute(
        """CREATE FUNCTION again_and_again(key int) RETURNS text LANGUAGE plpgsql AS $$
        BEGIN
            UPDATE t SET v = 7 WHERE id = key;
            LOOP
                BEGIN
                    PERFORM pg_sleep(0.001);
                EXCEPTION WHEN serialization_failure OR OTHERS THEN
                    NULL;
                END;
            END LOOP;
        END $$""",
        """CREATE FUNCTION once(key int) RETURNS text LANGUAGE plpgsql AS $$
        BEGIN
            UPDATE t SET v = 7 WHERE id = key;
            PERFORM pg_sleep(600);
        EXCEPTION WHEN serialization_failure THEN
            RETURN 'caught';
        END $$""",
    )
    with divided.connect(autocommit=True) as admin, divided.connect(autocommit=True) as one, divided.connect() as other:
        running = [Running(one, f"SELECT again_and_again({there[0]})"), Running(other, f"SELECT once({there[1]})")]
        free = "SELECT id FROM t WHERE id = ANY(%s) FOR UPDATE SKIP LOCKED"
        wait_until(lambda: not admin.execute(free, (there,)).fetchall(), TIMEOUT_S, "both have changed a row")
        restart(admin, 1)
        for statement in running:
            with pytest.raises(psycopg.errors.SerializationFailure, match="an instance was restarted"):
                statement.ended()
        other.rollback()
        assert admin.execute("SELECT v FROM t WHERE id = ANY(%s)", (there,)).fetchall() == [(0,), (0,)]


def test_old_snapshots_are_told(divided):
    here, there = ids_of(divided, 0)[0], ids_of(divided, 1)[0]
    with divided.connect() as old, divided.connect() as elsewhere, divided.connect(autocommit=True) as admin:
        for connection in (old, elsewhere):
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            assert connection.execute("SELECT v FROM t WHERE id = %s", (there,)).fetchone() == (0,)
        admin.execute("UPDATE t SET v = 1 WHERE id IN (%s, %s)", (here, there))
        restart(admin, 1)
        assert admin.execute("SELECT v FROM t WHERE id = %s", (there,)).fetchone() == (1,)
        assert elsewhere.execute("SELECT v FROM t WHERE id = %s", (here,)).fetchone() == (0,), "the other instances' rows are as they were"
        elsewhere.commit()
        with pytest.raises(psycopg.errors.SerializationFailure, match="an instance was restarted"):
            old.execute("SELECT v FROM t WHERE id = %s", (there,))
        old.rollback()
        assert old.execute("SELECT v FROM t WHERE id = %s", (there,)).fetchone() == (1,)


@pytest.mark.slow
def test_the_other_instances_answer_meanwhile(divided, seed):
    """Increments of all instances while one is restarted again and again: its clients are told to try again, those
    of the others never.
    """
    rng = random.Random(seed)
    stopping = threading.Event()
    done = [0] * INSTANCES
    retried = [0] * INSTANCES
    wrong: list[str] = []

    def increments(instance: int, ids: list[int], rng: random.Random) -> None:
        with divided.connect(autocommit=True) as connection:
            while not stopping.is_set():
                chosen = rng.choice(ids)
                try:
                    connection.execute("UPDATE t SET v = v + 1 WHERE id = %s", (chosen,))
                    done[instance] += 1
                except psycopg.errors.SerializationFailure:
                    retried[instance] += 1
                except psycopg.Error as error:
                    wrong.append(repr(error))
                    return

    threads = [threading.Thread(target=increments, args=(n, ids_of(divided, n), random.Random(rng.random()))) for n in range(INSTANCES)]
    for thread in threads:
        thread.start()
    during = 0
    try:
        with divided.connect(autocommit=True) as admin:
            for round in range(60):
                before = done[0] + done[2]
                restart(admin, 1)
                during += done[0] + done[2] - before
                if round % 20 == 10:
                    admin.execute("CHECKPOINT")
                time.sleep(0.01)
            wait_until(lambda: done[1] > 50 or wrong, TIMEOUT_S, "the restarted instance is served")
            assert instances(admin)[1]["restarts"] == 60
    finally:
        stopping.set()
        for thread in threads:
            thread.join(TIMEOUT_S)
    assert not wrong, wrong[:10]
    assert during > 0, "nobody was answered while the instance was being dropped"
    assert [retried[0], retried[2]] == [0, 0], "clients of other instances are told nothing"
    divided.kill()
    divided.start(STILL)
    sums = [divided.execute(f"SELECT sum(v) FROM t WHERE id = ANY(ARRAY{ids_of(divided, n)})")[0][0] for n in range(INSTANCES)]
    assert sums == done, f"{sums} are there, {done} were acknowledged"


@pytest.mark.slow
def test_money_stays_whole_while_instances_restart(private_server, seed):
    """Transfers across instances while these restart and partitions move, and kill -9 in the middle of it."""
    rng = random.Random(seed)
    server = private_server
    server.start(["--instances", str(INSTANCES)])
    server.execute(
        "CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL)",
        "CREATE TABLE ledger (client int, number int, src int, dst int, PRIMARY KEY (client, number))",
        f"INSERT INTO account SELECT g, 1000 FROM generate_series(0, {ACCOUNTS - 1}) AS g",
    )
    acknowledged: set[tuple[int, int]] = set()
    wrong: list[str] = []
    for count, following in ((3, 2), (2, 3), (3, 3)):
        stopping = threading.Event()
        threads = [threading.Thread(target=transfers, args=(server, stopping, random.Random(rng.random()), wrong, acknowledged)) for _ in range(5)]
        for thread in threads:
            thread.start()
        before, restarts = len(acknowledged), 0
        deadline = time.monotonic() + TIMEOUT_S
        with server.connect(autocommit=True) as admin:
            while (len(acknowledged) < before + 300 or restarts < 20) and time.monotonic() < deadline and not wrong:
                admin.execute("SELECT logstead_move_partition(%s, %s)", (rng.randrange(PARTITIONS), rng.randrange(count)))
                restart(admin, rng.randrange(count))
                restarts += 1
                if restarts % 10 == 9:
                    admin.execute("CHECKPOINT")
                time.sleep(0.05)
            assert sum(row["restarts"] for row in instances(admin).values()) == restarts
        # In the middle of it.
        server.kill()
        stopping.set()
        for thread in threads:
            thread.join(TIMEOUT_S)
            assert not thread.is_alive()
        assert not wrong, wrong[:10]
        assert len(acknowledged) >= before + 300, "clients go on"
        server.start(["--instances", str(following)])
        assert server.execute("SELECT sum(balance), count(*) FROM account") == [(ACCOUNTS * 1000, ACCOUNTS)]
        kept = {tuple(row) for row in server.execute("SELECT client, number FROM ledger")}
        assert acknowledged <= kept, f"lost: {sorted(acknowledged - kept)[:10]}"
        different = server.execute(
            """SELECT count(*) FROM account AS a WHERE balance <> 1000
                 + (SELECT count(*) FROM ledger WHERE dst = a.id) - (SELECT count(*) FROM ledger WHERE src = a.id)"""
        )
        assert different == [(0,)], "balances follow from the ledger"
    assert server.stop() == 0
