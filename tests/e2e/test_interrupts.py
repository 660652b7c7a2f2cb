"""One statement stops nobody else: on a server with one worker, others are answered while it computes, and it ends when it is told to."""

import threading

import psycopg
import pytest
from harness import TIMEOUT_S

pytestmark = pytest.mark.logstead_only

# Each takes many seconds, in a build with optimisations too, if nobody ends it.
STATEMENTS = {
    "ctas": "CREATE TEMP TABLE made AS SELECT g, md5(g::text) FROM generate_series(1, 30000000) g",
    "materialized": "CREATE MATERIALIZED VIEW made AS SELECT g, md5(g::text) FROM generate_series(1, 30000000) g",
    "index": "CREATE INDEX ON big ((md5(repeat(t, 4000))))",
    "index_where": "CREATE INDEX ON big (id) WHERE length(md5(repeat(t, 4000))) > 0",
    "check": "ALTER TABLE big ADD CONSTRAINT ck CHECK (length(md5(repeat(t, 4000))) > 0)",
    "column": "ALTER TABLE big ADD COLUMN zz text DEFAULT md5(repeat(random()::text, 6000))",
    "type": "ALTER TABLE big ALTER COLUMN t TYPE text USING md5(repeat(t, 4000))",
    "count": "SELECT count(*) FROM big WHERE (SELECT count(*) FROM generate_series(1, 1000) g WHERE g = big.a) >= 0",
    "sum": "SELECT count(*) FROM big WHERE (SELECT sum(x.a) FROM (SELECT a FROM big b2 LIMIT 1000) x WHERE x.a <> big.a) > 0",
    "array": "SELECT count(*) FROM big WHERE cardinality(array(SELECT x FROM generate_series(1, big.a) x)) >= 0",
    "json": "SELECT count(*) FROM big WHERE jsonb_array_length((SELECT jsonb_agg(x) FROM generate_series(1, a % 100) x)) > 0",
    "update": "UPDATE big SET n = n + 1 WHERE (SELECT count(*) FROM generate_series(1, 1000) g WHERE g = big.a) >= 0",
    "output": "SELECT (SELECT count(*) FROM generate_series(1, 1000) g WHERE g = big.a) FROM big",
    "join": "SELECT count(*) FROM big a JOIN big b ON a.id + b.id < 0",
    "sort": "SELECT count(*) FROM (SELECT g FROM generate_series(1, 30000000) g ORDER BY md5(g::text)) s",
    "window": "SELECT max(r) FROM (SELECT rank() OVER (ORDER BY md5(g::text)) r FROM generate_series(1, 30000000) g) s",
    "plpgsql": "DO $$ DECLARE n int := 0; BEGIN LOOP n := (n + 1) % 1000; END LOOP; END $$",
    "recursive": "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT (n + 1) % 1000 FROM r) SELECT count(*) FROM r",
    "numbers": "SELECT jsonb_array_length(('[' || repeat('1e100000,', 20000) || '1]')::jsonb)",
    "headline": "SELECT length(ts_headline(repeat('ab ', 3000000), ('a' || repeat(' & a', 20000))::tsquery))",
    "words": "SELECT length(to_tsvector('english', repeat('äöü€', 30000000)))",
    "tokens": "SELECT count(*) FROM ts_parse('default', repeat('a,', 30000000))",
    "picture": "SELECT to_date(repeat('x', 10000000), repeat('a', 10000000))",
}

# The others are answered so often at least before the statement ends: once in all if they wait for its end.
ANSWERS = 20


@pytest.fixture(scope="module")
def one_worker(server_kind, tmp_path_factory):
    """A server with one worker and a table of 50,000 rows."""
    server = server_kind(tmp_path_factory.mktemp("one_worker"))
    server.start(("--workers", "1"))
    with server.connect(autocommit=True) as connection:
        connection.execute("CREATE TABLE big (id int PRIMARY KEY, a int, t text, n numeric)")
        connection.execute("INSERT INTO big SELECT g, g % 1000, md5(g::text), g FROM generate_series(1, 50000) g")
    yield server
    server.kill()


