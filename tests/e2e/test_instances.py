"""Instances: workers that are divided, sessions that follow their keys, and partitions that move, under load and
kill -9.
"""

from __future__ import annotations

import os
import random
import threading
import time

import psycopg
import pytest
from harness import TIMEOUT_S, wait_until
from rawwire import Wire, query
from test_authentication import encrypted, settings

pytestmark = pytest.mark.logstead_only

INSTANCES = 3
PARTITIONS = 64
STILL = ["--partition-balancing", "off"]


@pytest.fixture
def divided(private_server):
    """Three instances whose partitions stay where they are."""
    private_server.arguments = ["--instances", str(INSTANCES)]
    private_server.start(STILL)
    return private_server


def instances(connection) -> dict[int, dict]:
    """The rows of logstead_instances."""
    cursor = connection.execute("SELECT * FROM logstead_instances ORDER BY instance")
    names = [column.name for column in cursor.description]
    return {row[0]: dict(zip(names, row)) for row in cursor.fetchall()}


def total(connection, column: str) -> int:
    return sum(row[column] for row in instances(connection).values())


def own_all(connection, instance: int) -> None:
    """Every key is this instance's from now on."""
    connection.execute("SELECT logstead_move_partition(p, %s) FROM generate_series(0, 63) AS p", (instance,))


def arrives(watcher, session, to: int, statement="SELECT v FROM t WHERE id = 1", most=400) -> int:
    """Runs the statement until the session has moved to an instance; how often that was. The watcher looks at no
    key.
    """
    before = instances(watcher)[to]["sessions_in"]
    for ran in range(1, most + 1):
        session.execute(statement)
        if instances(watcher)[to]["sessions_in"] > before:
            return ran
    raise AssertionError(f"the session has not moved to instance {to} after {most} statements: {instances(watcher)}")


def elsewhere(watcher, session) -> int:
    """An instance that a new session, the only one beside the watcher, is not at."""
    own_all(watcher, 0)
    before = instances(watcher)
    session.execute("SELECT v FROM t WHERE id = 1")
    after = instances(watcher)
    is_at_0 = after[0]["transactions_inside"] > before[0]["transactions_inside"]
    return 1 if is_at_0 else 0


def table(server) -> None:
    server.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 100) AS g")


def test_workers_lanes_and_partitions_are_divided(private_server):
    private_server.start(["--instances", "3", "--workers", "7"])
    with private_server.connect(autocommit=True) as connection:
        found = instances(connection)
        assert [found[i]["workers"] for i in range(3)] == [3, 2, 2]
        assert [found[i]["lanes"] for i in range(3)] == [3, 2, 2]
        assert sum(row["partitions"] for row in found.values()) == PARTITIONS
        assert {row["state"] for row in found.values()} == {"serving"}
        assert all(row["cores"] and row["buffer_bytes"] > 0 for row in found.values())
        assert sum(row["sessions"] for row in found.values()) == 1
        assert connection.execute("SHOW instances").fetchone() == ("3",)
    said = private_server.output_text()
    assert "3 instances, 7 workers on" in said
    assert ("more instances than cores" in said) == (len(os.sched_getaffinity(0)) < 3)


def test_every_instance_has_a_worker(private_server):
    private_server.start(["--instances", "4", "--workers", "2", "--workers-per-lane", "all"])
    with private_server.connect(autocommit=True) as connection:
        assert connection.execute("SHOW workers").fetchone() == ("4",)
        assert connection.execute("SELECT count(*) FROM logstead_commit").fetchone() == (4,), "no lane is shared"


def test_one_instance_is_shown_too(private_server):
    private_server.start(env={"LOGSTEAD_INSTANCES": "1"})
    with private_server.connect(autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int)")
        ((instance, partitions, sessions, inside, across, foreign),) = connection.execute(
            "SELECT instance, partitions, sessions, transactions_inside, transactions_across, foreign_accesses FROM logstead_instances"
        ).fetchall()
        assert (instance, partitions, sessions, across, foreign) == (0, 64, 1, 0, 0)
        assert inside > 0
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="one instance"):
            connection.execute("SELECT logstead_move_partition(0, 0)")


@pytest.mark.parametrize("value", ["0", "65", "-1", "many", "1.5"])
def test_a_bad_number_is_refused(private_server, value):
    private_server.start([f"--instances={value}"], wait=False)
    assert private_server.process.wait(TIMEOUT_S) != 0
    wait_until(lambda: "instances" in private_server.output_text(), what="it names the setting")


