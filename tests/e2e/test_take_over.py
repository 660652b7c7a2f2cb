"""Two servers, one home: who is refused, who is fenced, and that a fenced one acknowledges nothing and shows nothing old.

Both are real processes on a real object store. Each has a proxy of its own before the store, so that one of them can be cut off.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from faultproxy import FaultProxy
from harness import TIMEOUT_S, Server, wait_until
from objectserver import START_S, ObjectServer, go_on, home, store  # noqa: F401 a fixture
from test_operation import refused
from transfers import GOING, Bank

pytestmark = [pytest.mark.logstead_only, pytest.mark.two_stores]

# What a server ends with that was replaced.
FENCED = 74
SHORT_LEASE = ("--lease-duration", "3s")
# Whoever waits for this one to run out fails its test by its time limit.
LONG_LEASE = ("--lease-duration", "1h")


@dataclass
class Pair:
    """Two servers on one home, and each one's way to the store."""

    servers: list[ObjectServer]
    proxies: list[FaultProxy]

    def __iter__(self):
        return iter(self.servers)


@pytest.fixture
def pair(store, tmp_path, seed):
    """Two servers with one home, not yet started."""
    proxies = [FaultProxy(f"{store.host}:{store.port}", seed + number) for number in range(2)]
    servers = [
        ObjectServer(tmp_path / f"server{number}", home(store, proxy=proxy, timeout=1000), store.environment)
        for number, proxy in enumerate(proxies)
    ]
    # One lane each, so that there is more than one to fence.
    for server in servers:
        server.arguments += ["--workers-per-lane", "1"]
    yield Pair(servers, proxies)
    for server in servers:
        if server.running():
            os.kill(server.process.pid, signal.SIGCONT)
        server.kill()
    for proxy in proxies:
        proxy.close()


def ends_fenced(server: Server) -> None:
    """The server ends by itself, in the way that says that another one has its home."""
    status = server.process.wait(2 * TIMEOUT_S)
    assert status == FENCED, f"ended with {status}\n{server.output_text()[-3000:]}"
    assert "panicked" not in server.output_text(), server.output_text()[-3000:]


def stop(pid: int) -> None:
    """SIGSTOP, and all its threads have stopped: on a busy machine some go on for a while, and may answer, rightly."""
    os.kill(pid, signal.SIGSTOP)

    def states():
        stats = Path(f"/proc/{pid}/task").glob("*/stat")
        return {stat.read_text().rpartition(")")[2].split()[0] for stat in stats}

    wait_until(lambda: states() == {"T"}, what="all threads stopped")


class Ask(threading.Thread):
    """One statement in the background: its rows, or the error it ended with."""

    def __init__(self, connection: psycopg.Connection, statement: str):
        super().__init__(daemon=True)
        self.connection, self.statement = connection, statement
        self.rows: list | None = None
        self.error: psycopg.Error | None = None
        self.start()

    def run(self):
        try:
            cursor = self.connection.execute(self.statement)
            self.rows = cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            self.error = error

    def fails(self, when: str = "") -> None:
        """It is never answered: an error that says that the server goes, or a closed connection."""
        self.join(TIMEOUT_S)
        assert not self.is_alive(), f"{self.statement}: the client hangs"
        assert self.rows is None, f"{self.statement}: answered {self.rows} {when}"
        assert self.error.sqlstate is None or self.error.sqlstate in GOING, repr(self.error)


# -- one at a time ----------------------------------------------------------------------------------------------------


def test_second_server_is_refused(pair):
    """With the name of the first, which goes on undisturbed."""
    first, second = pair
    first.arguments += SHORT_LEASE
    second.arguments += SHORT_LEASE
    first.start()
    first.execute("CREATE TABLE t (id int)")
    for number in range(2):
        said = refused(second)
        assert socket.gethostname() in said and str(first.process.pid) in said and "--take-over" in said, said
        first.execute(f"INSERT INTO t VALUES ({number})")
    assert first.execute("SELECT count(*) FROM t") == [(2,)]
    assert first.stop() == 0


@pytest.mark.one_store
def test_restarts_need_not_wait_for_the_lease(pair):
    """After an orderly stop anybody starts at once; after kill -9, whoever can see that the process is gone and is told that it is the only such machine."""
    first, second = pair
    for server in pair:
        server.arguments += LONG_LEASE
    first.start()
    first.execute("CREATE TABLE t (id int)")
    assert first.stop() == 0
    for round_number in range(3):
        for server in (second, first):
            server.start()
            server.execute("INSERT INTO t VALUES (1)")
            if round_number == 1:
                assert server.stop() == 0
            else:
                server.kill()
    first.start()
    assert first.execute("SELECT count(*) FROM t") == [(6,)]


