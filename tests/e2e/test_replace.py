"""Replacing a server by another process under its clients: `serve --replace`, and SIGUSR2.

Clients keep their connections, with all that they can see of their sessions; nobody's transaction fails that ends in time. Whatever fails
before everything is the other process's leaves the server as it was.
"""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import threading
import time

import psycopg
import pytest
from harness import LogsteadServer, ServerError, alive, wait_until
from test_replica import ReplicaServer, pair
from transfers import Bank

pytestmark = pytest.mark.logstead_only


def successor(server: LogsteadServer, *arguments: str) -> LogsteadServer:
    """Another process for the same data, not yet started."""
    other = type(server).__new__(type(server))
    other.__dict__.update(server.__dict__)
    other.process, other.output = None, []
    other.arguments = [*server.arguments, "--replace", *arguments]
    return other


def replace(server: LogsteadServer, *arguments: str) -> None:
    """Has the server replaced; afterwards it is the new process."""
    old, port, other = server.process, server.port, successor(server, *arguments)
    try:
        other.start()
    except ServerError as error:
        raise AssertionError(f"{error}\nof the one before:\n{server.output_text()}") from error
    assert old.wait(60) == 0, server.output_text()
    assert other.port == port
    server.process, server.output = other.process, other.output


@pytest.fixture
def running(tmp_path) -> LogsteadServer:
    """A server that may be replaced."""
    server = LogsteadServer(tmp_path / "server")
    server.start()
    yield server
    server.kill()


def test_a_session_goes_on_with_all_that_its_client_can_see(running):
    """Settings, roles, prepared statements, channels, sequences, random numbers, and the cancel key."""
    running.execute(
        "CREATE ROLE worker",
        "CREATE TABLE t (id int PRIMARY KEY, v text)",
        "INSERT INTO t VALUES (1, 'one'), (2, 'two')",
        "GRANT SELECT ON t TO worker",
        "CREATE SEQUENCE s",
        "CREATE SCHEMA other",
        "CREATE DATABASE second",
    )
    session = running.connect(autocommit=True, application_name="it", options="-c work_mem=7MB")
    session.prepare_threshold = 0
    session.execute("SET search_path = other, public")
    session.execute("SET my.own = 'kept'")
    session.execute("SET timezone = 'Asia/Tokyo'")
    session.execute("SET statement_timeout = '50s'")
    session.execute("SELECT nextval('s')")
    session.execute("LISTEN news")
    session.execute("SELECT setseed(0.25)")
    session.execute("SELECT random()")
    # One of several statements in a text, whose parameter's type is found out.
    session.execute("SELECT 1; PREPARE by_id AS SELECT v FROM t WHERE id = $1; SELECT 2", prepare=False)
    assert session.execute("SELECT v FROM t WHERE id = %s", (2,)).fetchone() == ("two",)
    seen = """SELECT pg_backend_pid(), current_user, session_user, current_schemas(false), current_setting('my.own'), current_setting('work_mem'),
        current_setting('timezone'), current_setting('statement_timeout'), current_setting('application_name'), currval('s'), lastval(),
        (SELECT array_agg(pg_listening_channels) FROM pg_listening_channels()),
        (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()),
        (SELECT client_port FROM pg_stat_activity WHERE pid = pg_backend_pid()),
        (SELECT array_agg((name, statement, parameter_types, from_sql) ORDER BY name) FROM pg_prepared_statements WHERE from_sql)"""
    roled = running.connect(autocommit=True, dbname="second")
    roled.execute("SET ROLE worker")
    before = session.execute(seen).fetchone()
    process = running.process.pid
    running.execute("NOTIFY news, 'before'")
    replace(running)
    assert running.process.pid != process
    assert session.execute(seen).fetchone() == before
    assert session.execute("EXECUTE by_id(1)").fetchone() == ("one",)
    assert session.execute("SELECT v FROM t WHERE id = %s", (1,)).fetchone() == ("one",)
    (after,) = session.execute("SELECT random()").fetchone()
    fresh = running.execute("SELECT setseed(0.25)", "SELECT 1")
    assert fresh == [(1,)]
    with running.connect(autocommit=True) as other:
        other.execute("SELECT setseed(0.25)")
        other.execute("SELECT random()")
        assert other.execute("SELECT random()").fetchone() == (after,)
        other.execute("NOTIFY news, 'after'")
    told = [n.payload for n in session.notifies(timeout=30, stop_after=2)]
    assert told == ["before", "after"]
    assert roled.execute("SELECT current_database(), current_user, session_user").fetchone() == ("second", "worker", "postgres")
    session.execute("RESET ALL")
    assert session.execute("SHOW work_mem").fetchone() == ("7MB",), "what RESET goes back to"
    # The cancel key that the client has is the session's.
    canceller = threading.Timer(0.5, session.cancel)
    canceller.start()
    with pytest.raises(psycopg.errors.QueryCanceled):
        session.execute("SELECT pg_sleep(60)")
    # And new sessions have other numbers.
    pids = running.execute("SELECT count(*), count(DISTINCT pid) FROM pg_stat_activity WHERE backend_type = 'client backend'")
    assert pids[0][0] == pids[0][1] >= 3
    session.close()
    roled.close()
    assert running.stop() == 0


