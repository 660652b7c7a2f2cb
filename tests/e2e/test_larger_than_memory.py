"""Data larger than memory: rows leave memory and come back, under load, over kill -9, and from a damaged file."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import psycopg
import pytest
from harness import wait_until

pytestmark = pytest.mark.logstead_only

BUDGET_MB = 16
SESSIONS = 4


def text(key: int, version: int, size: int) -> str:
    """A text that no compressor makes shorter than half, and that tells whose it is."""
    return f"{key}/{version}/" + random.Random(key * 1_000_003 + version).randbytes(size // 2).hex()


class Books:
    """What one session has been told of its own keys."""

    def __init__(self, keys: list[int], size: int):
        self.versions: dict[int, int | None] = dict.fromkeys(keys, 0)
        self.size = size
        # Statements that were sent and not answered: the key, and the version that it may have now.
        self.in_doubt: dict[int, int | None] = {}

    def assert_row(self, key: int, found: list[tuple]) -> None:
        version = self.versions[key]
        expected = [] if version is None else [(text(key, version, self.size),)]
        if key in self.in_doubt:
            # The first look decides it.
            other = self.in_doubt.pop(key)
            if found != expected:
                version = self.versions[key] = other
                expected = [] if version is None else [(text(key, version, self.size),)]
        assert found == expected, f"key {key}: {[row[0][:30] for row in found]}, not version {version}"


def step(connection: psycopg.Connection, books: Books, rng: random.Random) -> None:
    """One statement on a key of one's own, and now and then a scan."""
    key = rng.choice(list(books.versions))
    version = books.versions[key]
    what = rng.random()
    if what < 0.5 or key in books.in_doubt:
        books.assert_row(key, connection.execute("SELECT v FROM big WHERE k = %s", (key,)).fetchall())
        return
    if what < 0.52:
        low = min(key, 10**9)
        rows = connection.execute("SELECT k, v FROM big WHERE k BETWEEN %s AND %s ORDER BY k", (low, low + 300)).fetchall()
        for found, value in rows:
            if found in books.versions:
                books.assert_row(found, [(value,)])
        return
    new = rng.randrange(1, 10**6)
    if version is None:
        books.in_doubt[key] = new
        connection.execute("INSERT INTO big VALUES (%s, %s)", (key, text(key, new, books.size)))
    elif what < 0.6:
        books.in_doubt[key] = None
        assert connection.execute("DELETE FROM big WHERE k = %s", (key,)).rowcount == 1
    else:
        books.in_doubt[key] = new
        updated = connection.execute("UPDATE big SET v = %s WHERE k = %s", (text(key, new, books.size), key))
        assert updated.rowcount == 1
    books.versions[key] = books.in_doubt.pop(key)


def work(server, books: Books, seed: int, stop: threading.Event, problems: list[BaseException], done: list[int]) -> None:
    rng = random.Random(seed)
    try:
        with server.connect(autocommit=True) as connection:
            while not stop.is_set():
                step(connection, books, rng)
                done[0] += 1
    except psycopg.OperationalError as error:
        # Whoever kills says so before.
        if not stop.is_set() and server.running():
            problems.append(error)
    except BaseException as error:  # noqa: BLE001 - told by the test
        problems.append(error)


def run_sessions(server, all_books: list[Books], seed: int, statements: int, kill: bool) -> None:
    """Until so many statements were answered in all; then the server is killed in the middle of others, or the sessions stop."""
    stop, problems, done = threading.Event(), [], [0]
    threads = [
        threading.Thread(target=work, args=(server, books, seed * 100 + number, stop, problems, done))
        for number, books in enumerate(all_books)
    ]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: done[0] >= statements or problems, timeout_s=240, what=f"{statements} statements")
    finally:
        stop.set()
        if kill:
            # In the middle of the last statements.
            server.kill()
        for thread in threads:
            thread.join()
    if problems:
        raise AssertionError(server.output_text()[-3000:]) from problems[0]


def fill(server, keys: int, size: int, key: str = "PRIMARY KEY") -> None:
    with server.connect(autocommit=True) as connection:
        connection.execute(f"CREATE TABLE big (k int {key}, v text)")
        for first in range(0, keys, 1000):
            with connection.cursor().copy("COPY big FROM STDIN") as copy:
                for key in range(first, min(first + 1000, keys)):
                    copy.write_row((key, text(key, 0, size)))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("always", [False, True], ids=["in-want", "always"])