class Computing:
    """A session that runs a statement in a thread of its own."""

    def __init__(self, server, statement: str, timeout_ms: int):
        self.connection = server.connect(autocommit=True)
        self.connection.execute(f"SET statement_timeout = {timeout_ms}")
        self.pid = self.connection.execute("SELECT pg_backend_pid()").fetchone()[0]
        self.error = None
        self.thread = threading.Thread(target=self._run, args=(statement,))
        self.thread.start()

    def _run(self, statement: str) -> None:
        try:
            self.connection.execute(statement)
        except psycopg.Error as error:
            self.error = error

    def runs(self) -> bool:
        """It has not ended."""
        return self.thread.is_alive()

    def ended(self) -> psycopg.Error | None:
        """Waits for its end, and says what it ended with. The session goes on."""
        self.thread.join(TIMEOUT_S)
        assert not self.runs(), "the statement did not end"
        assert self.connection.execute("SELECT 1").fetchone() == (1,)
        self.connection.close()
        return self.error


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_time_limit_ends_it_and_others_are_answered_meanwhile(one_worker, name):
    with one_worker.connect(autocommit=True) as other:
        computing = Computing(one_worker, STATEMENTS[name], 1500)
        answers = 0
        while computing.runs():
            other.execute("SELECT 1")
            answers += 1
        error = computing.ended()
    assert isinstance(error, psycopg.errors.QueryCanceled), error
    assert "statement timeout" in str(error)
    assert answers >= ANSWERS


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_session_of_the_same_worker_ends_it(one_worker, name):
    with one_worker.connect(autocommit=True) as other:
        computing = Computing(one_worker, STATEMENTS[name], 0)
        for _ in range(ANSWERS):
            other.execute("SELECT pg_sleep(0.01)")
        assert computing.runs()
        assert other.execute("SELECT pg_cancel_backend(%s)", (computing.pid,)).fetchone() == (True,)
        error = computing.ended()
    assert isinstance(error, psycopg.errors.QueryCanceled), error
    assert "user request" in str(error)


def test_a_statement_that_ended_so_is_planned_again(one_worker):
    """What was being computed when it was told to end is not part of a plan that is kept."""
    with one_worker.connect(autocommit=True) as connection:
        query = "SELECT count(*) FROM big WHERE length(repeat(md5('x'), 10)) < (SELECT count(*) FROM generate_series(1, 20000000))"
        connection.execute("SET statement_timeout = '500ms'")
        for _ in range(2):
            with pytest.raises(psycopg.errors.QueryCanceled):
                connection.execute(query, prepare=True)
        connection.execute("SET statement_timeout = 0")
        assert connection.execute("SELECT count(*) FROM big").fetchone() == (50000,)


def test_a_time_limit_is_over_with_its_statement(one_worker):
    """The next messages, and the next statement, have nothing of it."""
    with one_worker.connect(autocommit=True) as connection:
        connection.execute("SET statement_timeout = '300ms'")
        connection.execute("SELECT pg_sleep(0.2)")
        connection.execute("SELECT pg_sleep(0.2)")
        connection.execute("SET statement_timeout = 0")
        slow = "SELECT count(*) FROM big WHERE id <= 200 AND (SELECT count(*) FROM generate_series(1, 5000) g WHERE g = big.id) >= 0"
        assert connection.execute(slow).fetchone() == (200,)


def test_a_table_is_whole_after_an_index_of_it_was_cancelled(one_worker):
    """Keys of rows that are taken back are computed in a statement that is told to end."""
    with one_worker.connect(autocommit=True) as connection:
        connection.execute("CREATE TABLE keyed (id int PRIMARY KEY, t text)")
        connection.execute("CREATE INDEX keyed_t ON keyed (md5(repeat(t, 200)))")
        insert = "INSERT INTO keyed SELECT g, md5(g::text) FROM generate_series(1, 1000000) g"
        connection.execute("SET statement_timeout = '1s'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(insert)
        connection.execute("SET statement_timeout = 0")
        connection.execute("INSERT INTO keyed SELECT g, 'same' FROM generate_series(1, 100) g")
        connection.execute("SET enable_seqscan = off")
        found = connection.execute("SELECT count(*) FROM keyed WHERE md5(repeat(t, 200)) = md5(repeat('same', 200))")
        assert found.fetchone() == (100,)
        connection.execute("DROP TABLE keyed")


def test_what_holds_a_worker_is_counted_and_named(one_worker):
    with one_worker.connect(autocommit=True) as connection:
        columns = "worker, held >= 0, longest_ms >= 0"
        assert connection.execute(f"SELECT {columns} FROM logstead_workers").fetchall() == [(0, True, True)]