def test_sockets_of_the_file_system_and_of_metrics_go_along(running, tmp_path):
    """A client of such a socket stays; whoever connects later finds the same files and ports."""
    running.stop()
    metrics = tmp_path / "sockets"
    metrics.mkdir()
    running.arguments += ["--unix-socket-directories", str(metrics), "--metrics-listen", "127.0.0.1:0"]
    running.start()
    (port,) = re.findall(r"metrics at http://127\.0\.0\.1:(\d+)/", running.output_text())
    local = psycopg.connect(host=str(metrics), port=running.port, user="postgres", dbname="postgres", autocommit=True)
    local.execute("CREATE TABLE t (id int)")
    replace(running)
    local.execute("INSERT INTO t VALUES (1)")
    with psycopg.connect(host=str(metrics), port=running.port, user="postgres", dbname="postgres") as later:
        assert later.execute("SELECT count(*) FROM t").fetchone() == (1,)
    assert re.findall(r"metrics at http://127\.0\.0\.1:(\d+)/", running.output_text()) == [port]
    lock = (metrics / f".s.PGSQL.{running.port}.lock").read_text().splitlines()
    assert lock[0] == str(running.process.pid)
    local.close()
    assert running.stop() == 0
    assert list(metrics.iterdir()) == []


def test_a_transaction_has_its_time_and_no_more(running):
    """One that ends in time is acknowledged; one that does not is told 57P01, and nothing of it is there."""
    running.execute("CREATE TABLE t (id int PRIMARY KEY)")
    with running.connect() as short, running.connect() as long:
        short.execute("INSERT INTO t VALUES (1)")
        long.execute("INSERT INTO t VALUES (2)")
        replaced = threading.Thread(target=lambda: replace(running))
        old = running.process.pid
        replaced.start()
        # It begins a transaction no more once the pause has begun, and the open one goes on.
        wait_until(lambda: "sessions pause" in running.output_text(), what="the pause")
        short.execute("INSERT INTO t VALUES (3)")
        short.commit()
        replaced.join()
        assert not alive(old)
        assert short.execute("SELECT array_agg(id ORDER BY id) FROM t").fetchone() == ([1, 3],)
        with pytest.raises(psycopg.OperationalError):
            long.execute("SELECT 1")


