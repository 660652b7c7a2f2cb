"""Replicas that follow by a stream from the primary: what is committed there shows at once, without a look at the home.

The stream is worth no more than the home: whatever it does not bring is read there. So it may be cut at any time, and a replica
whose stream leads nowhere, or to another database, follows all the same.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from harness import LogsteadServer, free_port, wait_until
from objectserver import ObjectServer, home
from objectstores import start as start_store
from test_authentication import encrypted, settings
from test_promotion import SHORT_LEASE, is_primary, promote, work
from test_replica import Judges, ReplicaServer
from transfers import Bank

pytestmark = pytest.mark.logstead_only

# The home is looked at so seldom that only the stream can bring anything.
SELDOM = ("--set", "replica_poll_interval=60s")


@contextmanager
def streamed(where: str, tmp_path: Path, replicas: int = 1, polls: tuple[str, ...] = SELDOM, arguments: tuple[str, ...] = ()):
    """A primary at a home of this kind, on a port that it keeps, and replicas with a stream from it."""
    port = free_port()
    with ExitStack() as stack:
        if where == "file":
            primary = LogsteadServer(tmp_path / "primary")
            primary.arguments = ["--workers", "2", *arguments]
            url, environment = f"file://{primary.data}", {}
        else:
            store = stack.enter_context(start_store(where, tmp_path))
            url, environment = home(store), store.environment
            primary = ObjectServer(tmp_path / "primary", url, environment, *arguments)
        primary.arguments += ["--listen", f"127.0.0.1:{port}"]
        stack.callback(primary.kill)
        primary.start()
        beside = [ReplicaServer(tmp_path / f"replica{number}", url, environment) for number in range(replicas)]
        for number, replica in enumerate(beside):
            conninfo = f"host=127.0.0.1 port={port} user=postgres application_name=replica{number}"
            replica.arguments = ["--workers", "2", *polls, "--primary-conninfo", conninfo]
            stack.callback(replica.kill)
            replica.start()
        for number in range(replicas):
            wait_until(lambda number=number: senders(primary).get(f"replica{number}"), what="the stream")
        yield primary, beside


def senders(primary: LogsteadServer) -> dict[str, int]:
    """The sessions that send the log, by their replicas."""
    rows = primary.execute("SELECT application_name, pid FROM pg_stat_replication WHERE state = 'streaming'")
    return dict(rows)


def feed(replica: ReplicaServer) -> str:
    return replica.execute("SELECT feed FROM logstead_replica")[0][0]


@pytest.mark.parametrize("where", ("file", "dev-bucket"))
def test_what_is_committed_shows_without_a_look_at_the_home(where, tmp_path):
    """Rows, large ones in side segments, and tables; the views at both ends say how far they are."""
    with streamed(where, tmp_path) as (primary, (replica,)):
        primary.execute("CREATE TABLE t (id int PRIMARY KEY, filling text)")
        replica.follows(primary)
        rounds = replica.execute("SELECT rounds FROM logstead_replica")[0][0]
        for number in range(1, 21):
            primary.execute(f"INSERT INTO t VALUES ({number}, repeat('x', {number % 4 * 300000}))")
            replica.follows(primary)
            assert replica.execute("SELECT count(*) FROM t") == [(number,)]
        assert feed(replica) == "stream"
        shown = replica.execute(
            "SELECT lag_csns, lag_bytes, rounds > %d, applied_csn = visible_csn FROM logstead_replica" % rounds
        )
        assert shown == [(0, 0, True, True)]
        (receiver,) = replica.execute(
            "SELECT status, sender_host, sender_port, conninfo, latest_end_lsn >= receive_start_lsn, received_tli,"
            " last_msg_receipt_time IS NOT NULL FROM pg_stat_wal_receiver"
        )
        assert receiver == ("streaming", "127.0.0.1", primary.port, f"postgres://postgres@127.0.0.1:{primary.port}", True, 1, True)
        (sender,) = primary.execute(
            "SELECT usename, application_name, host(client_addr), state, sync_state, sent_lsn >= replay_lsn, backend_type"
            " FROM pg_stat_replication r JOIN pg_stat_activity a USING (pid, usename, application_name, client_addr)".replace(
                "state, sync_state", "r.state, sync_state"
            )
        )
        assert sender == ("postgres", "replica0", "127.0.0.1", "streaming", "async", True, "walsender")
        # The replica tells what it shows, within its next keepalive at the latest.
        goal = primary.execute("SELECT pg_current_wal_flush_lsn()")[0][0]
        caught_up = f"SELECT replay_lsn >= '{goal}' AND reply_time IS NOT NULL FROM pg_stat_replication"
        wait_until(lambda: primary.execute(caught_up) == [(True,)], what="the reply")
        # The stream is to no database, and keeps nobody from copying one.
        with primary.connect(dbname="template1", autocommit=True) as connection:
            connection.execute("CREATE DATABASE copy TEMPLATE postgres")
            connection.execute("DROP DATABASE copy")
        # Others see of it that it is there.
        primary.execute("CREATE ROLE plain LOGIN")
        replica.follows(primary)
        with psycopg.connect(f"host=127.0.0.1 port={replica.port} user=plain dbname=postgres") as connection:
            assert connection.execute("SELECT count(*), count(conninfo) FROM pg_stat_wal_receiver").fetchone() == (1, 0)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("SHOW primary_conninfo")
        assert primary.execute("SELECT * FROM pg_stat_wal_receiver") == []
        assert replica.execute("SELECT * FROM pg_stat_replication") == []


@pytest.mark.parametrize("where", ("file", "dev-bucket"))
def test_every_answer_is_a_state_of_the_primary_however_the_stream_is_cut(where, tmp_path, seed):
    """Transfers, readers at two replicas; streams are ended, a replica sleeps, and the primary is killed in the middle."""
    fast = ("--set", "replica_poll_interval=20ms")
    with streamed(where, tmp_path, replicas=2, polls=fast) as (primary, replicas):
        bank = Bank(seed, clients=3, readers=1).open(primary)
        for replica in replicas:
            replica.follows(primary)
        with Judges(bank, replicas) as judges:
            for round_number in range(3):
                bank.start(primary)
                goal = bank.acknowledged() + 60

                def there() -> bool:
                    bank.assert_right()
                    assert not judges.wrong, judges.wrong[:10]
                    return bank.acknowledged() >= goal

                for _ in range(5):
                    primary.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_replication")
                    time.sleep(0.05)
                os.kill(replicas[1].process.pid, signal.SIGSTOP)
                time.sleep(0.2)
                os.kill(replicas[1].process.pid, signal.SIGCONT)
                wait_until(there, timeout_s=120, what="transfers")
                pid = primary.process.pid
                primary.restart_after_kill()
                bank.ended(pid)
                wait_until(lambda: bank.acknowledged() > goal, timeout_s=120, what="transfers after the start")
                bank.stop()
            bank.check(primary)
            for replica in replicas:
                replica.follows(primary)
            assert judges.answers > 20
        # Of the last life, by themselves.
        wait_until(lambda: len(senders(primary)) == 2, what="both streams")
        for table in ("account", "ledger", "counter"):
            query = f"SELECT * FROM {table} ORDER BY 1, 2"
            expected = primary.execute(query)
            for replica in replicas:
                assert replica.execute(query) == expected
        for replica in replicas:
            state, restarts = replica.execute("SELECT state, restarts FROM logstead_replica")[0]
            assert (state, restarts) == ("following", 0)


def test_replicas_find_the_promoted_one_by_themselves(tmp_path):
    """The stream of a replica that stays one comes from whichever of the hosts is the primary."""
    ports = [free_port() for _ in range(3)]
    hosts = ",".join("127.0.0.1" for _ in ports)
    conninfo = f"host={hosts} port={','.join(map(str, ports))} user=postgres"
    with ExitStack() as stack:
        primary = LogsteadServer(tmp_path / "primary")
        primary.arguments = ["--workers", "2", "--listen", f"127.0.0.1:{ports[0]}", *SHORT_LEASE]
        stack.callback(primary.kill)
        primary.start()
        replicas = []
        for number, port in enumerate(ports[1:]):
            replica = ReplicaServer(tmp_path / f"replica{number}", f"file://{primary.data}")
            listen = ("--listen", f"127.0.0.1:{port}")
            polls = ("--set", "replica_poll_interval=200ms")
            replica.arguments = ["--workers", "2", *listen, *polls, "--primary-conninfo", conninfo, *SHORT_LEASE]
            stack.callback(replica.kill)
            replica.start()
            replicas.append(replica)
        promoted, other = replicas
        bank = Bank(1, clients=2, readers=1).open(primary)
        for replica in replicas:
            replica.follows(primary)
            wait_until(lambda replica=replica: feed(replica) == "stream", what="the stream")
        work(bank, primary)
        pid = primary.process.pid
        primary.kill()
        bank.ended(pid)
        bank.stop()
        assert promote(promoted).returncode == 0
        wait_until(lambda: is_primary(promoted), what="the promotion")
        bank.check(promoted)
        work(bank, promoted)
        bank.stop()
        other.follows(promoted)
        wait_until(lambda: promoted.execute("SELECT count(*) FROM pg_stat_replication") == [(1,)], what="the stream")
        where = other.execute("SELECT sender_port FROM pg_stat_wal_receiver")
        assert where == [(promoted.port,)]
        bank.check(promoted)


def test_a_stream_that_leads_nowhere_is_none(tmp_path):
    """No server, another database, no right, a wrong password: the home is read, and the log of the server says why."""
    with ExitStack() as stack:
        primary, stranger = (LogsteadServer(tmp_path / name) for name in ("primary", "stranger"))
        for server in (primary, stranger):
            server.arguments = ["--workers", "2", "--set", "horizon_pause=5ms"]
            stack.callback(server.kill)
            server.start()
        primary.execute(
            "CREATE TABLE t (id int)",
            "CREATE ROLE plain LOGIN PASSWORD 'p'",
            "CREATE ROLE follower LOGIN REPLICATION PASSWORD 'right'",
            "ALTER ROLE postgres PASSWORD 'p'",
        )
        url = f"file://{primary.data}"
        at = f"host=127.0.0.1 port={primary.port}"
        for number, (conninfo, why) in enumerate(
            (
                (f"host=127.0.0.1 port={free_port()}", "refused"),
                (f"host=127.0.0.1 port={stranger.port}", "no server of the home"),
                (f"{at} user=plain password=p", "must be superuser or replication role"),
                (f"{at} user=follower password=wrong", "password authentication failed"),
                (f"{at} user=follower", "there is none in primary_conninfo"),
                (f"{at} user=follower password=right", None),
            )
        ):
            replica = ReplicaServer(tmp_path / f"replica{number}", url)
            replica.arguments += ["--primary-conninfo", conninfo]
            stack.callback(replica.kill)
            replica.start(env={"PGPASSWORD": ""} if "password" in conninfo else None)
            primary.environment = {"PGPASSWORD": "p"}
            with psycopg.connect(f"{at} user=postgres password=p dbname=postgres", autocommit=True) as connection:
                connection.execute("INSERT INTO t VALUES (1)")

            def there(replica=replica, number=number) -> bool:
                with psycopg.connect(f"host=127.0.0.1 port={replica.port} user=postgres password=p dbname=postgres") as reader:
                    return reader.execute("SELECT count(*) FROM t").fetchone() == (number + 1,)

            wait_until(there, what="the row")
            with psycopg.connect(f"host=127.0.0.1 port={replica.port} user=postgres password=p dbname=postgres") as reader:
                shown = reader.execute("SHOW primary_conninfo").fetchone()[0]
                assert "right" not in shown and "wrong" not in shown and shown.startswith("postgres://")
                if why is None:
                    wait_until(
                        lambda reader=reader: reader.execute("SELECT sender_port FROM pg_stat_wal_receiver").fetchall()
                        == [(primary.port,)],
                        what="the stream",
                    )
                else:
                    wait_until(lambda replica=replica, why=why: why in replica.output_text(), what=why)
                    assert reader.execute("SELECT * FROM pg_stat_wal_receiver").fetchall() == []
            replica.kill()


def test_a_stream_is_encrypted_as_its_connection_string_says(certificate, tmp_path):
    """`sslmode` and `sslrootcert` as libpq has them; transfers come by an encrypted stream."""
    rules = "".join(
        f'[[hba]]\ntype = "{kind}"\ndatabase = "{database}"\naddress = "all"\nmethod = "{method}"\n'
        for kind, database, method in (
            ("host", "all", "trust"),
            ("hostssl", "replication", "scram-sha-256"),
            ("hostnossl", "replication", "reject"),
        )
    )
    with ExitStack() as stack:
        primary = LogsteadServer(tmp_path / "primary")
        stack.callback(primary.kill)
        primary.start([*settings(primary, encrypted(certificate, rules)), "--workers", "2"])
        primary.execute("CREATE ROLE follower LOGIN REPLICATION PASSWORD 'right'", "CREATE TABLE t (id int, filling text)")
        (tmp_path / "with blank").mkdir()
        authority = shutil.copy(certificate / "ca.crt", tmp_path / "with blank" / "ca.crt")
        itself, other = certificate / "server.crt", certificate / "other.crt"
        at, ip = (f"host={host} port={primary.port} user=follower password=right" for host in ("localhost", "127.0.0.1"))
        for number, (conninfo, why) in enumerate(
            (
                (at, None),
                (f"{at} sslmode=require", None),
                (f"{ip} sslmode=verify-full sslrootcert='{authority}'", None),
                (f"{at} sslmode=verify-full sslrootcert={itself}", None),
                (f"host=elsewhere hostaddr=127.0.0.1 port={primary.port} user=follower password=right sslmode=verify-ca sslrootcert={itself}", None),
                (f"postgres://follower:right@localhost:{primary.port}?sslmode=verify-full&sslrootcert={str(authority).replace(' ', '%20')}", None),
                (f"{at} sslmode=disable", "rejects"),
                (f"{at} sslmode=verify-ca sslrootcert={other}", "UnknownIssuer"),
                (f"{at} sslmode=require sslrootcert={other}", "UnknownIssuer"),
                (f"host=elsewhere hostaddr=127.0.0.1 port={primary.port} user=follower password=right sslmode=verify-full sslrootcert={itself}", "elsewhere"),
                (f"{at} sslmode=verify-full sslrootcert={tmp_path}/none.crt", "none.crt"),
            )
        ):
            replica = ReplicaServer(tmp_path / f"replica{number}", f"file://{primary.data}")
            replica.arguments = ["--workers", "2", *SELDOM, "--primary-conninfo", conninfo]
            stack.callback(replica.kill)
            replica.start()
            if why is None:
                wait_until(lambda: primary.execute("SELECT count(*) FROM pg_stat_replication") == [(1,)], what="the stream")
                # More than one record of TLS at a time.
                primary.execute(f"INSERT INTO t SELECT {number}, repeat('x', 1000) FROM generate_series(1, 500)")
                replica.follows(primary)
                assert replica.execute(f"SELECT count(*), sum(length(filling)) FROM t WHERE id = {number}") == [(500, 500_000)]
            else:
                wait_until(lambda replica=replica, why=why: why in replica.output_text(), what=why)
            replica.kill()
            wait_until(lambda: primary.execute("SELECT count(*) FROM pg_stat_replication") == [(0,)], what="the stream's end")
        # A server that does not encrypt is refused by who asks for it, and is good enough for others.
        plain = LogsteadServer(tmp_path / "plain")
        stack.callback(plain.kill)
        plain.start()
        for number, (mode, why) in enumerate((("require", "does not encrypt"), ("prefer", None))):
            replica = ReplicaServer(tmp_path / f"plain{number}", f"file://{plain.data}")
            conninfo = f"host=127.0.0.1 port={plain.port} user=postgres sslmode={mode}"
            replica.arguments = ["--workers", "2", *SELDOM, "--primary-conninfo", conninfo]
            stack.callback(replica.kill)
            replica.start()
            if why is None:
                wait_until(lambda: plain.execute("SELECT count(*) FROM pg_stat_replication") == [(1,)], what="the stream")
            else:
                wait_until(lambda replica=replica, why=why: why in replica.output_text(), what=why)


def test_the_primary_is_asked_for_its_home(tmp_path):
    """`--replica-of postgres://...`: the home and the stream by one connection string."""
    with ExitStack() as stack:
        primary = LogsteadServer(tmp_path / "primary")
        stack.callback(primary.kill)
        primary.start()
        primary.execute("CREATE TABLE t (id int)", "INSERT INTO t VALUES (1)")
        url = f"postgres://postgres:secret@127.0.0.1:{primary.port}"
        replica = ReplicaServer(tmp_path / "replica", url)
        replica.arguments = [*SELDOM]
        stack.callback(replica.kill)
        replica.start()
        replica.follows(primary)
        assert replica.execute("SELECT id FROM t") == [(1,)]
        assert replica.execute("SELECT home FROM logstead_replica") == [(f"file://{primary.data}",)]
        assert replica.execute("SHOW replica_of") == [(f"postgres://postgres@127.0.0.1:{primary.port}",)]
        primary.kill()
        assert promote(replica).returncode == 0
        wait_until(lambda: is_primary(replica), what="the promotion")
        other = ReplicaServer(tmp_path / "other", f"postgres://127.0.0.1:{primary.port}")
        done = subprocess.run(other.command(), capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and "cannot be asked where its log lives" in done.stderr, done


def test_a_server_of_a_copy_of_the_home_costs_the_stream_and_no_more(tmp_path):
    """The same database in the same epoch, and another log: the replica goes on by its own home."""
    with ExitStack() as stack:
        primary, copy = (LogsteadServer(tmp_path / name) for name in ("primary", "copy"))
        primary.start()
        primary.execute("CREATE TABLE t (id int)")
        assert primary.stop() == 0
        shutil.copytree(primary.root, copy.root)
        for server in (primary, copy):
            server.arguments = ["--workers", "2", "--set", "horizon_pause=5ms"]
            stack.callback(server.kill)
            server.start()
        replica = ReplicaServer(tmp_path / "replica", f"file://{primary.data}")
        replica.arguments += ["--primary-conninfo", f"host=127.0.0.1 port={copy.port}"]
        stack.callback(replica.kill)
        replica.start()
        for number in range(1, 40):
            copy.execute(*[f"INSERT INTO t VALUES (-{number})"] * 3)
            primary.execute(f"INSERT INTO t VALUES ({number})")

            def there(number=number) -> bool:
                assert replica.running(), replica.output_text()
                try:
                    return replica.execute("SELECT count(*), min(id) FROM t") == [(number, 1)]
                except psycopg.OperationalError:
                    return False

            wait_until(there, what="the row")
        wait_until(lambda: "no server of the home" in replica.output_text(), what="the reason")
        ((error,),) = replica.execute("SELECT stream_error FROM logstead_replica")
        assert "no server of the home" in error


def test_rules_of_replication_connections(tmp_path):
    """In rules "all" databases are not replication, as in PostgreSQL."""
    server = LogsteadServer(tmp_path / "server")
    rules = tmp_path / "settings.toml"

    def tried(text: str) -> str:
        rules.write_text(text)
        server.arguments = ["--workers", "1", "--config", str(rules)]
        server.start()
        try:
            done = subprocess.run(
                ["psql", f"host=127.0.0.1 port={server.port} user=postgres replication=true", "-Atc", "IDENTIFY_SYSTEM"],
                capture_output=True,
                text=True,
                timeout=60,
            )
            return done.stdout + done.stderr
        finally:
            server.kill()

    rule = "[[hba]]\naddress = '127.0.0.1/32'\nmethod = 'trust'\n"
    assert 'no pg_hba.conf entry' in tried(rule)
    identity = tried(rule + "database = 'replication'\n").strip().split("|")
    assert len(identity) == 8 and len(identity[0]) == 16 and identity[3].endswith("/server/data"), identity


def test_no_more_replicas_than_max_wal_senders(tmp_path):
    """As in PostgreSQL one more is refused; the setting shows what the server allows."""
    server = LogsteadServer(tmp_path / "server")
    try:
        server.start()
        assert server.execute("SHOW max_wal_senders") == [("10",)]
        assert server.stop() == 0
        server.arguments += ["--set", "max_wal_senders=2"]
        server.start()
        assert server.execute("SELECT setting, context FROM pg_settings WHERE name = 'max_wal_senders'") == [("2", "postmaster")]
        assert server.execute("SHOW wal_level", "SHOW hot_standby") == [("on",)]
        conninfo = f"host=127.0.0.1 port={server.port} user=postgres replication=true"
        first, second = psycopg.connect(conninfo), psycopg.connect(conninfo)
        with pytest.raises(psycopg.OperationalError, match=r"number of requested standby connections exceeds max_wal_senders \(currently 2\)"):
            psycopg.connect(conninfo)
        # Others connect all the same.
        assert server.execute("SELECT 1") == [(1,)]
        first.close()

        def is_free() -> bool:
            try:
                psycopg.connect(conninfo).close()
            except psycopg.OperationalError:
                return False
            return True

        wait_until(is_free, what="room for another one")
        second.close()
        assert server.stop() == 0
        server.arguments[-1] = "max_wal_senders=0"
        server.start()
        with pytest.raises(psycopg.OperationalError, match=r"max_wal_senders \(currently 0\)"):
            psycopg.connect(f"host=127.0.0.1 port={server.port} user=postgres replication=true")
    finally:
        server.kill()


def test_commands_of_a_replication_connection(tmp_path):
    """What there is not is refused by name, and the connection lives on."""
    server = LogsteadServer(tmp_path / "server")
    server.start()
    try:
        conninfo = f"host=127.0.0.1 port={server.port} user=postgres replication=true"

        def said(command: str) -> str:
            script = f"\\set VERBOSITY sqlstate\n{command};\nIDENTIFY_SYSTEM;\n"
            done = subprocess.run(
                ["psql", conninfo, "-At", "-f", "-"], input=script, capture_output=True, text=True, timeout=60
            )
            assert len(done.stdout.strip().splitlines()[-1].split("|")) == 8, done
            return done.stderr

        assert "0A000" in said("START_REPLICATION 0/0 TIMELINE 1")
        assert "0A000" in said("BASE_BACKUP")
        assert "0A000" in said("SELECT 1")
        assert "42601" in said("NONSENSE")
        assert "55000" in said("START_REPLICATION BLOCKS 1 TIMELINE 1")
        identity = subprocess.run(["psql", conninfo, "-Atc", "IDENTIFY_SYSTEM"], capture_output=True, text=True).stdout.split("|")
        assert "55000" in said(f"START_REPLICATION BLOCKS {identity[0]} TIMELINE 77")
        with pytest.raises(psycopg.OperationalError, match='invalid value for parameter "replication"'):
            psycopg.connect(f"host=127.0.0.1 port={server.port} user=postgres replication=perhaps")
        with psycopg.connect(conninfo, autocommit=True) as connection:
            # Not by the extended protocol.
            with pytest.raises(psycopg.Error, match="extended query protocol"):
                connection.execute("SELECT %s", (1,))
    finally:
        server.kill()


@pytest.mark.parametrize(
    ("arguments", "named"),
    (
        (("--primary-conninfo", "host=a"), "primary_conninfo"),
        (("--replica-of", "file:///nowhere", "--page-service", "on"), "page_service"),
        (("--replica-of", "file:///nowhere", "--primary-conninfo", "user=x"), "no host is given"),
        (("--replica-of", "file:///nowhere", "--primary-conninfo", "host=a sslmode=verify-full"), "need sslrootcert"),
        (("--replica-of", "file:///nowhere", "--primary-conninfo", "host=a sslmode=often"), 'invalid sslmode value: "often"'),
        (("--replica-of", "file:///nowhere", "--primary-conninfo", "host=a bad"), "primary_conninfo"),
    ),
)
def test_connection_strings_that_are_none(arguments, named):
    done = subprocess.run([LogsteadServer.binary(), "serve", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and named in done.stderr, done


def test_a_replica_that_does_not_take_what_is_sent_holds_nobody(tmp_path):
    """A replica sleeps while much is written: the primary goes on, with a bounded buffer, and the replica catches up."""
    with streamed("file", tmp_path) as (primary, (replica,)):
        primary.execute("CREATE TABLE t (id int, filling text)")
        replica.follows(primary)
        os.kill(replica.process.pid, signal.SIGSTOP)
        done = threading.Event()

        def write() -> None:
            with primary.connect(autocommit=True) as connection:
                for number in range(60):
                    connection.execute("INSERT INTO t SELECT %s, repeat('x', 1000) FROM generate_series(1, 900)", (number,))
            done.set()

        writer = threading.Thread(target=write)
        writer.start()
        writer.join(120)
        assert done.is_set()
        # Its sender has more to send than the connection takes, and ends all the same when it is told to.
        assert primary.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_replication") == [(True,)]
        wait_until(lambda: primary.execute("SELECT count(*) FROM pg_stat_replication") == [(0,)], what="the sender's end")
        os.kill(replica.process.pid, signal.SIGCONT)


        def caught_up() -> bool:
            assert replica.running(), replica.output_text()
            try:
                return replica.execute("SELECT count(*), count(DISTINCT id) FROM t") == [(54000, 60)]
            except psycopg.OperationalError:
                # Where what it would have read next is gone it begins again at a checkpoint.
                assert "the replica begins again" in replica.output_text()
                return False

        wait_until(caught_up, what="the replica to catch up")


@pytest.mark.parametrize("where", ("file", "dev-bucket"))
def test_what_a_replica_needs_is_kept_for_it(where, tmp_path):
    """A replica sleeps while the primary writes much and takes checkpoints, and goes on where it was. So does one that was cut off for
    a moment. One for which nothing is kept begins again."""
    arguments = ("--set", "checkpoint_interval=50ms", *(("--set", "segment_size=1MB") if where == "file" else ()))
    with streamed(where, tmp_path, arguments=arguments) as (primary, (replica,)):
        primary.execute("CREATE TABLE t (id int PRIMARY KEY, filling text)", "INSERT INTO t SELECT g, '' FROM generate_series(1, 5000) g")
        replica.follows(primary)
        kept = "SELECT active, wal_status, restart_lsn IS NOT NULL, active_pid IS NOT NULL FROM pg_replication_slots"
        wait_until(lambda: primary.execute(kept) == [(True, "reserved", True, True)], what="the slot")

        def sleeps(meanwhile=lambda: None) -> None:
            os.kill(replica.process.pid, signal.SIGSTOP)
            with primary.connect(autocommit=True) as connection:
                for number in range(40):
                    connection.execute("UPDATE t SET filling = repeat('x', 1000 + %s) WHERE id %% 4 = %s", (number, number % 4))
                    if number == 20:
                        meanwhile()
            primary.execute("CHECKPOINT")
            os.kill(replica.process.pid, signal.SIGCONT)

        def restarts() -> int:
            def answer():
                try:
                    return replica.execute("SELECT restarts FROM logstead_replica WHERE state = 'following'")
                except psycopg.OperationalError:
                    assert replica.running(), replica.output_text()
                    return None

            return wait_until(answer, what="the replica")[0][0]

        def same() -> None:
            question = "SELECT count(*), sum(length(filling)) FROM t"
            goal = primary.execute("SELECT pg_current_wal_lsn()")[0][0]
            wait_until(lambda: restarts() >= 0 and replica.execute(f"SELECT pg_last_wal_replay_lsn() >= '{goal}'")[0][0], what="the replica")
            assert replica.execute(question) == primary.execute(question)

        with replica.connect() as reader:
            reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            assert reader.execute("SELECT count(*) FROM t WHERE id < 10").fetchone() == (9,)
            sleeps()
            same()
            assert reader.execute("SELECT count(*), sum(length(filling)) FROM t").fetchone() == (5000, 0)
        sleeps(lambda: primary.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_replication"))
        same()
        assert restarts() == 0
        wait_until(lambda: (True, "reserved", True, True) in primary.execute(kept), what="the slot of the next stream")


def test_nothing_is_kept_for_a_replica_unless_it_is_wanted(tmp_path):
    arguments = ("--set", "checkpoint_interval=50ms", "--set", "segment_size=1MB", "--set", "replica_keep_time=0")
    with streamed("file", tmp_path, arguments=arguments) as (primary, (replica,)):
        primary.execute("CREATE TABLE t (id int PRIMARY KEY, filling text)")
        replica.follows(primary)
        os.kill(replica.process.pid, signal.SIGSTOP)
        segments = len(list(primary.data.rglob("*.seg")))
        for number in range(30):
            primary.execute(f"INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series({number * 1000}, {number * 1000 + 999}) g")
        primary.execute("CHECKPOINT")
        few = "the segments to go"
        wait_until(lambda: len(list(primary.data.rglob("*.seg"))) <= segments + 4, what=few)
        assert primary.execute("SELECT restart_lsn FROM pg_replication_slots WHERE wal_status = 'reserved'") == []
        os.kill(replica.process.pid, signal.SIGCONT)

        def caught_up() -> bool:
            assert replica.running(), replica.output_text()
            try:
                return replica.execute("SELECT count(*) FROM t") == [(30000,)]
            except psycopg.OperationalError:
                return False

        wait_until(caught_up, what="the replica to catch up")