def test_a_table_larger_than_memory(private_server, always):
    """Ten times the budget; with everything evicted all the time a smaller one does."""
    # 166 kB a chunk: fifty of them are half of this budget, the rows that the log has changed there are not.
    size = 2600
    keys = 8_000 if always else BUDGET_MB * 10 * 1_048_576 // size
    memory = 64 if always else BUDGET_MB
    arguments = ("--memory", f"{memory}MB", "--workers", "2", "--checkpoint-interval", "500ms")
    arguments += ("--evict-always",) if always else ()
    private_server.start(arguments)
    fill(private_server, keys, size)
    all_books = [Books(list(range(number, keys, SESSIONS)), size) for number in range(SESSIONS)]
    for turn in range(3):
        run_sessions(private_server, all_books, seed=turn, statements=600, kill=turn < 2)
        if turn < 2:
            private_server.start(arguments)
    # All of it, in another life: in key order, and by a scan.
    private_server.kill()
    private_server.start(arguments)
    with private_server.connect(autocommit=True) as connection:
        living = 0
        for first in range(0, keys, 2000):
            found = dict(
                connection.execute("SELECT k, v FROM big WHERE k >= %s AND k < %s ORDER BY k", (first, first + 2000)).fetchall()
            )
            for key in range(first, min(first + 2000, keys)):
                all_books[key % SESSIONS].assert_row(key, [(found[key],)] if key in found else [])
            living += len(found)
        assert connection.execute("SELECT count(*) FROM big").fetchone() == (living,)
        cursor = connection.execute("SELECT * FROM logstead_recovery")
        started = dict(zip((column.name for column in cursor.description), cursor.fetchone()))
        assert started["chunks"] > 0, started
        if not always:
            assert 0 < started["chunks_in_memory"] < started["chunks"] / 2, started
    assert private_server.stop() == 0


@pytest.mark.timeout(300)
def test_a_damaged_page_is_told_and_other_rows_are_served(private_server):
    """One flipped bit in a page of rows: who reads those rows is told which page of which object; the server goes on with everything else."""
    arguments = ("--checkpoint-interval", "0", "--workers", "2")
    keys, size = 5_000, 400
    private_server.start(arguments)
    # Without an index, so that nobody reads it before the test does.
    fill(private_server, keys, size, key="")
    private_server.execute("CREATE TABLE other (k int PRIMARY KEY, v text)", "INSERT INTO other VALUES (1, 'one')", "CHECKPOINT")
    private_server.kill()
    needle = text(17, 0, size)[20:120].encode()
    places = [
        (path, path.read_bytes().find(needle))
        for path in Path(private_server.data / "objects").iterdir()
        if needle in path.read_bytes()
    ]
    assert len(places) == 1, places
    path, at = places[0]
    with path.open("r+b") as file:
        file.seek(at + 40)
        byte = file.read(1)[0]
        file.seek(at + 40)
        file.write(bytes([byte ^ 0x10]))
    private_server.start(arguments)
    with private_server.connect(autocommit=True) as connection:
        for _ in range(2):
            with pytest.raises(psycopg.Error) as refused:
                connection.execute("SELECT v FROM big WHERE k = 17").fetchall()
            assert refused.value.sqlstate == "XX001", refused.value
            told = str(refused.value)
            assert "chunk 0" in told and "offset" in told and path.name.split(".")[0] in told.replace("object ", ""), told
        with pytest.raises(psycopg.Error) as refused:
            connection.execute("SELECT count(v) FROM big").fetchall()
        assert refused.value.sqlstate == "XX001", refused.value
        assert connection.execute("SELECT v FROM other").fetchall() == [("one",)]
        connection.execute("UPDATE other SET v = 'two'")
        connection.execute("INSERT INTO big VALUES (%s, 'new')", (keys,))
    assert "panicked" not in private_server.output_text()
    # With the bit as it was, all is there.
    private_server.kill()
    with path.open("r+b") as file:
        file.seek(at + 40)
        file.write(bytes([byte]))
    private_server.start(arguments)
    assert private_server.execute("SELECT v FROM big WHERE k = 17") == [(text(17, 0, size),)]
    assert private_server.execute("SELECT count(v), count(*) FILTER (WHERE v = 'new') FROM big") == [(keys + 1, 1)]
    assert private_server.execute("SELECT v FROM other") == [("two",)]
    assert private_server.stop() == 0
