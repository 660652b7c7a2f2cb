"""The home cannot be reached while rows that are not in memory are needed: who needs them waits, nobody else does, and nothing is lost or stuck."""

from __future__ import annotations

import contextlib
import threading

import psycopg
import pytest
from faultproxy import FaultProxy
from harness import wait_until
from objectserver import IMPATIENT, ObjectServer, home
from objectstores import start as start_store
from test_checkpoints import assert_clean

pytestmark = pytest.mark.logstead_only

ROWS = 3000
# More than there are threads that read pages.
WAITING = 7
# Answers wait for the lease when nothing renews it, so it has to last as long as the cuts here.
ARGUMENTS = ("--checkpoint-interval", "200ms", "--evict-always", "--lease-duration", "60s")


def text(key: int, version: int = 0) -> str:
    return f"{key}/{version}/" + "x" * (key % 300)


def expected(versions: dict[int, int]) -> list[tuple]:
    return [(key, text(key, versions.get(key, 0))) for key in range(ROWS)]


# By scans: what an index finds would have to be in memory together with its leaf, which is luck where everything leaves within milliseconds.
BY_KEY = "SELECT k, v FROM cold WHERE k + 0 = {}"


def rows(server) -> list[tuple]:
    return server.execute("SELECT k, v FROM cold ORDER BY k + 0")


class Reader(threading.Thread):
    """One statement that needs rows that are not in memory."""

    def __init__(self, server, statement: str, synchronous: bool = True):
        super().__init__(daemon=True)
        self.server, self.statement, self.synchronous = server, statement, synchronous
        self.found: list[tuple] | None = None
        self.problem: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            with self.server.connect(autocommit=True) as connection:
                if not self.synchronous:
                    connection.execute("SET synchronous_commit = off")
                self.found = connection.execute(self.statement).fetchall()
        except BaseException as error:  # noqa: BLE001 - told by the test
            self.problem = error


