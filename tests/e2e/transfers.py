"""The account-transfer check: clients that outlive servers, and keep books of their own about what they were told.

Each client moves money between accounts and counts its transfers, in the database and here. It connects to whatever server it is
pointed at, again and again; a COMMIT without an answer is in doubt until the client, on another server process than the one that
owed the answer, sees whether the transfer is there: from then on it must stay as it was seen. Readers check, while all this goes
on, that money is neither made nor lost, and that no answer of any server is older than what some client had been told before the
question was asked: on a server that was cut off and replaced, that is the stale read that must not happen.

At the end: the sum is right, every acknowledged transfer is there exactly once, none is there twice, none of those that were seen
to be missing has come back, and the balances follow from the ledger.
"""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

import psycopg
from harness import TIMEOUT_S, Server

ACCOUNTS = 48
OPENING = 1000
# What a client may be told about a transaction that certainly did not happen.
RETRYABLE = ("40001", "40P01")
# What a server that is going away may say: shutting down, or that the outcome is unknown.
GOING = ("57P01", "57P02", "57P03", "08007", "08006", "08003")

# Without a unique key in the ledger: a transfer that is there twice must show, not fail.
SCHEMA = [
    "CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL)",
    "CREATE TABLE ledger (client int NOT NULL, number int NOT NULL, src int NOT NULL, dst int NOT NULL, amount int NOT NULL, note text)",
    "CREATE INDEX ledger_of ON ledger (client, number)",
    "CREATE TABLE counter (client int PRIMARY KEY, n int NOT NULL)",
    f"INSERT INTO account SELECT g, {OPENING} FROM generate_series(1, {ACCOUNTS}) AS g",
]


@dataclass
class Books:
    """What one client knows of its transfers, by number."""

    acknowledged: set[int] = field(default_factory=set)
    # Seen to be missing, by a server that came after the one that owed the answer.
    missing: set[int] = field(default_factory=set)
    # No answer yet: the process that owed it.
    doubtful: dict[int, int] = field(default_factory=dict)
    # Refused with an error that says it did not happen.
    refused: set[int] = field(default_factory=set)
    next: int = 0