def test_too_little_memory_is_refused(private_server):
    private_server.start(["--instances", "4", "--memory", "48MB"], wait=False)
    assert private_server.process.wait(TIMEOUT_S) != 0
    wait_until(lambda: "too few for 4 instances" in private_server.output_text(), what="it says why")


def test_chunks_of_checkpoints_are_counted_by_owner(divided):
    divided.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    with divided.connect(autocommit=True) as connection:

        def stored_by(change: str) -> dict[int, int]:
            connection.execute("CHECKPOINT")
            before = instances(connection)
            connection.execute(change)
            connection.execute("CHECKPOINT")
            after = instances(connection)
            return {number: after[number]["checkpoint_chunks"] - before[number]["checkpoint_chunks"] for number in after}

        # A thousand rows are in each partition's chunks.
        stored = stored_by("INSERT INTO t SELECT g, 'v' FROM generate_series(1, 1000) g")
        assert all(chunks >= 20 for chunks in stored.values()), stored
        own_all(connection, 1)
        stored = stored_by("UPDATE t SET v = 'w'")
        assert stored[1] >= 64 and stored[0] == stored[2] == 0, stored


def test_partitions_are_moved_by_hand(divided):
    with divided.connect(autocommit=True) as connection:
        assert connection.execute("SELECT logstead_move_partition(63, 0)").fetchone() == (True,)
        assert connection.execute("SELECT logstead_move_partition(63, 0)").fetchone() == (False,)
        assert [row["pinned"] for row in instances(connection).values()] == [1, 0, 0]
        found = instances(connection)
        assert (found[0]["partitions_in"], found[2]["partitions_out"]) == (1, 1)
        for arguments, said in [("64, 0", "partition 64 does not exist"), ("-1, 0", "partition -1 does not exist"),
                                ("0, 3", "instance 3 does not exist"), ("0, -1", "instance -1 does not exist")]:  # fmt: skip
            with pytest.raises(psycopg.errors.InvalidParameterValue, match=said):
                connection.execute(f"SELECT logstead_move_partition({arguments})")
        assert connection.execute("SELECT logstead_move_partition(NULL, 0)").fetchone() == (None,)
        released = "SELECT logstead_move_partition(63, NULL)"
        assert [connection.execute(released).fetchone() for _ in range(2)] == [(True,), (False,)]
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="partition 64 does not exist"):
            connection.execute("SELECT logstead_move_partition(64, NULL)")
        connection.execute("CREATE ROLE mortal LOGIN")
        connection.execute("SET ROLE mortal")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT logstead_move_partition(0, 0)")


# -- sessions ---------------------------------------------------------------------------------------------------------


def test_a_session_moves_with_all_it_has(divided):
    table(divided)
    divided.execute("CREATE SEQUENCE s", "CREATE SCHEMA other", "CREATE ROLE worker", "GRANT ALL ON t TO worker")
    with divided.connect(autocommit=True) as watcher, divided.connect(autocommit=True, application_name="it") as session:
        session.prepare_threshold = 0
        session.execute("SET search_path = other, public")
        session.execute("SET my.own = 'kept'")
        session.execute("SET timezone = 'Asia/Tokyo'")
        session.execute("SELECT nextval('public.s'), setseed(0.25)")
        session.execute("SELECT random()")
        session.execute("LISTEN news")
        session.execute("PREPARE by_id AS SELECT v FROM t WHERE id = $1", prepare=False)
        seen = """SELECT pg_backend_pid(), current_user, session_user, current_schemas(false), current_setting('my.own'),
            current_setting('timezone'), current_setting('application_name'), currval('public.s'), lastval(),
            (SELECT array_agg(c) FROM pg_listening_channels() AS c),
            (SELECT (backend_start, client_port) FROM pg_stat_activity WHERE pid = pg_backend_pid())"""
        before = session.execute(seen).fetchone()
        to = elsewhere(watcher, session)
        own_all(watcher, to)
        watcher.execute("NOTIFY news, 'before'")
        assert arrives(watcher, session, to) <= 4
        watcher.execute("NOTIFY news, 'after'")
        moved = instances(watcher)
        assert session.execute(seen).fetchone() == before
        assert session.execute("EXECUTE by_id(7)").fetchone() == ("v7",)
        for key in range(1, 20):
            assert session.execute("SELECT v FROM t WHERE id = %s", (key,)).fetchone() == (f"v{key}",)
        assert [n.payload for n in session.notifies(timeout=30, stop_after=2)] == ["before", "after"]
        # Where it is now nothing is foreign to it, and it stays.
        now = instances(watcher)
        assert now[to]["transactions_inside"] >= moved[to]["transactions_inside"] + 20
        assert sum(row["foreign_accesses"] for row in now.values()) == sum(row["foreign_accesses"] for row in moved.values())
        assert total(watcher, "sessions_in") == total(watcher, "sessions_out") == 1
        assert total(watcher, "sessions") == 2
        # The cancel key that its client has is the session's.
        canceller = threading.Timer(0.5, session.cancel)
        canceller.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            session.execute("SELECT pg_sleep(60)")
        pid = session.info.backend_pid
        assert watcher.execute("SELECT pg_terminate_backend(%s)", (pid,)).fetchone() == (True,)
        with pytest.raises(psycopg.OperationalError):
            session.execute("SELECT 1")
        wait_until(lambda: total(watcher, "sessions") == 1, what="the session is counted no more")
    assert divided.stop() == 0