@pytest.mark.one_store
def test_process_that_ended_is_waited_for_on_a_machine_that_may_be_a_copy(pair):
    """It may go on where the copy was made. Only the store can tell, by a renewal; an orderly stop is proof everywhere."""
    first, second = pair
    for server in pair:
        server.never_copied = False
        server.arguments += SHORT_LEASE
    first.start()
    first.execute("CREATE TABLE t (id int)", "INSERT INTO t VALUES (1)")
    first.kill()
    second.start()
    waited = "has ended on this machine, and may be alive on one that this is a copy of"
    assert waited in second.output_text(), second.output_text()[-3000:]
    assert second.execute("SELECT count(*) FROM t") == [(1,)]
    assert second.stop() == 0
    first.start()
    assert waited not in first.output_text()


@pytest.mark.one_store
def test_server_killed_during_its_start_is_no_obstacle(pair, seed):
    rng = random.Random(seed)
    first, second = pair
    for server in pair:
        server.arguments += LONG_LEASE
    first.start()
    first.execute("CREATE TABLE t (id int)")
    for number in range(8):
        first.kill()
        requests = pair.proxies[1].counts()["requests"] + rng.randrange(60)
        second.start(wait=False)
        wait_until(lambda: pair.proxies[1].counts()["requests"] >= requests or "listening" in second.output_text(), what="the start")
        second.kill()
        first.start()
        first.execute(f"INSERT INTO t VALUES ({number})")
    assert first.execute("SELECT count(*) FROM t") == [(8,)]


# -- taking over ------------------------------------------------------------------------------------------------------


def test_take_over_from_a_server_at_work(pair, seed):
    """The first ends by itself; what it had acknowledged is there, what it had not is not acknowledged later."""
    first, second = pair
    for server in pair:
        server.arguments += SHORT_LEASE
    first.start()
    bank = Bank(seed, clients=8).open(first)
    bank.start(first, second)
    for _ in range(3):
        go_on(first, bank, 60)
        pid = first.process.pid
        second.start(arguments=["--take-over"])
        ends_fenced(first)
        bank.ended(pid)
        go_on(second, bank, 60)
        first, second = second, first
    bank.stop()
    there = bank.check(first)
    pid = first.process.pid
    first.kill()
    bank.ended(pid)
    second.start()
    assert bank.check(second) == there
    print(bank)


@pytest.mark.one_store
def test_pending_commits_of_a_fenced_server_are_never_acknowledged(pair):
    """One commit per lane is under way when the first is cut off; delivered after the take-over, they change nothing."""
    first, second = pair
    for server in pair:
        server.arguments += SHORT_LEASE
    first.start()
    first.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    connections = [first.connect(autocommit=True) for _ in range(6)]
    for number, connection in enumerate(connections):
        connection.execute("INSERT INTO t VALUES (%s, 'before')", (number,))
    pair.proxies[0].cut("hold")
    pending = [Ask(connection, f"UPDATE t SET v = 'pending' WHERE id = {number}") for number, connection in enumerate(connections)]
    wait_until(lambda: pair.proxies[0].counts()["cut append"] + pair.proxies[0].counts()["cut put_if_absent"] > 0, what="held commits")
    second.start(arguments=["--take-over"])
    assert all(ask.is_alive() for ask in pending), "acknowledged without the store"
    second.execute("INSERT INTO t VALUES (100, 'after')")
    # Now they arrive.
    pair.proxies[0].mend(deliver=True)
    for ask in pending:
        ask.fails()
    ends_fenced(first)
    for _ in range(2):
        assert second.execute("SELECT id, v FROM t ORDER BY id") == [*((number, "before") for number in range(6)), (100, "after")]
        second.restart_after_kill()


@pytest.mark.one_store
def test_stopped_server_that_wakes_up(pair, seed):
    """SIGSTOP the first, take over, work, SIGCONT: it acknowledges nothing and shows nothing, old or new, and ends."""
    first, second = pair
    for server in pair:
        server.arguments += SHORT_LEASE
    first.start()
    bank = Bank(seed, clients=6).open(first)
    first.execute("CREATE TABLE value (v int)", "INSERT INTO value VALUES (0)")
    for number in range(1, 4):
        bank.start(first, second)
        go_on(first, bank, 40)
        connections = [first.connect(autocommit=True) for _ in range(5)]
        assert connections[0].execute("SELECT v FROM value").fetchone() == (number - 1,)
        pid = first.process.pid
        stop(pid)
        # Asked while it sleeps.
        asleep = [Ask(connections[0], "SELECT v FROM value"), Ask(connections[1], "UPDATE value SET v = 1000 RETURNING v")]
        second.start(arguments=["--take-over"])
        bank.ended(pid)
        bank.give_up(pid)
        second.execute(f"UPDATE value SET v = {number}")
        go_on(second, bank, 20)
        os.kill(pid, signal.SIGCONT)
        awake = [
            Ask(connections[2], "SELECT v FROM value"),
            Ask(connections[3], "INSERT INTO value VALUES (1001)"),
            Ask(connections[4], "SELECT 1 / (v - v) FROM value"),
        ]
        for ask in asleep:
            ask.fails("asked while it slept")
        for ask in awake:
            ask.fails("asked when it was awake again")
        ends_fenced(first)
        go_on(second, bank, 20)
        bank.stop()
        assert second.execute("SELECT v FROM value") == [(number,)]
        bank.check(second)
        first, second = second, first
    print(bank)