def test_what_is_one_process_s_alone_ends(running, certificate):
    """Temporary tables, held cursors, advisory locks and encryption: 57P01. Without them the session would have gone
    on.
    """
    running.stop()
    running.arguments += ["--ssl", "on", "--ssl-cert-file", str(certificate / "server.crt"), "--ssl-key-file", str(certificate / "server.key")]
    running.start()
    ends = {
        "a temporary table": ("CREATE TEMP TABLE own (id int)",),
        "a held cursor": ("DECLARE c CURSOR WITH HOLD FOR SELECT generate_series(1, 9)",),
        "an advisory lock": ("SELECT pg_advisory_lock(7)",),
        "encryption": (),
    }
    stays = {
        "a dropped temporary table": ("CREATE TEMP TABLE own (id int)", "DROP TABLE own"),
        "a cursor that was closed": ("BEGIN", "DECLARE c CURSOR FOR SELECT 1", "COMMIT"),
        "a lock given back": ("SELECT pg_advisory_lock(8)", "SELECT pg_advisory_unlock(8)"),
        "nothing": (),
    }
    sessions = {}
    for name, statements in {**ends, **stays}.items():
        sessions[name] = running.connect(autocommit=True, sslmode="require" if name == "encryption" else "disable")
        for statement in statements:
            sessions[name].execute(statement)
    replace(running)
    for name, session in sessions.items():
        if name in stays:
            assert session.execute("SELECT 1").fetchone() == (1,), name
            continue
        told = []
        session.add_notice_handler(lambda notice: told.append(notice.sqlstate))
        with pytest.raises(psycopg.OperationalError) as error:
            session.execute("SELECT 1")
            session.execute("SELECT 1")
        assert "57P01" in told or "administrator command" in str(error.value), (name, error.value)
    # Their locks are free.
    assert running.execute("SELECT pg_try_advisory_lock(7)") == [(True,)]


def message(kind: bytes, body: bytes) -> bytes:
    """A message of the protocol."""
    return kind + (len(body) + 4).to_bytes(4, "big") + body


def test_half_a_message_goes_along(running):
    """What came before the pause and what comes behind it make one message."""
    running.execute("CREATE TABLE t (id int)")
    with socket.create_connection((running.host, running.port), timeout=60) as client:
        startup = b"\0\3\0\0user\0postgres\0database\0postgres\0\0"
        client.sendall((len(startup) + 4).to_bytes(4, "big") + startup)
        reader = client.makefile("rb")
        while True:
            kind = reader.read(1)
            body = reader.read(int.from_bytes(reader.read(4), "big") - 4)
            if kind == b"Z":
                assert body == b"I"
                break
        whole = message(b"Q", b"INSERT INTO t VALUES (42)\0")
        client.sendall(whole[:9])
        # The server has read it.
        time.sleep(0.3)
        replace(running)
        client.sendall(whole[9:])
        assert reader.read(1) == b"C"
        reader.read(int.from_bytes(reader.read(4), "big") - 4)
        assert reader.read(1) == b"Z"
    assert running.execute("SELECT id FROM t") == [(42,)]


def test_whoever_connects_meanwhile_waits(running):
    """While a transaction takes its time nobody is refused, also one that has connected and said nothing; requests
    to cancel are heard.
    """
    running.stop()
    running.arguments += ["--replace-grace", "60s"]
    running.start()
    running.execute("CREATE TABLE t (id int)")
    silent = socket.create_connection((running.host, running.port), timeout=60)
    slow = running.connect(autocommit=True)
    failed = []

    def runs():
        try:
            slow.execute("SELECT pg_sleep(50)")
        except psycopg.errors.QueryCanceled:
            failed.append("cancelled")

    sleeper = threading.Thread(target=runs)
    sleeper.start()
    wait_until(lambda: running.execute("SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep(50)' AND state = 'active' AND pid <> pg_backend_pid()"),
               what="the sleeper")  # fmt: skip
    replaced = threading.Thread(target=lambda: replace(running))
    replaced.start()
    wait_until(lambda: "sessions pause" in running.output_text(), what="the pause")
    answers = []
    late = threading.Thread(target=lambda: answers.append(running.execute("SELECT 7")))
    late.start()
    time.sleep(0.3)
    assert answers == [] and replaced.is_alive()
    slow.cancel()
    for thread in (sleeper, replaced, late):
        thread.join(60)
        assert not thread.is_alive()
    assert (failed, answers) == (["cancelled"], [[(7,)]])
    startup = b"\0\3\0\0user\0postgres\0\0"
    silent.sendall((len(startup) + 4).to_bytes(4, "big") + startup)
    assert silent.recv(1) == b"R"
    silent.close()
    assert slow.execute("SELECT 8").fetchone() == (8,)


