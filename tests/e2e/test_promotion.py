"""Promotion: a replica becomes the primary, in its process and at its address.

Only whoever has the log is the primary: a promotion is refused while another server has it, and then nothing changes. Once it is
had, everything that was acknowledged is there, and the server before can acknowledge nothing more.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import struct
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from harness import wait_until
from test_operation import refused
from test_replica import Judges, ReplicaServer, answer, local, metrics_port, pair  # noqa: F401 a fixture
from transfers import Bank

pytestmark = pytest.mark.logstead_only

SHORT_LEASE = ("--lease-duration", "3s")


def promote(replica: ReplicaServer, *arguments: str) -> subprocess.CompletedProcess:
    """`logstead promote`, as a person would say it."""
    where = f"host={replica.host} port={replica.port} user=postgres"
    return subprocess.run([replica.binary(), "promote", *arguments, where], capture_output=True, text=True, timeout=120)


def work(bank: Bank, server, transfers: int = 40) -> None:
    """Transfers at a server, and some of them acknowledged."""
    bank.start(server)
    goal = bank.acknowledged() + transfers

    def there() -> bool:
        bank.assert_right()
        return bank.acknowledged() >= goal

    wait_until(there, timeout_s=120, what="transfers")


def is_primary(server) -> bool:
    return server.execute("SELECT pg_is_in_recovery(), current_setting('transaction_read_only')") == [(False, "off")]


@pytest.mark.parametrize("where", ("file", "dev-bucket"))
def test_everything_acknowledged_is_there_at_the_promoted_replica(where, tmp_path, seed):
    """Transfers, kill -9 of the primary, promotion; and back again, the old primary as the replica. Twice."""
    with pair(where, tmp_path, arguments=SHORT_LEASE) as (primary, (replica,)):
        replica.arguments += SHORT_LEASE
        replica.restart_after_kill()
        bank = Bank(seed, clients=3, readers=1).open(primary)
        replica.follows(primary)
        work(bank, primary)
        reader = replica.connect(autocommit=True)
        (before,) = reader.execute("SELECT count(*) FROM ledger").fetchone()
        process = replica.process.pid
        pid = primary.process.pid
        primary.kill()
        bank.ended(pid)
        bank.stop()
        done = promote(replica)
        assert (done.returncode, done.stdout) == (0, "promoted\n"), done.stderr + replica.output_text()
        wait_until(lambda: is_primary(replica), what="the promoted server")
        # In the same process, and its sessions go on.
        assert replica.process.pid == process and replica.running()
        assert reader.execute("SELECT count(*) >= %s, pg_is_in_recovery() FROM ledger", (before,)).fetchone() == (True, False)
        reader.close()
        assert replica.execute("SELECT count(*) FROM ledger")[0][0] >= before
        work(bank, replica)
        # The old one comes back as a replica of it.
        url = replica.url
        back = ReplicaServer(tmp_path / "back", url, replica.credentials)
        back.arguments += SHORT_LEASE
        try:
            back.start()
            back.follows(replica)
            pid = replica.process.pid
            replica.kill()
            bank.ended(pid)
            bank.stop()
            assert promote(back).returncode == 0, back.output_text()
            wait_until(lambda: is_primary(back), what="the second promoted server")
            work(bank, back)
            bank.stop()
            bank.check(back)
            back.execute("CHECKPOINT", "VACUUM", "CREATE TABLE made (id int)")
            assert back.stop() == 0
        finally:
            back.kill()
        # What it has written is a log like any other.
        primary.start()
        bank.check(primary)


@pytest.mark.parametrize("sslmode", ("disable", "require"))
def test_sessions_live_through_a_promotion(local, certificate, sslmode):  # noqa: F811 the fixture
    """With what their clients know of them; they may write from then on. A block has `replace_grace`."""
    primary, replica = local
    replica.kill()
    replica.arguments += ["--set", "replace_grace=300ms", "--ssl", "on"]
    replica.arguments += ["--ssl-cert-file", str(certificate / "server.crt"), "--ssl-key-file", str(certificate / "server.key")]
    replica.start()
    primary.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)", "CREATE ROLE reader", "GRANT ALL ON t TO reader")
    replica.follows(primary)
    idle, asking, blocked = (replica.connect(autocommit=autocommit, sslmode=sslmode) for autocommit in (True, True, False))
    arriving = socket.create_connection((replica.host, replica.port))
    idle.execute("SET work_mem = '7MB'")
    idle.execute("SET ROLE reader")
    idle.execute("PREPARE p (int) AS SELECT id + $1 FROM t")
    pid = idle.info.backend_pid
    assert idle.info.parameter_status("in_hot_standby") == "on"
    blocked.execute("SELECT * FROM t")
    primary.kill()
    assert asking.execute("SELECT pg_promote()").fetchone() == (True,)
    wait_until(lambda: is_primary(replica), what="the promoted server")
    # Whoever asked is there too.
    assert asking.execute("SELECT pg_is_in_recovery()").fetchone() == (False,)
    assert idle.execute("SELECT current_setting('work_mem'), current_user, pg_backend_pid()").fetchone() == ("7MB", "reader", pid)
    assert idle.execute("EXECUTE p (10)").fetchone() == (11,)
    assert idle.info.parameter_status("in_hot_standby") == "off"
    idle.execute("INSERT INTO t VALUES (2)")
    # More than one record of an encrypted stream, both ways.
    long = "0123456789abcdef" * 65536
    assert idle.execute("SELECT %s::text", (long,)).fetchone() == (long,)
    idle.execute("RESET ROLE")
    idle.execute("CREATE TABLE made (id int)")
    # Its cancel key is the one that it was given.
    with ThreadPoolExecutor() as beside:
        cancelled = beside.submit(lambda: (time.sleep(0.5), idle.cancel_safe()))
        with pytest.raises(psycopg.errors.QueryCanceled):
            idle.execute("SELECT pg_sleep(60)")
        cancelled.result()
    with pytest.raises(psycopg.errors.AdminShutdown):
        blocked.execute("SELECT 1")
    # One that had only connected is served by the primary.
    arriving.sendall(struct.pack("!ii", 8, 80877103))
    assert arriving.recv(1) == b"S"
    arriving.close()
    assert idle.pgconn.ssl_in_use == asking.pgconn.ssl_in_use == (sslmode == "require")
    assert replica.execute("SELECT id FROM t ORDER BY 1") == [(1,), (2,)]
    assert replica.stop() == 0


def test_a_stop_is_heard_while_sessions_pause(local):  # noqa: F811 the fixture
    """SIGTERM when the log is had and a transaction keeps the promotion from going on: the server ends, and the log is free."""
    primary, replica = local
    replica.kill()
    # A stop that is heard only after the pause comes too late for this test.
    replica.arguments += ["--set", "replace_grace=600s", "--set", "shutdown_grace=1s"]
    replica.start()
    primary.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    replica.follows(primary)
    blocked = replica.connect()
    assert blocked.execute("SELECT * FROM t").fetchall() == [(1,)]
    primary.kill()
    assert promote(replica).returncode == 0, replica.output_text()
    wait_until(lambda: "sessions pause" in replica.output_text(), what="the pause")
    assert blocked.execute("SELECT pg_is_in_recovery()").fetchone() == (True,)
    assert replica.stop() == 0
    with pytest.raises(psycopg.OperationalError):
        blocked.execute("SELECT 1")
    primary.start()
    assert primary.execute("INSERT INTO t VALUES (2)", "SELECT id FROM t ORDER BY 1") == [(1,), (2,)]


@pytest.mark.parametrize("rounds", (5, pytest.param(200, marks=pytest.mark.long)))
def test_promotions_under_transfers_and_readers_of_three_replicas(tmp_path, seed, rounds):
    """kill -9 of the primary, promotion of any replica, the old primary back as a replica; every answer of all of
    them is judged.
    """
    rng = random.Random(seed)
    with pair("file", tmp_path, replicas=3) as (primary, replicas):
        bank = Bank(seed, clients=3, readers=1).open(primary)
        servers = list(replicas)
        for replica in servers:
            replica.follows(primary)
        # The home's first server becomes a replica of it like the others.
        back = ReplicaServer(tmp_path / "back", f"file://{primary.data}")
        try:
            with Judges(bank, servers) as judges:
                for _ in range(rounds):
                    work(bank, primary, transfers=15)
                    assert not judges.wrong, judges.wrong[:10]
                    pid, gone = primary.process.pid, primary
                    primary.kill()
                    bank.ended(pid)
                    bank.stop()
                    primary = rng.choice(servers)
                    done = promote(primary)
                    assert done.returncode == 0, done.stderr + primary.output_text()
                    wait_until(lambda server=primary: is_primary(server), what="the promoted server")
                    if gone in replicas or gone is back:
                        gone.start()
                    else:
                        back.start()
                        gone = back
                    servers = [server for server in [*replicas, back] if server is not primary and server.running()]
                    for server in servers:
                        server.follows(primary)
                    answers = judges.answers
                    wait_until(lambda seen=answers: judges.answers > seen, what="answers")
                bank.check(primary)
        finally:
            back.kill()
        assert judges.answers > rounds


@pytest.mark.parametrize("where", ("file", "dev-bucket"))
def test_a_promotion_while_the_primary_lives_is_refused(where, tmp_path):
    """Nothing changes: the primary goes on, and the replica follows, with the sessions that it had."""
    with pair(where, tmp_path, arguments=SHORT_LEASE) as (primary, (replica,)):
        replica.restart_after_kill()
        primary.execute("CREATE TABLE t (id int)", "INSERT INTO t VALUES (1)")
        replica.follows(primary)
        with replica.connect(autocommit=True) as session:
            done = promote(replica)
            assert done.returncode == 1 and "could not be promoted" in done.stderr, done
            assert session.execute("SELECT pg_is_in_recovery(), id FROM t").fetchone() == (True, 1)
        primary.execute("INSERT INTO t VALUES (2)")
        replica.follows(primary)
        assert replica.execute("SELECT count(*) FROM t, logstead_replica WHERE state = 'following'") == [(2,)]


def test_who_may_promote_and_how_it_is_said(local):  # noqa: F811 the fixture
    """pg_promote()'s own errors, as PostgreSQL has them."""
    primary, replica = local
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="recovery is not in progress"):
        primary.execute("SELECT pg_promote()")
    primary.execute("CREATE ROLE somebody LOGIN")
    replica.follows(primary)
    with psycopg.connect(host=replica.host, port=replica.port, user="somebody", dbname="postgres", autocommit=True) as session:
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for function pg_promote"):
            session.execute("SELECT pg_promote()")
    with pytest.raises(psycopg.errors.NumericValueOutOfRange, match='"wait_seconds" must not be negative or zero'):
        replica.execute("SELECT pg_promote(true, 0)")
    primary.stop()
    assert replica.execute("SELECT pg_promote()") == [(True,)]
    wait_until(lambda: is_primary(replica), what="the promoted server")
    # Who has the log is not started beside it.
    assert "in use by another server" in refused(primary)