class Bank:
    """The clients, their books, and what they found wrong."""

    def __init__(self, seed: int, clients: int = 6, readers: int = 2):
        self.rng = random.Random(seed)
        self.books = [Books() for _ in range(clients)]
        self.readers = readers
        self.lock = threading.Lock()
        self.wrong: list[str] = []
        self.endings: Counter[str] = Counter()
        self.answers = 0
        # What each client's counter was known to be at least.
        self.known = [0] * clients
        self.threads: list[threading.Thread] = []
        self.stopping = threading.Event()
        self.dead: set[int] = set()
        # Which connection to which process each client and reader has.
        self.connections: dict[str, tuple[psycopg.Connection, int]] = {}

    def open(self, server: Server) -> "Bank":
        """Makes the tables."""
        server.execute(*SCHEMA)
        server.execute(f"INSERT INTO counter SELECT g, 0 FROM generate_series(0, {len(self.books) - 1}) AS g")
        return self

    def start(self, *servers: Server) -> None:
        """Clients begin; each is pointed at one of the servers, and turns to the others when that is gone."""
        self.stopping.clear()
        jobs = [(self.client, number) for number in range(len(self.books))] + [(self.reader, number) for number in range(self.readers)]
        self.threads = [
            threading.Thread(target=self.guarded, args=(job, number, servers, self.rng.random()), daemon=True)
            for job, number in jobs
        ]
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """Clients end after what they are doing; none may hang."""
        self.stopping.set()
        deadline = time.monotonic() + 2 * TIMEOUT_S
        for thread in self.threads:
            thread.join(max(0.0, deadline - time.monotonic()))
            assert not thread.is_alive(), "a client hangs"
        self.assert_right()

    def acknowledged(self) -> int:
        """Transfers that clients were told are done, so far."""
        return sum(len(books.acknowledged) for books in self.books)

    def assert_right(self) -> None:
        assert not self.wrong, self.wrong[:20]

    # -- clients --------------------------------------------------------------------------------------------------
    def guarded(self, job, number: int, servers, seed: float) -> None:
        try:
            self.connected(job, number, servers, random.Random(seed))
        except Exception as error:  # noqa: BLE001 a thread's own failure would go unnoticed
            self.wrong.append(f"{job.__name__} {number}: {error!r}")

    def connected(self, job, number: int, servers, rng: random.Random) -> None:
        """Does the job on a connection, and on the next when that ends."""
        turn = number
        while not self.stopping.is_set():
            server = servers[turn % len(servers)]
            pid = server.process.pid if server.running() else 0
            try:
                connection = server.connect(autocommit=True, connect_timeout=5, prepare_threshold=None)
            except (psycopg.OperationalError, ValueError):
                turn += 1
                self.stopping.wait(0.05)
                continue
            with connection:
                if not pid or server.process.pid != pid:
                    continue  # Which process this is cannot be said.
                with self.lock:
                    self.connections[f"{job.__name__} {number}"] = (connection, pid)
                try:
                    job(number, connection, pid, rng)
                    return
                except psycopg.Error as error:
                    with self.lock:
                        self.endings[error.sqlstate or "connection lost"] += 1
                    if not connection.closed and error.sqlstate not in GOING:
                        raise
            turn += 1

    def client(self, number: int, connection: psycopg.Connection, pid: int, rng: random.Random) -> None:
        books = self.books[number]
        self.resolve(number, connection, pid)
        while not self.stopping.is_set():
            books.next += 1
            transfer = books.next
            books.doubtful[transfer] = pid
            try:
                count = self.transfer(number, transfer, connection, rng)
            except psycopg.Error as error:
                if connection.closed or error.sqlstate not in RETRYABLE:
                    raise
                del books.doubtful[transfer]
                books.refused.add(transfer)
                connection.execute("ROLLBACK")
                continue
            with self.lock:
                del books.doubtful[transfer]
                books.acknowledged.add(transfer)
                self.known[number] = max(self.known[number], count)
                self.answers += 1

    @staticmethod
    def transfer(number: int, transfer: int, connection: psycopg.Connection, rng: random.Random) -> int:
        """One transfer; the client's counter behind it, which COMMIT makes true."""
        src, dst = rng.sample(range(1, ACCOUNTS + 1), 2)
        amount = rng.randrange(1, 100)
        (low, less), (high, more) = sorted([(src, -amount), (dst, amount)])
        level = rng.choice(["READ COMMITTED", "REPEATABLE READ"])
        note = "x" * rng.choice([0, 10, 200, 2000])
        statements = [
            f"BEGIN ISOLATION LEVEL {level}",
            f"UPDATE account SET balance = balance + {less} WHERE id = {low}",
            f"UPDATE account SET balance = balance + {more} WHERE id = {high}",
            f"INSERT INTO ledger VALUES ({number}, {transfer}, {src}, {dst}, {amount}, '{note}')",
            f"UPDATE counter SET n = n + 1 WHERE client = {number} RETURNING n",
            "COMMIT",
        ]
        if rng.random() < 0.3:
            for statement in statements:
                cursor = connection.execute(statement)
                if cursor.description:
                    count = cursor.fetchone()[0]
            return count
        # All in one message.
        cursor = connection.execute("; ".join(statements))
        while cursor.description is None:
            assert cursor.nextset()
        count = cursor.fetchone()[0]
        while cursor.nextset():
            pass
        assert cursor.statusmessage == "COMMIT", cursor.statusmessage
        return count

    def resolve(self, number: int, connection: psycopg.Connection, pid: int) -> None:
        """Sees what became of the transfers whose COMMIT another process owed an answer."""
        books = self.books[number]
        # The process that owed it may still be about to do it: only a later server can say that it never was.
        mine = [transfer for transfer, owed in books.doubtful.items() if owed != pid]
        for transfer in mine:
            rows = connection.execute("SELECT count(*) FROM ledger WHERE client = %s AND number = %s", (number, transfer)).fetchone()[0]
            if rows > 1:
                self.wrong.append(f"transfer {transfer} of client {number} is there {rows} times")
            with self.lock:
                if rows:
                    books.acknowledged.add(transfer)
                elif books.doubtful[transfer] in self.dead:
                    books.missing.add(transfer)
                else:
                    continue
                del books.doubtful[transfer]

    def give_up(self, pid: int) -> None:
        """Every other client and reader of a process that does not answer closes its connection and turns to another server. The
        rest go on waiting for their answers."""
        with self.lock:
            for name, (connection, owner) in self.connections.items():
                if owner == pid and int(name.split()[1]) % 2 == 0 and not connection.closed:
                    with socket.socket(fileno=os.dup(connection.fileno())) as line:
                        line.shutdown(socket.SHUT_RDWR)

    def ended(self, *pids: int) -> None:
        """These processes are gone, or can change nothing any more: what a later one does not show never was."""
        with self.lock:
            self.dead.update(pids)

    # -- readers --------------------------------------------------------------------------------------------------
    def reader(self, _: int, connection: psycopg.Connection, pid: int, rng: random.Random) -> None:
        while not self.stopping.is_set():
            self.read(connection, pid)
            self.stopping.wait(rng.uniform(0, 0.02))

    def read(self, connection: psycopg.Connection, pid: int) -> None:
        """One look at all counters and at the sum, judged by what was known before."""
        with self.lock:
            known = list(self.known)
        rows = connection.execute(
            "SELECT client, n, (SELECT sum(balance) FROM account), (SELECT count(*) FROM account) FROM counter"
        ).fetchall()
        with self.lock:
            self.answers += 1
            for client, n, total, accounts in rows:
                if (total, accounts) != (ACCOUNTS * OPENING, ACCOUNTS):
                    self.wrong.append(f"process {pid} shows a total of {total} in {accounts} accounts")
                if n < known[client]:
                    self.wrong.append(f"process {pid} shows client {client} at {n}, which was known to be at {known[client]}")
                # Shown is as good as told.
                self.known[client] = max(self.known[client], n)
            if len(rows) != len(self.books):
                self.wrong.append(f"process {pid} shows {len(rows)} counters")

    # -- the end --------------------------------------------------------------------------------------------------
    def check(self, server: Server) -> int:
        """All clients have stopped: the books agree with the database. The number of transfers there."""
        self.assert_right()
        with server.connect(autocommit=True) as connection:
            counters = dict(connection.execute("SELECT client, n FROM counter").fetchall())
            balances = dict(connection.execute("SELECT id, balance FROM account").fetchall())
            rows = connection.execute("SELECT client, number, src, dst, amount FROM ledger").fetchall()
            by_index = [
                connection.execute("SELECT count(*) FROM ledger WHERE client = %s AND number > 0", (client,)).fetchone()[0]
                for client in range(len(self.books))
            ]
        assert sum(balances.values()) == ACCOUNTS * OPENING, "money was made or lost"
        expected = dict.fromkeys(range(1, ACCOUNTS + 1), OPENING)
        found: list[set[int]] = [set() for _ in self.books]
        for client, transfer, src, dst, amount in rows:
            assert transfer not in found[client], f"transfer {transfer} of client {client} is there twice"
            found[client].add(transfer)
            expected[src] -= amount
            expected[dst] += amount
        assert balances == expected, "the balances do not follow from the ledger"
        for client, books in enumerate(self.books):
            lost = books.acknowledged - found[client]
            assert not lost, f"client {client}: acknowledged and lost: {sorted(lost)[:20]}"
            back = found[client] & (books.missing | books.refused)
            assert not back, f"client {client}: never committed, yet there: {sorted(back)[:20]}"
            surplus = found[client] - books.acknowledged - set(books.doubtful)
            assert not surplus, f"client {client}: nobody asked for these: {sorted(surplus)[:20]}"
            assert counters[client] == len(found[client]) == by_index[client], f"client {client}: counter, ledger and index disagree"
            assert counters[client] >= self.known[client], f"client {client}: shown and lost"
        return len(rows)

    def __str__(self) -> str:
        doubtful = sum(len(books.doubtful) for books in self.books)
        missing = sum(len(books.missing) for books in self.books)
        return (
            f"{self.acknowledged()} acknowledged transfers, {missing} without answer that never were, {doubtful} in doubt,"
            f" {self.answers} answers judged, connections ended by {dict(self.endings)}"
        )