@pytest.mark.parametrize(("mode", "rounds"), (pytest.param("simple", 4, marks=pytest.mark.long), ("prepared", 4), pytest.param("prepared", 200, marks=pytest.mark.long)))
def test_pgbench_does_not_notice(running, mode, rounds):
    """Sixteen clients, and an application that keeps its connections: no failed transaction, whatever number of
    replacements.
    """
    # However slow the machine is: a transaction that has no time left fails, and that is not what is asked here.
    running.stop()
    running.arguments += ["--replace-grace", "60s"]
    running.start()
    running.run("pgbench", "-i", "-s", "4", "-q")
    bank = Bank(7, clients=2, readers=1).open(running)
    bank.start(running)
    bench = subprocess.Popen(["pgbench", "-c", "16", "-j", "2", "-T", "7200", "-M", mode, "-n"], env=running.environment(),
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # fmt: skip
    try:
        for _ in range(rounds):
            time.sleep(1)
            replace(running)
            bank.assert_right()
            assert bench.poll() is None, bench.communicate()[0]
        # It ends before its time: all that it has begun is answered.
        bench.send_signal(signal.SIGALRM)
        output, _ = bench.communicate(timeout=120)
    finally:
        bench.kill()
    bank.stop()
    assert not bank.endings, bank.endings
    bank.check(running)
    assert bench.returncode == 0, output
    assert "number of failed transactions: 0 (0.000%)" in output, output
    history, branches, tellers, accounts = running.execute(
        "SELECT (SELECT sum(delta) FROM pgbench_history), (SELECT sum(bbalance) FROM pgbench_branches),"
        " (SELECT sum(tbalance) FROM pgbench_tellers), (SELECT sum(abalance) FROM pgbench_accounts)")[0]  # fmt: skip
    assert history == branches == tellers == accounts


def test_a_signal_has_the_server_replaced(running):
    """SIGUSR2 starts the program that is now at the server's path."""
    session = running.connect(autocommit=True)
    old = running.process
    old.send_signal(signal.SIGUSR2)
    assert old.wait(60) == 0, running.output_text()
    assert session.execute("SELECT 1").fetchone() == (1,)
    replacing = re.findall(r"replacing process (\d+)", running.output_text())
    assert replacing == [str(old.pid)]
    session.close()
    # It is in the process group that a kill of this server kills.
    os.killpg(old.pid, signal.SIGTERM)
    wait_until(lambda: "stopped" in running.output_text(), what="the end of the successor")


@pytest.mark.parametrize("rounds", (12, pytest.param(100, marks=pytest.mark.long)))
def test_a_successor_that_dies_leaves_the_server_as_it_was(running, seed, rounds):
    """Killed at any moment. Once it has everything the server before has ended: then it is as if that had been
    killed.
    """
    rng = random.Random(seed)
    bank = Bank(seed, clients=3, readers=1).open(running)
    bank.start(running)
    went_on = 0
    for _ in range(rounds):
        other = successor(running)
        other.start(wait=False)
        time.sleep(rng.random() * 0.6)
        other.kill()
        old = running.process

        def has_decided() -> bool:
            """It answers, or it has ended: once it has given the log up it may take a while over that."""
            if old.poll() is not None:
                return True
            try:
                return running.execute("SELECT 1") == [(1,)]
            except psycopg.OperationalError:
                return False

        time.sleep(0.2)
        wait_until(has_decided, what="an answer, or the end")
        if old.poll() is None:
            went_on += 1
        else:
            assert old.returncode == 0, running.output_text()
            bank.ended(old.pid)
            running.start()
            bank.ended(other.process.pid)
            bank.stop()
            bank.start(running)
        goal = bank.acknowledged() + 5
        wait_until(lambda: (bank.assert_right(), bank.acknowledged() >= goal)[1], timeout_s=120, what="transfers")
    bank.stop()
    bank.check(running)
    assert went_on >= 1
    assert running.stop() == 0


def test_what_is_refused_changes_nothing(running, tmp_path):
    """No server there, a replica, wrong settings, a home that only its process has: a clear error each, and the
    server goes on.
    """

    def refused(*command: str) -> str:
        done = subprocess.run([running.binary(), "serve", "--replace", *command], capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert done.returncode in (1, 2), done
        return done.stderr

    session = running.connect(autocommit=True)
    session.execute("CREATE TEMP TABLE own AS SELECT 1 AS id")
    assert "no server of this user runs there" in refused("--data", str(tmp_path / "nothing"))
    assert "takes a primary's place" in refused("--replica-of", running.home)
    assert "takes a primary's place" in refused("--data", running.home, "--take-over")
    assert "price_list" in refused("--data", running.home, "--price-list", str(tmp_path / "none"))
    assert "nobody could prove" in refused("--data", running.home, "--listen", "0.0.0.0:0")
    assert "workers" in refused("--data", running.home, "--workers", "none")
    # What is found out when everything has been sent already.
    assert "cannot listen" in refused("--data", running.home, "--listen", "127.0.0.1:0", "--metrics-listen", "192.0.2.1:1")
    (directory,) = running.execute("SHOW unix_socket_directories")[0]
    with psycopg.connect(host=directory, port=running.port, user="postgres", dbname="postgres") as local:
        assert local.execute("SELECT 1").fetchone() == (1,), "the socket's file is there"
    memory = LogsteadServer(tmp_path / "memory")
    memory.arguments = ["--home", "memory:"]
    memory.command = lambda *arguments: [memory.binary(), "serve", "--listen", "127.0.0.1:0", *memory.arguments, *arguments]
    memory.start()
    assert "memory" in refused("--home", "memory:")
    assert memory.stop() == 0
    # Also what a process that has paused held alone.
    assert session.execute("SELECT id FROM own").fetchone() == (1,)
    assert running.execute("SELECT 1") == [(1,)]


def test_a_successor_that_dies_in_the_pause_ends_it(running):
    """However long transactions may take."""
    running.stop()
    running.arguments += ["--replace-grace", "1h"]
    running.start()
    with running.connect() as long:
        long.execute("CREATE TABLE t (id int)")
        other = successor(running)
        other.start(wait=False)
        wait_until(lambda: "sessions pause" in running.output_text(), what="the pause")
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(running.execute("SELECT 1")))
        waiting.start()
        time.sleep(0.3)
        assert answers == []
        other.kill()
        waiting.join(60)
        assert answers == [[(1,)]]
        long.commit()
    # And the next one is not in the way of what was left of it.
    session = running.connect(autocommit=True)
    replace(running)
    assert session.execute("SELECT count(*) FROM t").fetchone() == (0,)
    session.close()


def test_sessions_are_terminated_before_and_behind_a_hand_over(running):
    """pg_terminate_backend reaches one that pauses, and one that goes on in the new process, by the same number."""
    running.stop()
    running.arguments += ["--replace-grace", "1h"]
    running.start()
    pausing, leaving = (running.connect(autocommit=True) for _ in range(2))
    pids = [session.info.backend_pid for session in (pausing, leaving)]

    def ends(session) -> None:
        with pytest.raises(psycopg.errors.AdminShutdown):
            session.execute("SELECT 1")

    with running.connect() as long:
        long.execute("CREATE TABLE t (id int)")
        other = successor(running)
        other.start(wait=False)
        wait_until(lambda: "sessions pause" in running.output_text(), what="the pause")
        assert long.execute("SELECT pg_terminate_backend(%s)", (pids[0],)).fetchone() == (True,)
        ends(pausing)
        old = running.process
        long.commit()
        assert old.wait(60) == 0, running.output_text() + other.output_text()
    wait_until(lambda: "listening on" in other.output_text(), what="the new process")
    running.process, running.output = other.process, other.output
    assert leaving.execute("SELECT pg_backend_pid()").fetchone() == (pids[1],)
    assert running.execute(f"SELECT pg_terminate_backend({pids[0]}), pg_terminate_backend({pids[1]})") == [(False, True)]
    ends(leaving)


def test_a_successor_that_stands_still_for_a_moment_goes_on(running, seed):
    """SIGSTOP and SIGCONT at any moment, as of a debugger or a paused container: it takes over all the same."""
    rng = random.Random(seed)
    session = running.connect(autocommit=True)
    for _ in range(6):
        old, other = running.process, successor(running)
        other.start(wait=False)
        time.sleep(rng.random() * 0.5)
        other.process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        other.process.send_signal(signal.SIGCONT)
        # Neither ends what it has begun.
        other.process.send_signal(signal.SIGHUP if "replacing" in other.output_text() else signal.SIGCONT)
        assert old.wait(60) == 0, running.output_text() + other.output_text()
        running.process, running.output = other.process, other.output
        assert session.execute("SELECT 1").fetchone() == (1,)
    session.close()


def test_of_two_successors_one_takes_over(running):
    """The other one is told, and clients notice nothing of either."""
    session = running.connect(autocommit=True)
    old, others = running.process, [successor(running), successor(running)]
    for other in others:
        other.start(wait=False)
    assert old.wait(60) == 0, running.output_text()
    wait_until(lambda: any(not other.running() for other in others), what="the end of one of them")
    assert session.execute("SELECT 1").fetchone() == (1,)
    (loser,) = [other for other in others if not other.running()]
    (winner,) = [other for other in others if other.running()]
    assert loser.process.returncode == 1 and "--replace: the server" in loser.output_text(), loser.output_text()
    running.process, running.output = winner.process, winner.output
    session.close()


def test_no_grace_is_for_transactions_only(running):
    """With `replace_grace = 0` sessions at rest go along all the same, however many."""
    running.stop()
    running.arguments += ["--replace-grace", "0"]
    running.start()
    sessions = [running.connect(autocommit=True) for _ in range(50)]
    open_one = running.connect()
    open_one.execute("SELECT 1")
    replace(running)
    for session in sessions:
        session.execute("SELECT 1")
        session.close()
    with pytest.raises(psycopg.OperationalError):
        open_one.execute("SELECT 1")


def test_no_notification_is_lost_among_sessions_that_are_restored(running):
    """One session's NOTIFY waits in its socket; the listeners are restored behind it."""
    with running.connect(autocommit=True) as setup:
        setup.execute("CREATE TABLE t (id int)")
    notifier = running.connect(autocommit=True)
    listeners = [running.connect(autocommit=True) for _ in range(40)]
    for listener in listeners:
        listener.execute("LISTEN news")
    for turn in range(3):
        sent = threading.Event()

        def notify(turn=turn, sent=sent):
            for number in range(40):
                notifier.execute(f"NOTIFY news, '{turn} {number}'")
                if number == 5:
                    sent.set()

        sender = threading.Thread(target=notify)
        sender.start()
        sent.wait(60)
        replace(running)
        sender.join(60)
        for listener in listeners:
            told = [n.payload for n in listener.notifies(timeout=30, stop_after=40)]
            assert told == [f"{turn} {number}" for number in range(40)]
    for session in (notifier, *listeners):
        session.close()


def test_a_statement_keeps_the_shape_that_its_client_knows(running):
    """A prepared statement whose result has another shape now is refused, as it would have been; drivers prepare it
    again.
    """
    running.execute("CREATE TABLE t (id int, v text)", "INSERT INTO t VALUES (1, 'one')")
    session = running.connect(autocommit=True)
    session.execute("PREPARE all_of AS SELECT * FROM t")
    session.execute("EXECUTE all_of")
    replace(running)
    assert session.execute("EXECUTE all_of").fetchall() == [(1, "one")]
    running.execute("ALTER TABLE t ADD w int")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="cached plan must not change result type"):
        session.execute("EXECUTE all_of")
    session.close()