def test_random_numbers_go_on(divided):
    table(divided)
    with divided.connect(autocommit=True) as watcher:
        with divided.connect(autocommit=True) as session:
            to = elsewhere(watcher, session)
            own_all(watcher, to)
            session.execute("SELECT setseed(0.5)")
            session.execute("SELECT random()")
            arrives(watcher, session, to)
            (after,) = session.execute("SELECT random()").fetchone()
        watcher.execute("SELECT setseed(0.5)")
        watcher.execute("SELECT random()")
        assert watcher.execute("SELECT random()").fetchone() == (after,)


def test_what_is_sent_during_moves_is_answered_in_order(divided):
    """Hundreds of requests in one write: the session moves between them, and what has come goes along."""
    table(divided)
    divided.execute("CREATE TABLE counted (n int)", "CREATE SEQUENCE c")
    with divided.connect(autocommit=True) as watcher, Wire(divided) as wire:
        number = 0
        for instance in (0, 1, 2, 0, 1, 2):
            own_all(watcher, instance)
            requests = [query(f"INSERT INTO counted VALUES ({n}); SELECT {n}, v FROM t WHERE id = 1") for n in range(number, number + 150)]
            wire.socket.sendall(b"".join(requests))
            for n in range(number, number + 150):
                rows = [m.row for m in wire.until_ready() if m.kind == "D"]
                assert rows == [[str(n).encode(), b"v1"]]
            number += 150
        assert total(watcher, "sessions_in") >= 3, instances(watcher)
        assert watcher.execute("SELECT count(*), count(DISTINCT n), max(n) FROM counted").fetchone() == (900, 900, 899)


def test_an_encrypted_session_moves(private_server, certificate):
    private_server.arguments = ["--instances", str(INSTANCES)]
    trusting = '[[hba]]\ntype = "hostssl"\naddress = "all"\nmethod = "trust"\n'
    private_server.start([*settings(private_server, encrypted(certificate, trusting)), *STILL])
    options = dict(host=private_server.host, port=private_server.port, user="postgres", dbname="postgres", sslmode="require", autocommit=True)
    with psycopg.connect(**options) as watcher, psycopg.connect(**options) as session:
        watcher.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        watcher.execute("INSERT INTO t VALUES (1, repeat('x', 100000))")
        to = elsewhere(watcher, session)
        own_all(watcher, to)
        arrives(watcher, session, to)
        for _ in range(10):
            assert session.execute("SELECT v FROM t WHERE id = 1").fetchone() == ("x" * 100000,)
        assert session.pgconn.ssl_in_use
        assert session.execute("SELECT pg_backend_pid()").fetchone() == (session.info.backend_pid,)


def test_a_session_of_a_socket_of_the_file_system_moves(divided, tmp_path):
    divided.stop()
    # A path of such a socket is short.
    directory = os.path.relpath(tmp_path) if len(str(tmp_path)) > 80 else str(tmp_path)
    divided.start([*STILL, "--unix-socket-directories", directory])
    table(divided)
    with divided.connect(autocommit=True) as watcher:
        with psycopg.connect(host=directory, port=divided.port, user="postgres", dbname="postgres", autocommit=True) as session:
            to = elsewhere(watcher, session)
            own_all(watcher, to)
            arrives(watcher, session, to)
            assert session.execute("SELECT v FROM t WHERE id = 3").fetchone() == ("v3",)


