"""Replicas: servers that follow another server's home and answer reads.

A replica shows states that its primary had, in their order, and nothing else: under transfers, during DDL, when the primary is
killed and started again, when the log it would have read next is gone. It refuses what a hot standby of PostgreSQL refuses, in the
same words, and libpq tells it from a primary as it does there.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from harness import LogsteadServer, wait_until
from objectserver import ObjectServer, home
from objectstores import start as start_store
from test_operation import refused
from transfers import ACCOUNTS, OPENING, Bank

pytestmark = pytest.mark.logstead_only

# Commits show soon after they were made, and while nothing is written too.
PAUSE = ("--set", "horizon_pause=5ms")
FAST = ("--set", "replica_poll_interval=5ms")


class ReplicaServer(LogsteadServer):
    """A server of a home that another one writes."""

    name = "replica"

    def __init__(self, root: Path, url: str, environment: dict[str, str] | None = None):
        super().__init__(root)
        self.url = url
        self.credentials = environment or {}
        self.arguments = ["--workers", "2", *FAST]

    def command(self, *arguments: str) -> list[str]:
        arguments = (*self.arguments, *arguments)
        listen = [] if "--listen" in arguments else ["--listen", "127.0.0.1:0"]
        return [self.binary(), "serve", *listen, "--replica-of", self.url, *arguments]

    def start(self, arguments=(), env=None, **options) -> "ReplicaServer":
        super().start(arguments, env={**self.credentials, **(env or {})}, **options)
        return self

    def follows(self, primary: LogsteadServer) -> None:
        """Waits until it shows everything that the primary has committed by now."""
        goal = primary.execute("SELECT pg_current_wal_lsn()")[0][0]

        def there() -> bool:
            assert self.running(), self.output_text()
            return self.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn" % psycopg.sql.quote(goal))[0][0]

        wait_until(there, what="the replica to follow")


@contextmanager
def pair(where: str, tmp_path: Path, replicas: int = 1, arguments: tuple[str, ...] = ()):
    """A primary at a home of this kind, and replicas of it, all running."""
    with ExitStack() as stack:
        if where == "file":
            primary = LogsteadServer(tmp_path / "primary")
            primary.arguments = ["--workers", "2", *PAUSE, *arguments]
            url, environment = f"file://{primary.data}", {}
        else:
            store = stack.enter_context(start_store(where, tmp_path))
            url, environment = home(store), store.environment
            primary = ObjectServer(tmp_path / "primary", url, environment, *PAUSE, *arguments)
        stack.callback(primary.kill)
        primary.start()
        beside = [ReplicaServer(tmp_path / f"replica{number}", url, environment) for number in range(replicas)]
        for replica in beside:
            stack.callback(replica.kill)
            replica.start()
        yield primary, beside


@pytest.fixture
def local(tmp_path):
    """A primary and a replica of its data directory."""
    with pair("file", tmp_path) as (primary, (replica,)):
        yield primary, replica


class Judges:
    """Readers of replicas. Each answer must be a state that the primary had, and none may be older than the one before."""

    def __init__(self, bank: Bank, replicas: list[ReplicaServer]):
        self.bank = bank
        self.wrong: list[str] = []
        self.answers = 0
        self.endings: list[str] = []
        self.stopping = threading.Event()
        jobs = [(job, replica) for replica in replicas for job in (self.statements, self.transactions)]
        self.threads = [threading.Thread(target=self.guarded, args=job, daemon=True) for job in jobs]

    def __enter__(self) -> "Judges":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive(), "a reader hangs"
        assert not self.wrong, self.wrong[:10]

    def guarded(self, job, replica: ReplicaServer) -> None:
        shown = [0] * len(self.bank.books)
        while not self.stopping.is_set():
            try:
                with replica.connect(autocommit=True, prepare_threshold=0) as connection:
                    while not self.stopping.is_set():
                        job(connection, shown)
                        self.answers += 1
            except psycopg.Error as error:
                self.endings.append(str(error))
                if getattr(error, "sqlstate", None) not in (None, "57P01", "57P03"):
                    self.wrong.append(f"{job.__name__}: {error!r}")
                    return
                self.stopping.wait(0.1)
            except Exception as error:  # noqa: BLE001 a thread's own failure would go unnoticed
                self.wrong.append(f"{job.__name__}: {error!r}")
                return

    def look(self, connection: psycopg.Connection) -> list:
        return connection.execute(
            "SELECT client, n, (SELECT sum(balance) FROM account), (SELECT count(*) FROM account),"
            " (SELECT count(*) FROM ledger l WHERE l.client = c.client) FROM counter c ORDER BY client"
        ).fetchall()

    def judge(self, rows: list, shown: list[int]) -> None:
        for client, n, total, accounts, transfers in rows:
            if (total, accounts) != (ACCOUNTS * OPENING, ACCOUNTS):
                self.wrong.append(f"a total of {total} in {accounts} accounts")
            if n != transfers:
                self.wrong.append(f"client {client} has counted {n} transfers, and there are {transfers}")
            if n < shown[client]:
                self.wrong.append(f"client {client} is at {n}, and was at {shown[client]} before")
            if n > self.bank.books[client].next:
                self.wrong.append(f"client {client} is at {n}, and has begun only {self.bank.books[client].next}")
            shown[client] = max(shown[client], n)

    def statements(self, connection: psycopg.Connection, shown: list[int]) -> None:
        self.judge(self.look(connection), shown)

    def transactions(self, connection: psycopg.Connection, shown: list[int]) -> None:
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            before = self.look(connection)
            # A promoted server may show in a block what a crash takes back; then its COMMIT is not answered.
            is_durable = connection.execute("SELECT pg_is_in_recovery()").fetchone()[0]
            if is_durable:
                self.judge(before, shown)
            self.stopping.wait(0.05)
            if self.look(connection) != before:
                self.wrong.append("a REPEATABLE READ transaction has seen two states")
        if not is_durable:
            self.judge(before, shown)


@pytest.mark.parametrize("where", ("file", "dev-bucket"))
def test_every_answer_of_a_replica_is_a_state_of_the_primary(where, tmp_path, seed):
    """Transfers at the primary, readers at two replicas; the primary is killed twice in the middle, and the replicas go on."""
    with pair(where, tmp_path, replicas=2) as (primary, replicas):
        bank = Bank(seed, clients=3, readers=1).open(primary)
        for replica in replicas:
            replica.follows(primary)
        with Judges(bank, replicas) as judges:
            for _ in range(3):
                bank.start(primary)
                goal = bank.acknowledged() + 60

                def there() -> bool:
                    bank.assert_right()
                    assert not judges.wrong, judges.wrong[:10]
                    return bank.acknowledged() >= goal

                wait_until(there, timeout_s=120, what="transfers")
                pid = primary.process.pid
                primary.restart_after_kill()
                bank.ended(pid)
                wait_until(lambda: bank.acknowledged() > goal, timeout_s=120, what="transfers after the start")
                bank.stop()
            bank.check(primary)
            for replica in replicas:
                replica.follows(primary)
            answers = judges.answers
            assert answers > 20
        for table in ("account", "ledger", "counter"):
            query = f"SELECT * FROM {table} ORDER BY 1, 2"
            expected = primary.execute(query)
            for replica in replicas:
                assert replica.execute(query) == expected
        for replica in replicas:
            state, restarts, waits = replica.execute("SELECT state, restarts, waits_for FROM logstead_replica")[0]
            assert (state, restarts, waits) == ("following", 0, None)


REWRITES = [
    ["TRUNCATE t", "INSERT INTO t SELECT g, g % 7 FROM generate_series(1, 700) g"],
    ["ALTER TABLE t ALTER v TYPE bigint"],
    ["CREATE INDEX t_v ON t (v)"],
    ["ALTER TABLE t ADD c text DEFAULT 'c'"],
    ["UPDATE t SET v = 6 - v"],
    ["ALTER TABLE t DROP c"],
    ["DROP INDEX t_v"],
    ["CREATE TABLE u AS SELECT id, v FROM t", "DROP TABLE t", "ALTER TABLE u RENAME TO t", "ALTER TABLE t ADD PRIMARY KEY (id)"],
    ["ALTER TABLE t ALTER v TYPE int"],
    ["CREATE VIEW w AS SELECT * FROM t", "DROP VIEW w"],
]


def test_ddl_reaches_readers_with_its_data(local):
    """A reader finds the catalog that belongs to what it reads: tables that are made anew are never empty for anybody, and a
    transaction goes on reading what it began with, dropped or not."""
    primary, replica = local
    primary.execute("CREATE TABLE t (id int PRIMARY KEY, v int)", *REWRITES[0])
    replica.follows(primary)
    wrong: list[str] = []
    answers = [0, 0]
    stopping = threading.Event()
    query = "SELECT count(*), sum(v)::bigint, (SELECT count(*) FROM t WHERE v = 3), (SELECT count(*) FROM t WHERE id = 350) FROM t"
    expected = (700, 2100, 100, 1)

    def statements() -> None:
        with replica.connect(autocommit=True, prepare_threshold=0) as connection:
            while not stopping.is_set():
                found = connection.execute(query).fetchone()
                answers[0] += 1
                if found != expected:
                    wrong.append(f"statement: {found}")

    def transactions() -> None:
        with replica.connect(autocommit=True) as connection:
            while not stopping.is_set():
                with connection.transaction():
                    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                    for _ in range(4):
                        found = connection.execute(query).fetchone()
                        answers[1] += 1
                        if found != expected:
                            wrong.append(f"transaction: {found}")
                        stopping.wait(0.05)

    def guarded(job) -> None:
        try:
            job()
        except Exception as error:  # noqa: BLE001 a thread's own failure would go unnoticed
            wrong.append(f"{job.__name__}: {error!r}")

    threads = [threading.Thread(target=guarded, args=(job,), daemon=True) for job in (statements, statements, transactions)]
    for thread in threads:
        thread.start()
    # It outlasts everything that is made anew.
    old = replica.connect()
    old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    assert old.execute(query).fetchone() == expected
    with primary.connect(autocommit=True) as connection:
        for _ in range(8):
            for rewrite in REWRITES:
                with connection.transaction():
                    for statement in rewrite:
                        connection.execute(statement)
                assert not wrong, wrong[:5]
                time.sleep(0.01)
    replica.follows(primary)
    stopping.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not wrong, wrong[:5]
    assert min(answers) > 20, answers
    # Longer than what no snapshot needs is kept for.
    time.sleep(2.5)
    assert old.execute(query + " WHERE id >= 0").fetchone() == expected
    old.close()
    changes = replica.execute("SELECT catalog_changes FROM logstead_replica")[0][0]
    assert changes > 20


def test_a_plan_runs_with_the_snapshot_of_its_catalog(local):
    """Time passes between the plan of a statement and its snapshot, in which the rows of an open cursor are put aside, and the table is
    made anew meanwhile: no statement reads one state's data by the catalog of another."""
    primary, replica = local
    primary.execute("CREATE TABLE g (n int)", "INSERT INTO g VALUES (0)", "CREATE TABLE r (n int)", "INSERT INTO r VALUES (0)")
    replica.follows(primary)
    wrong: list[str] = []
    seen: set[int] = set()
    stopping = threading.Event()

    def reader(level: str) -> None:
        try:
            with replica.connect(autocommit=True) as connection:
                while not stopping.is_set():
                    with connection.transaction():
                        connection.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
                        connection.execute("DECLARE c CURSOR FOR SELECT g FROM generate_series(1, 20000) g")
                        connection.execute("FETCH 1 FROM c")
                        n, found = connection.execute("SELECT n, (SELECT max(n) FROM r) FROM g").fetchone()
                    seen.add(n)
                    if found != n:
                        wrong.append(f"{level}: {n} and {found}")
        except Exception as error:  # noqa: BLE001 a thread's own failure would go unnoticed
            wrong.append(f"{level}: {error!r}")

    threads = [threading.Thread(target=reader, args=(level,), daemon=True) for level in ("READ COMMITTED", "REPEATABLE READ")]
    for thread in threads:
        thread.start()
    with primary.connect(autocommit=True) as connection:
        until = time.monotonic() + 5
        while time.monotonic() < until:
            connection.execute("UPDATE g SET n = n + 1; TRUNCATE r; INSERT INTO r SELECT n FROM g")
            assert not wrong, wrong[:5]
    replica.follows(primary)
    stopping.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not wrong, wrong[:5]
    assert len(seen) > 5, seen