@pytest.mark.timeout(400)
def test_rows_that_cannot_be_read_for_a_while(tmp_path, seed):
    """Statements that need absent rows wait, for as long as they are told to; others and new connections go on; then all go on; and over kill -9."""
    with start_store("dev-bucket", tmp_path) as store, FaultProxy(f"{store.host}:{store.port}", seed) as proxy:
        server = ObjectServer(tmp_path / "server", home(store, proxy=proxy, **IMPATIENT), store.environment, *ARGUMENTS)
        versions: dict[int, int] = {}
        try:
            server.start()
            server.execute(
                "CREATE TABLE cold (k int PRIMARY KEY, v text)",
                "CREATE TABLE held (k int, v text)",
                "INSERT INTO held VALUES (1, 'before')",
            )
            with server.connect(autocommit=True) as connection:
                with connection.cursor().copy("COPY cold FROM STDIN") as copy:
                    for key in range(ROWS):
                        copy.write_row((key, text(key)))
                connection.execute("CHECKPOINT")
            assert rows(server) == expected(versions)
            assert server.execute("SHOW fault_threads") == [("32",)]
            for turn, how in enumerate(("reset", "hold", "reset"), 1):
                holder = server.connect()
                # Changed and not committed: this row cannot leave memory.
                holder.execute("UPDATE held SET v = %s", (f"turn {turn}",))
                server.execute("CHECKPOINT")
                proxy.cut(how)
                with server.connect(autocommit=True) as impatient:
                    impatient.execute("SET statement_timeout = '700ms'")
                    with pytest.raises(psycopg.errors.QueryCanceled):
                        impatient.execute("SELECT sum(length(v)) FROM cold")
                    assert impatient.execute("SELECT 1").fetchone() == (1,)
                readers = [Reader(server, BY_KEY.format(number * 400)) for number in range(WAITING)]
                readers.append(Reader(server, "SELECT count(*), sum(k) FROM cold"))
                for _ in range(5):
                    with server.connect(autocommit=True) as other:
                        assert other.execute("SELECT 2 * 21").fetchone() == (42,)
                        assert other.execute("SELECT count(*) FROM pg_class WHERE relname = 'cold'").fetchone() == (1,)
                    assert holder.execute("SELECT v FROM held").fetchone() == (f"turn {turn}",)
                assert not [reader.found for reader in readers if reader.found is not None], "what was read was in memory"
                assert [reader.problem for reader in readers if not reader.is_alive()] == []
                if turn == 3:
                    server.kill()
                    proxy.mend()
                    holder.close()
                    break
                proxy.mend()
                for reader in readers:
                    reader.join(60)
                    assert not reader.is_alive() and reader.problem is None, reader.problem or server.output_text()[-3000:]
                assert [reader.found for reader in readers[:-1]] == [[(n * 400, text(n * 400))] for n in range(WAITING)]
                assert readers[-1].found == [(ROWS, ROWS * (ROWS - 1) // 2)]
                holder.commit()
                holder.close()
                assert rows(server) == expected(versions)
                for key in range(1, ROWS, 400):
                    server.execute(f"UPDATE cold SET v = '{text(key, turn)}' WHERE k + 0 = {key}")
                    versions[key] = turn
                server.execute("CHECKPOINT")
                assert rows(server) == expected(versions)
            server.start()
            assert rows(server) == expected(versions)
            # What was not committed is not there.
            assert server.execute("SELECT * FROM held") == [(1, "turn 2")]
            server.execute("UPDATE held SET v = 'after'")
            assert server.execute("SELECT v FROM held") == [("after",)]
            assert "panicked" not in server.output_text()
            server.stop()
            assert_clean(server.url, store.environment)
        finally:
            proxy.mend()
            server.kill()


@pytest.mark.parametrize("interval", ("0", pytest.param("200ms", marks=pytest.mark.long)))
@pytest.mark.timeout(400)
def test_a_stop_while_nothing_answers(tmp_path, seed, interval):
    """SIGTERM once, with pages on their way and, if any are taken, a checkpoint: the server ends, and what was acknowledged is there when the home is."""
    with start_store("dev-bucket", tmp_path) as store, FaultProxy(f"{store.host}:{store.port}", seed) as proxy:
        server = ObjectServer(tmp_path / "server", home(store, proxy=proxy, timeout=600_000), store.environment)
        server.arguments += ["--checkpoint-interval", interval, "--evict-always", "--lease-duration", "10s", "--shutdown-grace", "1"]
        try:
            server.start()
            server.execute("CREATE TABLE cold (k int, v text)", "INSERT INTO cold SELECT g, 'v' || g FROM generate_series(1, 3000) AS g", "CHECKPOINT")
            server.execute("INSERT INTO cold VALUES (0, 'last')")
            proxy.cut("hold")
            readers = [Reader(server, "SELECT count(*) FROM cold", synchronous=False) for _ in range(3)]
            wait_until(lambda: proxy.counts()["cut"] > 2, what="requests that go nowhere")
            server.stop(timeout_s=200)
            for reader in readers:
                reader.join(60)
                assert not reader.is_alive() and reader.found is None
            assert "panicked" not in server.output_text()
            proxy.mend()
            server.start()
            assert server.execute("SELECT count(*) FROM cold WHERE k + 0 = 0 OR v = 'v3000'") == [(2,)]
        finally:
            proxy.mend()
            server.kill()


# A subquery that needs absent rows for a row of `held`.
NEEDS = "(SELECT c.v FROM cold AS c WHERE c.k + 0 = h.k)"
PLACES = {
    f"SELECT h.k FROM held AS h WHERE {NEEDS} > ''": [(1,), (2,)],
    f"SELECT {NEEDS} FROM held AS h ORDER BY h.k": [(text(1),), (text(2),)],
    f"SELECT h.k, o.k FROM held AS h JOIN held AS o ON h.k < o.k AND {NEEDS} <> o.v": [(1, 2)],
    f"SELECT h.k, o.k FROM held AS h LEFT JOIN held AS o ON h.k = o.k AND {NEEDS} = o.v ORDER BY h.k": [(1, None), (2, None)],
    f"SELECT h.k, o.k FROM held AS h JOIN held AS o ON {NEEDS} = '1/0/' || repeat('x', o.k)": [(1, 1)],
    f"SELECT count(*), max({NEEDS}) FROM held AS h": [(2, text(2))],
    f"SELECT string_agg(h.v, ',' ORDER BY {NEEDS} DESC) FROM held AS h": [("before,before",)],
    f"SELECT count(*) FILTER (WHERE {NEEDS} > '2') FROM held AS h": [(1,)],
    f"SELECT count(*) FROM held AS h GROUP BY {NEEDS}": [(1,), (1,)],
    f"SELECT h.k FROM held AS h ORDER BY {NEEDS} DESC": [(2,), (1,)],
    f"SELECT count(*) FROM (SELECT DISTINCT ON ({NEEDS}) h.k FROM held AS h) AS t": [(2,)],
    f"SELECT (SELECT o.k FROM held AS o ORDER BY o.k LIMIT 1 OFFSET length({NEEDS}) - 5) FROM held AS h ORDER BY h.k": [(1,), (2,)],
    f"SELECT count(*) FROM held AS h, generate_series(1, length({NEEDS})) AS g": [(11,)],
    f"SELECT (SELECT max(x) FROM (VALUES ({NEEDS}), ('')) AS t (x)) FROM held AS h WHERE h.k = 1": [(text(1),)],
    f"SELECT h.k FROM held AS h WHERE random() >= 0 AND {NEEDS} > '2'": [(2,)],
    f"UPDATE written SET v = (SELECT c.v FROM cold AS c WHERE c.k + 0 = written.k) WHERE k = 1 RETURNING v": [(text(1),)],
    f"INSERT INTO written AS h VALUES (2, 'new') RETURNING {NEEDS}": [(text(2),)],
}


@pytest.mark.timeout(400)
def test_a_subquery_that_waits_keeps_nobody_else_waiting(tmp_path, seed):
    """Wherever in a statement it stands: there is one worker for all sessions."""
    with start_store("dev-bucket", tmp_path) as store, FaultProxy(f"{store.host}:{store.port}", seed) as proxy:
        server = ObjectServer(tmp_path / "server", home(store, proxy=proxy, **IMPATIENT), store.environment)
        server.arguments = ["--workers", "1", "--fault-threads", "2", *ARGUMENTS]
        try:
            server.start()
            assert server.execute("SHOW fault_threads") == [("2",)]
            server.execute(
                "CREATE TABLE cold (k int, v text)",
                "CREATE TABLE held (k int, v text)",
                "CREATE TABLE written (k int, v text)",
                "INSERT INTO cold SELECT g, g || '/0/' || repeat('x', g % 300) FROM generate_series(1, 1000) AS g",
                "INSERT INTO held VALUES (1, 'before'), (2, 'before')",
                "INSERT INTO written VALUES (1, 'before')",
                "CHECKPOINT",
            )
            with server.connect() as holder:
                holder.execute("UPDATE held SET v = 'not committed'")
                with server.connect(autocommit=True) as other:
                    proxy.cut("hold")
                    readers = []
                    for statement in PLACES:
                        readers.append(Reader(server, statement, synchronous=False))
                        # Were the worker's thread to wait for the store, nobody would be answered.
                        assert other.execute("SELECT 6 * 7").fetchone() == (42,), statement
                    wait_until(lambda: proxy.counts()["cut"] > 0, what="requests that go nowhere")
                    assert other.execute("SELECT count(*) FROM held").fetchone() == (2,)
                    assert [reader.statement for reader in readers if not reader.is_alive()] == []
                    proxy.mend()
                    for reader, found in zip(readers, PLACES.values()):
                        reader.join(120)
                        assert not reader.is_alive() and reader.problem is None, (reader.statement, reader.problem)
                        assert reader.found == found, reader.statement
                holder.rollback()
            assert "panicked" not in server.output_text()
        finally:
            proxy.mend()
            server.kill()


@pytest.mark.long
@pytest.mark.timeout(400)
def test_rows_that_no_home_of_a_list_gives(tmp_path, seed):
    """One member of a list is enough to read from. When none answers for a while, the statement fails and names what it could not read; a later one succeeds."""
    with contextlib.ExitStack() as stack:
        stores = [stack.enter_context(start_store("dev-bucket", tmp_path / f"store{number}")) for number in range(3)]
        proxies = [stack.enter_context(FaultProxy(f"{store.host}:{store.port}", seed + number)) for number, store in enumerate(stores)]
        url = ",".join(home(store, proxy=proxy, **IMPATIENT) for store, proxy in zip(stores, proxies))
        server = ObjectServer(tmp_path / "server", url, stores[0].environment, *ARGUMENTS, "--ack", "majority")
        try:
            server.start()
            server.execute("CREATE TABLE cold (k int PRIMARY KEY, v text)", "INSERT INTO cold SELECT g, 'v' || g FROM generate_series(1, 2000) AS g", "CHECKPOINT")
            everything = [(2000, "v1", "v999")]
            statement = "SELECT count(*), min(v), max(v) FROM cold"
            assert server.execute(statement) == everything
            for proxy in proxies[:2]:
                proxy.cut("reset")
            assert server.execute(statement) == everything
            proxies[2].cut("reset")
            with server.connect(autocommit=True) as connection:
                with pytest.raises(psycopg.errors.IoError, match="no answer in time"):
                    connection.execute(statement)
                assert connection.execute("SELECT 1").fetchone() == (1,)
                for proxy in proxies:
                    proxy.mend()
                # What was asked of them meanwhile comes first.
                wait_until(lambda: attempt(connection, statement) == everything, timeout_s=120, what="rows that can be read again")
            server.restart_after_kill()
            assert server.execute(statement) == everything
            assert "panicked" not in server.output_text()
        finally:
            for proxy in proxies:
                proxy.mend()
            server.kill()


def attempt(connection: psycopg.Connection, statement: str) -> list[tuple] | None:
    try:
        return connection.execute(statement).fetchall()
    except psycopg.errors.IoError:
        return None