@pytest.mark.parametrize("bound", [
    ("CREATE TEMP TABLE mine (id int)", "DROP TABLE mine"),
    ("SELECT pg_advisory_lock(7)", "SELECT pg_advisory_unlock(7)"),
    ("DECLARE held CURSOR WITH HOLD FOR SELECT 1", "CLOSE held"),
])  # fmt: skip
def test_what_belongs_to_a_worker_keeps_the_session_there(divided, bound):
    table(divided)
    begins, ends = bound
    with divided.connect(autocommit=True) as watcher, divided.connect(autocommit=True) as session:
        to = elsewhere(watcher, session)
        own_all(watcher, to)
        session.execute(begins)
        for _ in range(40):
            session.execute("SELECT v FROM t WHERE id = 1")
        assert total(watcher, "sessions_in") == 0
        session.execute(ends)
        # Each time it is found that the session cannot go, it asks after twice as many: 4, 8, 16 have passed, the next
        # is 32.
        assert 40 + arrives(watcher, session, to) <= 4 + 8 + 16 + 32


def test_a_session_in_a_block_moves_behind_it(divided):
    table(divided)
    with divided.connect(autocommit=True) as watcher, divided.connect(autocommit=True) as session:
        to = elsewhere(watcher, session)
        own_all(watcher, to)
        for _ in range(2):
            session.execute("SELECT v FROM t WHERE id = 1")
        session.execute("BEGIN")
        for _ in range(40):
            session.execute("UPDATE t SET v = v WHERE id = 1")
        assert total(watcher, "sessions_in") == 0, "a transaction counts once, and is not left in its midst"
        session.execute("ROLLBACK")
        session.execute("SELECT v FROM t WHERE id = 1")
        assert total(watcher, "sessions_in") == 1


def test_a_session_that_takes_turns_stays(divided):
    table(divided)
    with divided.connect(autocommit=True) as watcher, divided.connect(autocommit=True) as session:
        for turn in range(100):
            own_all(watcher, 1 + turn % 2)
            for _ in range(4):
                session.execute("SELECT v FROM t WHERE id = 1")
        assert 1 <= total(watcher, "sessions_in") <= 2


def test_sessions_stay_where_they_are_told_to(private_server):
    private_server.start(["--instances", "3", *STILL, "--session-move-threshold", "0"])
    table(private_server)
    with private_server.connect(autocommit=True) as watcher, private_server.connect(autocommit=True) as session:
        before = total(watcher, "transactions_across")
        for instance in range(3):
            own_all(watcher, instance)
            for _ in range(50):
                session.execute("SELECT v FROM t WHERE id = 1")
        assert total(watcher, "sessions_in") == 0
        assert total(watcher, "transactions_across") == before + 100


def test_one_instance_does_not_take_all_sessions(divided):
    table(divided)
    with divided.connect(autocommit=True) as watcher:
        sessions = [divided.connect(autocommit=True) for _ in range(11)]
        own_all(watcher, 1)
        for _ in range(20):
            for session in sessions:
                session.execute("SELECT v FROM t WHERE id = 1")
        found = instances(watcher)
        assert sum(row["sessions"] for row in found.values()) == 12
        # Its share is 4: half as much again, and one.
        assert found[1]["sessions"] == 7, found
        for session in sessions:
            session.close()
        wait_until(lambda: total(watcher, "sessions") == 1, what="all have left")


def test_what_was_told_without_waiting_goes_along(divided):
    """synchronous_commit = off on one worker, a synchronous commit on the next: a crash takes nothing that was told
    then.
    """
    table(divided)
    divided.execute("CREATE TABLE told (n int)")
    with divided.connect(autocommit=True) as watcher:
        session = divided.connect(autocommit=True)
        to = elsewhere(watcher, session)
        own_all(watcher, to)
        session.execute("SET synchronous_commit = off")
        n = 0
        while total(watcher, "sessions_in") == 0:
            session.execute("INSERT INTO told VALUES (%s)", (n,))
            n += 1
            assert n < 400
        session.execute("SET synchronous_commit = on")
        session.execute("INSERT INTO told VALUES (%s)", (n,))
    divided.restart_after_kill(arguments=STILL)
    assert divided.execute("SELECT count(*), max(n) FROM told") == [(n + 1, n)]