def test_clients_find_the_promoted_replica_by_themselves(tmp_path):
    """libpq with both hosts, and the checks of proxies, before and after; the replica promotes itself."""
    listen = ("--metrics-listen", "127.0.0.1:0")
    with pair("file", tmp_path, arguments=listen) as (primary, (replica,)):
        replica.kill()
        replica.arguments += [*listen, "--promote-when-primary-lost", "on"]
        replica.start()
        primary.execute("CREATE TABLE t (id int)", "INSERT INTO t VALUES (1)")
        replica.follows(primary)
        both = f"host=127.0.0.1,127.0.0.1 port={replica.port},{primary.port} user=postgres dbname=postgres target_session_attrs=read-write"
        with psycopg.connect(both) as connection:
            assert connection.info.port == primary.port
        assert [answer(metrics_port(replica), path) for path in ("/primary", "/replica")] == [503, 200]
        primary.kill()
        wait_until(lambda: answer(metrics_port(replica), "/primary") == 200, what="the promotion")
        assert answer(metrics_port(replica), "/replica") == 503
        with psycopg.connect(both) as connection:
            assert connection.info.port == replica.port
            connection.execute("INSERT INTO t VALUES (2)")
        assert replica.execute("SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def test_a_primary_that_slept_is_fenced(tmp_path):
    """SIGSTOP of the primary; the replica promotes itself when the lease has run out. Awake again, the old one acknowledges
    nothing and ends."""
    with pair("dev-bucket", tmp_path, arguments=SHORT_LEASE) as (primary, (replica,)):
        replica.kill()
        replica.arguments += [*SHORT_LEASE, "--promote-when-primary-lost", "on"]
        replica.start()
        primary.execute("CREATE TABLE t (id int)", "INSERT INTO t VALUES (1)")
        replica.follows(primary)
        session = primary.connect(autocommit=True)
        os.kill(primary.process.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: is_primary(replica), what="the promotion")
            replica.execute("INSERT INTO t VALUES (2)")
        finally:
            os.kill(primary.process.pid, signal.SIGCONT)
        with pytest.raises(psycopg.Error):
            session.execute("INSERT INTO t VALUES (3)")
        wait_until(lambda: not primary.running(), what="the end of the old primary")
        assert replica.execute("SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def test_a_promotion_makes_no_log(tmp_path):
    """Where the home has vanished (a file system that is not mounted, a prefix that was emptied) a start would make a new, empty
    database. A promotion does not: it is refused, leaves nothing there, and succeeds once the log is back."""
    with pair("file", tmp_path) as (primary, (replica,)):
        replica.kill()
        # It does not look at the home by itself meanwhile.
        replica.arguments = ["--workers", "2", "--set", "replica_poll_interval=60s"]
        primary.execute("CREATE TABLE t (id int)", "INSERT INTO t VALUES (1)", "CHECKPOINT")
        assert primary.stop() == 0
        replica.start()
        assert replica.execute("SELECT id FROM t") == [(1,)]
        aside = primary.data.with_name("aside")
        primary.data.rename(aside)
        primary.data.mkdir(mode=0o700)
        done = promote(replica)
        assert done.returncode == 1 and "could not be promoted" in done.stderr, done
        assert os.listdir(primary.data) == []
        assert replica.execute("SELECT pg_is_in_recovery(), id FROM t") == [(True, 1)]
        primary.data.rmdir()
        aside.rename(primary.data)
        assert promote(replica).returncode == 0, replica.output_text()
        wait_until(lambda: is_primary(replica), what="the promoted server")
        replica.execute("INSERT INTO t VALUES (2)")
        assert replica.execute("SELECT id FROM t ORDER BY id") == [(1,), (2,)]