def test_the_rest_of_a_copy_that_failed_is_no_message(running):
    """Half of a CopyData message has come when COPY fails and the session pauses: the other half stays data,
    whatever it looks like.
    """
    running.execute("CREATE TABLE t (id int)", "CREATE TABLE precious (id int)")
    with socket.create_connection((running.host, running.port), timeout=60) as client:
        startup = b"\0\3\0\0user\0postgres\0database\0postgres\0\0"
        client.sendall((len(startup) + 4).to_bytes(4, "big") + startup)
        reader = client.makefile("rb")

        def until(wanted: bytes) -> list[bytes]:
            kinds = []
            while True:
                kinds.append(reader.read(1))
                reader.read(int.from_bytes(reader.read(4), "big") - 4)
                if kinds[-1] == wanted:
                    return kinds

        until(b"Z")
        client.sendall(message(b"Q", b"COPY t FROM STDIN\0"))
        until(b"G")
        evil = message(b"Q", b"DROP TABLE precious\0")
        whole = message(b"d", b"no number\n" + b"1\n" * 200_000 + evil)
        client.sendall(whole[: -len(evil)])
        assert b"E" in until(b"Z")
        replace(running)
        client.sendall(whole[-len(evil) :] + message(b"f", b"\0") + message(b"Q", b"SELECT 1\0"))
        assert until(b"Z") == [b"T", b"D", b"C", b"Z"]
    assert running.execute("SELECT count(*) FROM precious") == [(0,)]