# -- load, crashes, restarts ------------------------------------------------------------------------------------------


def test_who_has_keys_of_one_instance_touches_nothing_of_others(divided):
    """After their moves three sessions, each with the keys of one instance, count no access to what others own."""
    divided.execute(
        "CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL)",
        "INSERT INTO account SELECT g, 1000 FROM generate_series(1, 600) AS g",
    )
    with divided.connect(autocommit=True) as watcher:
        keys: dict[int, list[int]] = {}
        owner = "SELECT id, logstead_instance_of_partition(logstead_partition_of('account', id)) FROM account"
        for key, instance in watcher.execute(owner).fetchall():
            keys.setdefault(instance, []).append(key)
        assert sorted(keys) == list(range(INSTANCES)), "keys are spread"
        sessions = {instance: divided.connect(autocommit=True) for instance in keys}

        def transfer(session, src: int, dst: int) -> None:
            with session.transaction():
                session.execute("UPDATE account SET balance = balance - 1 WHERE id = %s", (src,))
                session.execute("UPDATE account SET balance = balance + 1 WHERE id = %s", (dst,))

        def all_transfer(rounds: int) -> None:
            for number in range(rounds):
                for instance, session in sessions.items():
                    own = keys[instance]
                    transfer(session, own[number % len(own)], own[(number * 7 + 1) % len(own)])

        all_transfer(8)
        before = instances(watcher)
        all_transfer(100)
        after = instances(watcher)
        for instance in keys:
            assert after[instance]["transactions_inside"] >= before[instance]["transactions_inside"] + 100
            assert after[instance]["transactions_across"] == before[instance]["transactions_across"]

        def touches_nothing() -> bool:
            before = total(watcher, "foreign_accesses")
            all_transfer(30)
            return total(watcher, "foreign_accesses") == before

        # Workers first collect what was left by the transactions before the moves.
        wait_until(touches_nothing, what="nobody has anything to do elsewhere")
        # And across: money does not care.
        for number in range(30):
            transfer(sessions[number % 3], keys[number % 3][number], keys[(number + 1) % 3][number])
        across = sum(row["transactions_across"] for row in instances(watcher).values())
        assert across >= sum(row["transactions_across"] for row in after.values()) + 30
        for session in sessions.values():
            session.close()
        assert watcher.execute("SELECT sum(balance) FROM account").fetchone() == (600_000,)


@pytest.mark.slow
def test_partitions_leave_an_instance_with_much_load(private_server):
    """Tables that are each one partition's, all of one instance: some move to the others by themselves, once
    released.
    """
    private_server.arguments = ["--instances", str(INSTANCES)]
    private_server.start()
    names = [f"t{number}" for number in range(9)]
    with private_server.connect(autocommit=True) as watcher:
        for name in names:
            watcher.execute(f"CREATE TABLE {name} (id int, v int)")
            watcher.execute(f"INSERT INTO {name} SELECT g, 0 FROM generate_series(1, 500) AS g")
        own_all(watcher, 0)
        pinned = [watcher.execute("SELECT logstead_partition_of(%s::text::regclass)", (name,)).fetchone()[0] for name in names[:3]]
        released = "SELECT bool_and(logstead_move_partition(p, NULL)) FROM generate_series(0, 63) AS p WHERE p <> ALL (%s)"
        assert watcher.execute(released, (pinned,)).fetchone() == (True,)
        stopping = threading.Event()
        updates = [0] * 3

        def load(client: int):
            with private_server.connect(autocommit=True) as connection:
                while not stopping.is_set():
                    for name in names[client::3]:
                        connection.execute(f"UPDATE {name} SET v = v + 1")
                    updates[client] += 1

        threads = [threading.Thread(target=load, args=(client,)) for client in range(3)]
        for thread in threads:
            thread.start()
        try:
            out = wait_until(lambda: (found := instances(watcher)[0])["partitions_out"] >= 2 and found, 120, "partitions move away")
            assert out["partitions_out"] <= 40
            owners = "SELECT DISTINCT logstead_instance_of_partition(p) FROM unnest(%s) AS p"
            assert watcher.execute(owners, (pinned,)).fetchall() == [(0,)], "what was moved by hand stays"
        finally:
            stopping.set()
            for thread in threads:
                thread.join(TIMEOUT_S)
        assert "moves to instance" in private_server.output_text()
        for number, name in enumerate(names):
            assert watcher.execute(f"SELECT min(v), max(v), count(*) FROM {name}").fetchone() == (updates[number % 3], updates[number % 3], 500)