@pytest.mark.parametrize("delivers", [False, True], ids=["lost", "late"])
def test_server_that_is_cut_off(pair, seed, delivers):
    """Its lease runs out, another one starts without being told to take over; reads on the first get no answer meanwhile."""
    first, second = pair
    for server in pair:
        server.arguments += SHORT_LEASE
    first.start()
    bank = Bank(seed, clients=6).open(first)
    first.execute("CREATE TABLE value (v int)", "INSERT INTO value VALUES (0)")
    ways = dict(zip(pair.servers, pair.proxies))
    for number in range(1, 3):
        bank.start(first, second)
        go_on(first, bank, 40)
        connections = [first.connect(autocommit=True) for _ in range(3)]
        pid = first.process.pid
        ways[first].cut("hold")
        # No `--take-over`: it starts when the lease has run out.
        second.start()
        bank.ended(pid)
        bank.give_up(pid)
        second.execute(f"UPDATE value SET v = {number}")
        assert first.running(), f"it ended, though nobody told it\n{first.output_text()[-3000:]}"
        asked = [Ask(connections[0], "SELECT v FROM value"), Ask(connections[1], "UPDATE value SET v = 1000"), Ask(connections[2], "SELECT 1")]
        go_on(second, bank, 20)
        assert all(ask.rows is None for ask in asked), [ask.rows for ask in asked]
        ways[first].mend(deliver=delivers)
        for ask in asked:
            ask.fails()
        ends_fenced(first)
        go_on(second, bank, 20)
        bank.stop()
        assert second.execute("SELECT v FROM value") == [(number,)]
        bank.check(second)
        first, second = second, first
    print(bank)


# -- many of these ----------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_take_overs_of_every_kind(pair, seed):
    """Whatever happens to the one, the other goes on: stops, kills, sleep, cuts, take-overs that are killed half-way."""
    rng = random.Random(seed)
    first, second = pair
    for server in pair:
        server.arguments += SHORT_LEASE
    ways = dict(zip(pair.servers, pair.proxies))
    first.start()
    bank = Bank(seed, clients=8, readers=3).open(first)
    bank.start(first, second)
    happened = []
    try:
        for _ in range(20):
            go_on(first, bank, rng.randrange(10, 60))
            pid = first.process.pid
            event = rng.choice(["stop", "kill", "take over", "sleep", "cut", "half"])
            happened.append(event)
            if event == "stop":
                assert first.stop() == 0
                second.start(timeout_s=START_S)
            elif event == "kill":
                first.kill()
                second.start(timeout_s=START_S)
            elif event == "take over":
                second.start(arguments=["--take-over"], timeout_s=START_S)
                ends_fenced(first)
            elif event == "sleep":
                stop(pid)
                second.start(arguments=["--take-over"], timeout_s=START_S)
                bank.ended(pid)
                bank.give_up(pid)
                go_on(second, bank, rng.randrange(1, 20))
                os.kill(pid, signal.SIGCONT)
                ends_fenced(first)
            elif event == "cut":
                ways[first].cut("hold")
                second.start(arguments=rng.choice([[], ["--take-over"]]), timeout_s=START_S)
                bank.ended(pid)
                bank.give_up(pid)
                go_on(second, bank, rng.randrange(1, 20))
                ways[first].mend(deliver=rng.random() < 0.5)
                ends_fenced(first)
            else:
                # It may have got as far as to fence the first, or not.
                requests = ways[second].counts()["requests"] + rng.randrange(80)
                second.start(arguments=["--take-over"], wait=False)
                way = ways[second]
                wait_until(
                    lambda way=way, goal=requests, server=second: way.counts()["requests"] >= goal or "listening" in server.output_text(),
                    what="the start",
                )
                second.kill()
                time.sleep(rng.uniform(0, 1))
                second.start(arguments=["--take-over"], timeout_s=START_S)
                ends_fenced(first)
            bank.ended(pid)
            first, second = second, first
        bank.stop()
    except BaseException as error:
        said = "\n---\n".join(server.output_text()[-3000:] for server in pair)
        for server in pair:
            if server.running():
                os.kill(server.process.pid, signal.SIGCONT)
            server.kill()
        raise AssertionError(f"--seed {seed}, after {happened}: {error}\n{bank}\n{said}") from error
    there = bank.check(first)
    first.kill()
    second.start(timeout_s=START_S)
    assert bank.check(second) == there
    print(f"{happened}: {bank}")
