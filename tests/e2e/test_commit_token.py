"""Read your writes at a replica: `logstead_commit_token()` and `logstead.read_after`.

A replica that is given a token answers with all that was committed when the token was made, or says that it cannot. Without a token
it answers at once, with what it has.
"""

from __future__ import annotations

import threading

import psycopg
import pytest
from harness import LogsteadServer, wait_until
from test_replica import ReplicaServer, pair

pytestmark = pytest.mark.logstead_only


def error_of(connection: psycopg.Connection, statement: str) -> tuple[str, str]:
    """The SQLSTATE and the text of the error that a statement ends with."""
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(statement)
    return caught.value.sqlstate, caught.value.diag.message_primary


@pytest.mark.parametrize("where", ["file", "dev-bucket"])
def test_what_was_written_is_read(where, tmp_path):
    """Writers and readers in pairs: whatever a token tells of is there, in each kind of statement and transaction."""
    with pair(where, tmp_path, replicas=2) as (primary, replicas):
        primary.execute("CREATE TABLE t (writer int, n int, PRIMARY KEY (writer, n))")
        wrong: list[str] = []

        def write_and_read(writer: int, replica: ReplicaServer) -> None:
            with primary.connect(autocommit=True) as here, replica.connect(autocommit=True) as there:
                count = "SELECT count(*) FROM t WHERE writer = %d" % writer
                for n in range(1, 31):
                    here.execute("INSERT INTO t VALUES (%s, %s)", (writer, n))
                    token = here.execute("SELECT logstead_commit_token()").fetchone()[0]
                    there.execute("SET logstead.read_after = '%s'" % token)
                    match n % 4:
                        case 0:
                            found = there.execute(count).fetchone()[0]
                        case 1:
                            with there.transaction():
                                there.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                                found = there.execute(count).fetchone()[0]
                        case 2:
                            with there.cursor() as cursor, cursor.copy("COPY (%s) TO STDOUT" % count) as copy:
                                found = int(b"".join(copy))
                        case _:
                            with there.transaction():
                                there.execute("DECLARE c CURSOR FOR " + count)
                                found = there.execute("FETCH ALL FROM c").fetchone()[0]
                    if found != n:
                        wrong.append(f"writer {writer} reads {found} rows behind row {n}")

        def guarded(*job) -> None:
            try:
                write_and_read(*job)
            except Exception as error:  # noqa: BLE001
                wrong.append(repr(error))

        threads = [threading.Thread(target=guarded, args=(number, replicas[number % 2])) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []


def test_a_replica_that_lags_says_so(tmp_path):
    """While the replica stands still a statement waits, ends when it may wait no longer, and can be cancelled."""
    with pair("file", tmp_path) as (primary, (replica,)):
        primary.execute("CREATE TABLE t (n int)")
        replica.follows(primary)
        primary.kill()
        # The token tells of a commit that never comes.
        database, csn = replica.execute("SELECT logstead_commit_token()")[0][0].split("-")
        ahead = f"{database}-{int(csn, 16) + 1000:x}"
        with replica.connect(autocommit=True) as there:
            there.execute(f"SET logstead.read_after = '{ahead}'")
            there.execute("SET logstead.read_after_timeout = 50")
            assert error_of(there, "SELECT count(*) FROM t") == (
                "57014",
                "timed out while waiting for the commits that logstead.read_after tells of",
            )
            # What has no snapshot waits for nothing.
            assert there.execute("SHOW logstead.read_after").fetchone() == (ahead,)
            there.execute("SET logstead.read_after_timeout = 0; SET statement_timeout = 50")
            assert error_of(there, "SELECT count(*) FROM t")[0] == "57014"
            there.execute("SET statement_timeout = 0; SET lock_timeout = 20")
            canceller = threading.Timer(0.3, there.cancel)
            canceller.start()
            assert error_of(there, "SELECT count(*) FROM t") == ("57014", "canceling statement due to user request")
            there.execute("RESET logstead.read_after")
            assert there.execute("SELECT count(*) FROM t").fetchone() == (0,)
            # A snapshot that stands cannot get what it lacks.
            with pytest.raises(psycopg.Error) as caught, there.transaction():
                there.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                there.execute("SELECT count(*) FROM t")
                there.execute(f"SET LOCAL logstead.read_after = '{ahead}'")
                there.execute("SELECT count(*) FROM t")
            assert caught.value.sqlstate == "55000"
        # Whoever waits goes on when the commits come.
        primary.start()
        goal = primary.execute("SELECT logstead_commit_token()")[0][0].split("-")[1]
        goal = f"{database}-{int(goal, 16) + 20:x}"
        answers: list[int] = []

        def read() -> None:
            with replica.connect(autocommit=True) as there:
                there.execute(f"SET logstead.read_after = '{goal}'")
                answers.append(there.execute("SELECT count(*) FROM t").fetchone()[0])

        reader = threading.Thread(target=read)
        reader.start()
        wait_until(
            lambda: replica.execute("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT count(*) FROM t' AND state = 'active'")[0][0] == 1,
            what="the reader to wait",
        )
        for n in range(40):
            primary.execute(f"INSERT INTO t VALUES ({n})")
        reader.join(30)
        assert len(answers) == 1 and 18 <= answers[0] <= 40


def test_tokens_that_say_nothing_here(tmp_path):
    """What is no token, of another database, or of commits that there are not, is refused with its reason."""
    with pair("file", tmp_path) as (primary, (replica,)):
        other = LogsteadServer(tmp_path / "other")
        other.start()
        try:
            foreign = other.execute("SELECT logstead_commit_token()")[0][0]
        finally:
            other.kill()
        own = primary.execute("SELECT logstead_commit_token()")[0][0]
        database, csn = own.split("-")
        for server in (primary, replica):
            with server.connect(autocommit=True) as connection:
                for text in ("x", "0/0", own + "g", csn):
                    assert error_of(connection, f"SET logstead.read_after = '{text}'") == (
                        "22023",
                        f'invalid value for parameter "logstead.read_after": "{text}"',
                    )
                assert error_of(connection, f"SET logstead.read_after = '{foreign}'") == (
                    "22023",
                    "the commit token is of another database",
                )
                connection.execute(f"SET logstead.read_after = '{own}'")
                assert connection.execute("SELECT 1").fetchone() == (1,)
            # It is asked about where the statement runs, too: a connection may begin with it.
            with server.connect(autocommit=True, options=f"-c logstead.read_after={foreign}") as connection:
                if server is replica:
                    assert error_of(connection, "SELECT 1")[0] == "22023"
        with primary.connect(autocommit=True) as connection:
            ahead = f"{database}-{int(csn, 16) + 10_000:x}"
            assert error_of(connection, f"SET logstead.read_after = '{ahead}'") == (
                "22023",
                "the commit token tells of commits that there are not",
            )
            # Tokens grow with commits.
            connection.execute("CREATE TABLE t (n int)")
            later = connection.execute("SELECT logstead_commit_token()").fetchone()[0]
            assert later.split("-")[0] == database and int(later.split("-")[1], 16) > int(csn, 16)