ACCOUNTS = 300


def transfers(server, stopping, rng, wrong, acknowledged) -> None:
    """Moves money, most of it within a narrow range of accounts, and keeps count of what was acknowledged."""
    client = rng.randrange(1 << 30)
    number = 0
    home = rng.randrange(ACCOUNTS - 20)
    while not stopping.is_set():
        try:
            with server.connect(autocommit=True) as connection:
                while not stopping.is_set():
                    if rng.random() < 0.02:
                        home = rng.randrange(ACCOUNTS - 20)
                    near = [home + rng.randrange(20) for _ in range(2)]
                    src, dst = near if rng.random() < 0.8 else [rng.randrange(ACCOUNTS) for _ in range(2)]
                    number += 1
                    try:
                        with connection.transaction():
                            connection.execute("UPDATE account SET balance = balance - 1 WHERE id = %s", (src,))
                            connection.execute("UPDATE account SET balance = balance + 1 WHERE id = %s", (dst,))
                            connection.execute("INSERT INTO ledger VALUES (%s, %s, %s, %s)", (client, number, src, dst))
                    except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
                        continue
                    acknowledged.add((client, number))
                    if number % 50 == 0:
                        try:
                            (told,) = connection.execute("SELECT sum(balance) FROM account").fetchone()
                        except psycopg.errors.SerializationFailure:
                            # An instance is restarted beneath it.
                            continue
                        if told != ACCOUNTS * 1000:
                            wrong.append(f"the sum was {told}")
        except psycopg.OperationalError:
            # The server is gone; the outcome is in doubt, and told nobody.
            time.sleep(0.05)
        except psycopg.Error as error:
            wrong.append(repr(error))
            return


@pytest.mark.slow
def test_money_stays_whole_while_all_of_it_moves(private_server, seed):
    """Transfers inside instances and across, partitions that move all the time, kill -9, and starts with other
    numbers.
    """
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
    for count in (3, 1, 2, 5):
        stopping = threading.Event()
        threads = [
            threading.Thread(target=transfers, args=(server, stopping, random.Random(rng.random()), wrong, acknowledged))
            for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        before = len(acknowledged)
        deadline = time.monotonic() + TIMEOUT_S
        moved = 0
        with server.connect(autocommit=True) as admin:
            while len(acknowledged) < before + 300 and time.monotonic() < deadline and not wrong:
                if count > 1:
                    admin.execute("SELECT logstead_move_partition(%s, %s)", (rng.randrange(PARTITIONS), rng.randrange(count)))
                    moved += 1
                time.sleep(0.005)
            if count > 1:
                found = instances(admin)
                assert sum(row["transactions_inside"] + row["transactions_across"] for row in found.values()) >= 300
                assert sum(row["partitions_in"] for row in found.values()) > 0
        assert len(acknowledged) >= before + 300, "clients go on"
        # In the middle of it.
        server.kill()
        stopping.set()
        for thread in threads:
            thread.join(TIMEOUT_S)
            assert not thread.is_alive()
        assert not wrong, wrong[:10]
        following = {3: 1, 1: 2, 2: 5, 5: 3}[count]
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


@pytest.mark.slow
def test_sessions_move_while_the_server_stops(divided, seed):
    """Nobody on the way between two workers is forgotten: the stop comes to its end."""
    rng = random.Random(seed)
    table(divided)
    stopping = threading.Event()
    endings: list[str] = []

    def reads():
        try:
            with divided.connect(autocommit=True) as connection:
                while not stopping.is_set():
                    connection.execute("SELECT v FROM t WHERE id = 1")
        except psycopg.OperationalError:
            # Told so, or cut off in the middle of a request.
            endings.append("over")

    threads = [threading.Thread(target=reads) for _ in range(8)]
    for thread in threads:
        thread.start()
    with divided.connect(autocommit=True) as admin:
        for _ in range(100):
            own_all(admin, rng.randrange(INSTANCES))
        assert total(admin, "sessions_in") > 0
    assert divided.stop() == 0
    stopping.set()
    for thread in threads:
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()
    assert endings == ["over"] * 8, endings
    assert "panicked" not in divided.output_text()