def test_limits_are_for_those_who_come_anew(running):
    """Roles' and databases' limits that were lowered meanwhile, and a right to connect that was taken: the session
    was let in before.
    """
    running.execute("CREATE ROLE worker LOGIN", "CREATE DATABASE second")
    one = psycopg.connect(host=running.host, port=running.port, user="worker", dbname="second", autocommit=True)
    two = psycopg.connect(host=running.host, port=running.port, user="worker", dbname="second", autocommit=True)
    running.execute("ALTER ROLE worker CONNECTION LIMIT 1", "REVOKE CONNECT ON DATABASE second FROM PUBLIC", "ALTER DATABASE second CONNECTION LIMIT 1")
    replace(running, "--set", "max_connections=4")
    for session in (one, two):
        assert session.execute("SELECT current_user").fetchone() == ("worker",)
        session.close()


def test_a_home_with_a_lease_changes_hands(tmp_path, seed):
    """At a store: the lease is given back and taken, with transfers going on and judged."""
    with pair("dev-bucket", tmp_path, replicas=0, arguments=("--lease-duration", "5s", "--replace-grace", "60s")) as (server, _):
        bank = Bank(seed, clients=4, readers=2).open(server)
        bank.start(server)
        for _ in range(4):
            goal = bank.acknowledged() + 20
            wait_until(lambda: (bank.assert_right(), bank.acknowledged() >= goal)[1], timeout_s=120, what="transfers")
            replace(server)
        bank.stop()
        bank.check(server)
        assert server.stop() == 0


def test_replicas_follow_the_new_process(tmp_path):
    """A replica's stream ends, and it follows the new process by itself."""
    server = LogsteadServer(tmp_path / "server")
    server.start()
    try:
        server.execute("CREATE TABLE t (id int)")
        replica = ReplicaServer(tmp_path / "replica", server.home)
        replica.arguments = [*replica.arguments, "--primary-conninfo", f"host={server.host} port={server.port} user=postgres"]
        replica.start()
        try:
            server.execute("INSERT INTO t VALUES (1)")
            replica.follows(server)
            replace(server)
            server.execute("INSERT INTO t VALUES (2)")
            replica.follows(server)
            assert replica.execute("SELECT count(*) FROM t") == [(2,)]
            wait_until(lambda: server.execute("SELECT count(*) FROM pg_stat_replication") == [(1,)], what="the stream")
        finally:
            replica.kill()
    finally:
        server.kill()