def test_objects_of_all_kinds_come(local):
    """What is made at the primary is there: functions, types, roles, databases with their rows, sequences, large objects."""
    primary, replica = local
    primary.execute(
        "CREATE SCHEMA s",
        "CREATE TYPE s.mood AS ENUM ('sad', 'happy')",
        "CREATE TABLE s.t (id serial PRIMARY KEY, m s.mood, UNIQUE (m))",
        "INSERT INTO s.t (m) VALUES ('happy'), ('sad')",
        "CREATE FUNCTION s.f(n int) RETURNS bigint LANGUAGE plpgsql STABLE AS 'BEGIN RETURN (SELECT count(*) + n FROM s.t); END'",
        "CREATE MATERIALIZED VIEW s.m AS SELECT count(*) AS n FROM s.t",
        "CREATE ROLE reader LOGIN",
        "GRANT USAGE ON SCHEMA s TO reader",
        "GRANT SELECT ON s.t TO reader",
        "CREATE DATABASE copy TEMPLATE postgres",
        "SELECT lo_from_bytea(4711, 'large')",
    )
    replica.follows(primary)
    for database in ("postgres", "copy"):
        with replica.connect(dbname=database, autocommit=True) as connection:
            found = connection.execute("SELECT s.f(1), (SELECT n FROM s.m), (SELECT last_value >= 2 FROM s.t_id_seq)").fetchone()
            assert found == (3, 2, True)
            assert connection.execute("SELECT id FROM s.t WHERE m = 'sad'").fetchone() == (2,)
    assert replica.execute("SELECT lo_get(4711)") == [(b"large",)]
    with psycopg.connect(host=replica.host, port=replica.port, user="reader", dbname="postgres") as connection:
        assert connection.execute("SELECT count(*) FROM s.t").fetchone() == (2,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT * FROM s.m")
    primary.execute("SELECT nextval('s.t_id_seq')", "REVOKE SELECT ON s.t FROM reader", "DROP DATABASE copy")
    replica.follows(primary)
    assert replica.execute("SELECT last_value >= 3 FROM s.t_id_seq") == [(True,)]
    with psycopg.connect(host=replica.host, port=replica.port, user="reader", dbname="postgres") as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT count(*) FROM s.t")
    with pytest.raises(psycopg.OperationalError, match='database "copy" does not exist'):
        replica.connect(dbname="copy")


READ_ONLY = "25006"
REFUSED = [
    ("INSERT INTO t VALUES (3)", READ_ONLY, "cannot execute INSERT in a read-only transaction"),
    ("UPDATE t SET id = 4", READ_ONLY, "cannot execute UPDATE in a read-only transaction"),
    ("DELETE FROM t", READ_ONLY, "cannot execute DELETE in a read-only transaction"),
    ("SELECT * FROM t FOR UPDATE", READ_ONLY, "cannot execute SELECT FOR UPDATE in a read-only transaction"),
    ("SELECT nextval('s')", READ_ONLY, "cannot execute nextval() in a read-only transaction"),
    ("SELECT setval('s', 5)", READ_ONLY, "cannot execute setval() in a read-only transaction"),
    ("CREATE TABLE u (id int)", READ_ONLY, "cannot execute CREATE TABLE in a read-only transaction"),
    ("DROP TABLE t", READ_ONLY, "cannot execute DROP TABLE in a read-only transaction"),
    ("TRUNCATE t", READ_ONLY, "cannot execute TRUNCATE TABLE in a read-only transaction"),
    ("CREATE ROLE r", READ_ONLY, "cannot execute CREATE ROLE in a read-only transaction"),
    ("VACUUM", READ_ONLY, "cannot execute VACUUM during recovery"),
    ("ANALYZE t", READ_ONLY, "cannot execute ANALYZE during recovery"),
    ("REINDEX TABLE t", READ_ONLY, "cannot execute REINDEX during recovery"),
    ("LISTEN c", READ_ONLY, "cannot execute LISTEN during recovery"),
    ("NOTIFY c", READ_ONLY, "cannot execute NOTIFY during recovery"),
    ("SELECT pg_notify('c', '')", READ_ONLY, "cannot execute NOTIFY during recovery"),
    ("COPY t FROM stdin", READ_ONLY, "cannot execute COPY during recovery"),
    ("SELECT pg_current_xact_id()", READ_ONLY, "cannot execute pg_current_xact_id() during recovery"),
    ("SELECT pg_current_wal_lsn()", "55000", "recovery is in progress"),
    ("CHECKPOINT", READ_ONLY, "cannot execute CHECKPOINT during recovery"),
    ("BEGIN READ WRITE", "0A000", "cannot set transaction read-write mode during recovery"),
    ("BEGIN ISOLATION LEVEL SERIALIZABLE", "0A000", "cannot use serializable mode in a hot standby"),
]
REFUSED_IN_BLOCK = [
    ("SET TRANSACTION READ WRITE", "0A000", "cannot set transaction read-write mode during recovery"),
    ("SET transaction_read_only = off", "0A000", "cannot set transaction read-write mode during recovery"),
    ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "0A000", "cannot use serializable mode in a hot standby"),
    ("LOCK TABLE t IN SHARE MODE", READ_ONLY, "cannot execute LOCK TABLE during recovery"),
    ("PREPARE TRANSACTION 'p'", READ_ONLY, "cannot execute PREPARE TRANSACTION during recovery"),
]


def test_what_a_replica_refuses_and_says(local):
    """PostgreSQL's rules and texts for a hot standby."""
    primary, replica = local
    primary.execute("CREATE TABLE t (id int)", "INSERT INTO t VALUES (1), (2)", "CREATE SEQUENCE s")
    replica.follows(primary)
    with replica.connect(autocommit=True) as connection:
        for statement, state, message in REFUSED:
            with pytest.raises(psycopg.Error) as told:
                connection.execute(statement)
            assert (told.value.sqlstate, told.value.diag.message_primary) == (state, message), statement
        for statement, state, message in REFUSED_IN_BLOCK:
            connection.execute("BEGIN")
            with pytest.raises(psycopg.Error) as told:
                connection.execute(statement)
            assert (told.value.sqlstate, told.value.diag.message_primary) == (state, message), statement
            connection.execute("ROLLBACK")
        connection.execute("SET default_transaction_isolation = 'serializable'")
        with pytest.raises(psycopg.Error) as told:
            connection.execute("SELECT * FROM t")
        assert told.value.sqlstate == "0A000" and "hot standby" in str(told.value)
        connection.execute("RESET default_transaction_isolation")
        shown = [connection.execute(f"SHOW {name}").fetchone()[0] for name in ("transaction_read_only", "default_transaction_read_only")]
        assert shown == ["on", "off"]
        connection.execute("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        assert connection.execute("SHOW default_transaction_read_only").fetchone()[0] == "off"
        for allowed in ("UNLISTEN *", "SELECT pg_advisory_lock(1)", "SELECT pg_export_snapshot()", "DISCARD ALL"):
            connection.execute(allowed)
        with connection.transaction():
            connection.execute("LOCK TABLE t IN ROW EXCLUSIVE MODE")
            connection.execute("SAVEPOINT a")
            connection.execute("DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id")
            assert connection.execute("FETCH ALL FROM c").fetchall() == [(1,), (2,)]
        with connection.cursor().copy("COPY t TO stdout") as copy:
            assert b"".join(copy) == b"1\n2\n"
        assert "Seq Scan" in connection.execute("EXPLAIN (ANALYZE, COSTS off, TIMING off) SELECT * FROM t").fetchone()[0]
    assert primary.execute("SELECT count(*) FROM t") == [(2,)]


@pytest.mark.parametrize(
    ("wanted", "in_recovery"),
    [
        ("any", None),
        ("read-write", False),
        ("primary", False),
        ("read-only", True),
        ("standby", True),
        ("prefer-standby", True),
    ],
)
def test_libpq_finds_the_server_that_it_wants(local, wanted, in_recovery):
    """`target_session_attrs`, with the hosts in either order."""
    primary, replica = local
    primary.execute("CREATE TABLE here (id int)")
    replica.follows(primary)
    for servers in ((primary, replica), (replica, primary)):
        ports = ",".join(str(server.port) for server in servers)
        with psycopg.connect(
            host="127.0.0.1,127.0.0.1", port=ports, user="postgres", dbname="postgres", target_session_attrs=wanted
        ) as connection:
            found = connection.execute("SELECT pg_is_in_recovery()").fetchone()[0]
            expected = servers[0] is replica if in_recovery is None else in_recovery
            assert found is expected
            status = connection.pgconn.parameter_status
            assert status(b"in_hot_standby") == (b"on" if expected else b"off")
            assert status(b"default_transaction_read_only") == b"off"


def answer(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


def metrics_port(server: LogsteadServer) -> int:
    return int(server.output_text().split("metrics at http://")[1].split("/")[0].rsplit(":", 1)[1])


def test_proxies_tell_them_apart(tmp_path):
    """`/primary`, `/replica` and `/health` at the metrics' address."""
    listen = ("--metrics-listen", "127.0.0.1:0")
    with pair("file", tmp_path, replicas=0, arguments=listen) as (primary, _):
        replica = ReplicaServer(tmp_path / "replica", f"file://{primary.data}")
        try:
            replica.start(listen)
            at_primary = [answer(metrics_port(primary), path) for path in ("/primary", "/replica", "/health", "/none")]
            at_replica = [answer(metrics_port(replica), path) for path in ("/primary", "/replica", "/health", "/none")]
            assert at_primary == [200, 503, 200, 404]
            assert at_replica == [503, 200, 200, 404]
            with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port(replica)}/metrics") as response:
                assert "logstead_replica_visible_csn" in response.read().decode()
            # It goes on answering reads when the primary is gone.
            primary.kill()
            time.sleep(0.3)
            assert answer(metrics_port(replica), "/replica") == 200
            assert replica.stop() == 0
        finally:
            replica.kill()


def test_what_is_no_log_to_follow_is_refused(tmp_path):
    """An empty, foreign, newer or damaged home: each says what is wrong, and nothing is changed there."""
    empty = tmp_path / "empty"
    empty.mkdir()
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "letter.txt").write_text("Dear Sir")
    with pair("file", tmp_path, replicas=0) as (primary, _):
        primary.execute("CREATE TABLE t (id int)", "CHECKPOINT")
        manifest = primary.data / "manifest"
        primary.kill()
        cases = [
            (f"file://{tmp_path}/missing", "a Logstead log in"),
            (f"file://{empty}", "a Logstead log in"),
            (f"file://{foreign}", "a Logstead log in"),
            ("ftp://somewhere", "ftp: are not supported"),
        ]
        for url, why in cases:
            assert why in refused(ReplicaServer(tmp_path / "refused", url))
        assert os.listdir(empty) == [] and os.listdir(foreign) == ["letter.txt"]
        good = manifest.read_bytes()
        newer = bytearray(good)
        newer[4:8] = (0xFFFF).to_bytes(4, "little")
        for bad in (bytes(newer), good[: len(good) // 2], good[:-5] + bytes(5)):
            manifest.write_bytes(bad)
            said = refused(ReplicaServer(tmp_path / "refused", f"file://{primary.data}"))
            assert "replica_of:" in said and "manifest" in said or "newer" in said, said
            assert manifest.read_bytes() == bad
        manifest.write_bytes(good)
        objects = sorted((primary.data / "objects").rglob("*"), key=lambda path: path.stat().st_size if path.is_file() else 0)
        whole = objects[-1].read_bytes()
        objects[-1].write_bytes(bytes(len(whole)))
        said = refused(ReplicaServer(tmp_path / "refused", f"file://{primary.data}"))
        assert "replica_of:" in said, said
        objects[-1].write_bytes(whole)
        server = ReplicaServer(tmp_path / "refused", f"file://{primary.data}")
        for arguments in (
            ("--home", "memory:"),
            ("--take-over", "--promote-when-primary-lost", "on"),
            ("--accept-data-loss",),
        ):
            assert "cannot both be given" in refused(server, *arguments)


def test_a_primary_starts_and_stops_beside_its_replica(local):
    """A replica takes no lock: neither of a primary that runs nor of one that is to be started."""
    primary, replica = local
    primary.execute("CREATE TABLE t (id int)", "INSERT INTO t VALUES (1)")
    replica.follows(primary)
    primary.stop()
    assert replica.execute("SELECT id FROM t") == [(1,)]
    # Opened while there is no primary.
    replica.stop()
    replica.start()
    assert replica.execute("SELECT id FROM t") == [(1,)]
    primary.start()
    primary.execute("INSERT INTO t VALUES (2)")
    replica.follows(primary)
    assert replica.execute("SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def test_a_replica_that_is_too_far_behind_begins_again(tmp_path):
    """What it would read next is gone: its sessions end and say why, and new ones find everything, on the same port."""
    small = ("--segment-size", "1MB", "--checkpoint-interval", "200ms")
    with pair("file", tmp_path, arguments=small) as (primary, (replica,)):
        primary.execute("CREATE TABLE t (id int PRIMARY KEY, filling text)", "INSERT INTO t VALUES (0, '')")
        replica.follows(primary)
        session = replica.connect(autocommit=True)
        # What comes right behind an answer, while nothing is asked, libpq takes for a notice: so does it with
        # PostgreSQL's.
        notices: list[str] = []
        session.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        assert session.execute("SELECT count(*) FROM t").fetchone() == (1,)
        os.kill(replica.process.pid, signal.SIGSTOP)
        try:
            for block in range(8):
                first = 1 + block * 1000
                primary.execute(
                    f"INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series({first}, {first + 999}) g",
                    "CHECKPOINT",
                )
            primary.execute("UPDATE t SET filling = 'y' WHERE id = 0", "CHECKPOINT", "CHECKPOINT")
        finally:
            os.kill(replica.process.pid, signal.SIGCONT)

        def ended() -> str | None:
            try:
                session.execute("SELECT 1")
                return None
            except psycopg.OperationalError as error:
                return "\n".join([*notices, str(error)])

        assert "the replica begins again" in wait_until(ended, what="the end of the session")

        def restarted() -> bool:
            return replica.execute("SELECT restarts FROM logstead_replica") == [(1,)]

        wait_until(restarted, what="the replica to begin again")
        replica.follows(primary)
        assert replica.execute("SELECT count(*), max(filling) FROM t WHERE filling < 'z'") == [(8001, "y")]
        primary.execute("INSERT INTO t VALUES (-1, '')")
        replica.follows(primary)
        assert replica.execute("SELECT count(*) FROM t") == [(8002,)]
