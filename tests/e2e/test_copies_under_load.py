"""Copies of a database that is in use: each is one moment of it.

Eight clients transfer money, two updates and a row of the ledger each. Meanwhile copies are made, a few in each stretch of load, and then every copy is opened and judged: each
transfer is in it whole or not at all, also where the one hangs on the other, and everything that clients had been told of before the copy was begun is in it. Copies that are wrong are
counted, and none may be.

200 copies of each kind with --long, otherwise 6.
"""

from __future__ import annotations

import contextlib
import random
import signal
import time
from pathlib import Path

import psycopg
import pytest
from harness import LogsteadServer, Server, ServerError
from objectserver import ObjectServer, go_on, home
from objectstores import start as start_store
from test_backup import assert_holds, command
from test_branches import at_data, tool
from test_checkpoints import SMALL_SEGMENTS, assert_clean
from transfers import Bank

pytestmark = [pytest.mark.logstead_only, pytest.mark.slow]

HOMES = ("local", "dev-bucket", "replicated", "branch")
# What the settings say, and so long that no checkpoint makes the tail short.
INTERVALS = ("default", "30s")


def loads(*usual: str) -> list:
    """Each home with each interval. A long tail is the same on all of them: but for one it is for --long, as are other homes than these."""

    def load(kind, interval):
        is_usual = kind in usual and (kind == "local" or interval == "default")
        return pytest.param(kind, interval, marks=[] if is_usual else [pytest.mark.long], id=f"{kind}-{interval}")

    return [load(kind, interval) for kind in HOMES for interval in INTERVALS]


# Copies in one stretch of load.
AT_ONCE = 3
# Who makes a copy stands still after each bit of work, until clients have made so many transfers: whatever comes between two of its requests on a busy machine comes here.
SLICE_NS = 400_000
MEANWHILE = 3
# Who waits for others is stopped all the same, and slow clients do not keep it for ever.
SLICE_S_MAX = PAUSE_S_MAX = 0.05
# An entry of one lane hangs on what others hold.
LANES = ("--workers", "4", "--workers-per-lane", "1")
# Transfers before the first copy of all: the longer the tail, the longer it takes to read; and before each further one.
FIRST = 500
BETWEEN = 20


def worked_ns(pid: int) -> int:
    """For how long a process has had a core, all its threads together."""
    total = 0
    for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # It has ended.
            total += int(thread.read_text().split()[0])
    return total


def passes(is_over, longest_s: float) -> None:
    """Some time passes."""
    deadline = time.monotonic() + longest_s
    while not is_over() and time.monotonic() < deadline:
        time.sleep(0.0005)


class Loaded:
    """A server, its clients, and what was found of the copies made of it."""

    def __init__(self, server: Server, url: str, environment: dict[str, str], bank: Bank, root: Path):
        self.server, self.url, self.environment, self.bank, self.root = server, url, environment, bank, root
        # How to name the database: --branch, if it is one.
        self.which: tuple[str, ...] = ()
        self.copies = 0
        self.wrong: list[str] = []

    def told(self) -> list[set[int]]:
        """What each client has been told of by now."""
        with self.bank.lock:
            return [set(books.acknowledged) for books in self.bank.books]

    def next_place(self) -> Path:
        self.copies += 1
        return self.root / f"copy{self.copies}"

    def slowly(self, *arguments: str, checkpoint_after: int | None = None) -> None:
        """`logstead ARGUMENTS` in slow motion, beside a server under load; with a checkpoint in its midst, after so many stops."""
        process = command(*arguments, environment=self.environment)
        stops = 0
        try:
            while process.poll() is None:
                process.send_signal(signal.SIGSTOP)
                stops += 1
                if stops == checkpoint_after:
                    self.server.execute("CHECKPOINT")
                transfers = self.bank.acknowledged() + MEANWHILE
                passes(lambda: self.bank.acknowledged() >= transfers, PAUSE_S_MAX)
                process.send_signal(signal.SIGCONT)
                work = worked_ns(process.pid) + SLICE_NS
                passes(lambda: process.poll() is not None or worked_ns(process.pid) >= work, SLICE_S_MAX)
            said, errors = process.communicate()
        finally:
            process.kill()
        assert process.returncode == 0, said + errors

    def go_on(self) -> None:
        """Clients are told of some more transfers."""
        go_on(self.server, self.bank, BETWEEN if self.copies else FIRST)

    @contextlib.contextmanager
    def load(self):
        """Clients are at work; at its end nobody is, and nothing they saw was wrong."""
        self.bank.start(self.server)
        yield
        assert self.server.running(), self.server.output_text()[-3000:]
        self.bank.stop()

    def judge(self, copy: LogsteadServer, told: list[set[int]], what: str) -> None:
        """Opens a copy and looks whether it is one moment."""
        try:
            copy.start()
            assert_holds(self.bank, copy, told)
        except (AssertionError, ServerError, psycopg.Error) as error:
            self.wrong.append(f"{what}: {' '.join(str(error).split())[-300:]}")
        finally:
            copy.kill()

    def assert_none_wrong(self) -> None:
        if self.wrong:
            pytest.fail("\n".join([f"{len(self.wrong)} of {self.copies} copies are wrong:", *self.wrong]))
        self.bank.check(self.server)
        print(f"{self.copies} copies: {self.bank}")


@contextlib.contextmanager
def loaded(kind: str, interval: str, root: Path, seed: int):
    """A server on a home of this kind, with a bank that has opened."""
    arguments = () if interval == "default" else ("--checkpoint-interval", interval)
    with contextlib.ExitStack() as stack:
        environment: dict[str, str] = {}
        if kind == "local":
            server: LogsteadServer = LogsteadServer(root / "server")
            url = server.home
            server.arguments += SMALL_SEGMENTS
        else:
            store = stack.enter_context(start_store("dev-bucket", root / "store"))
            environment = store.environment
            members = ("one", "two", "three") if kind == "replicated" else ("one",)
            url = ",".join(home(store, member) for member in members)
            server = ObjectServer(root / "server", url, environment)
            server.arguments.clear()
            server.arguments += ["--ack", "majority"] if kind == "replicated" else []
        server.arguments += [*LANES, *arguments]
        stack.callback(lambda: server.kill())
        server.start()
        bank = Bank(seed, clients=8, readers=0).open(server)
        which: tuple[str, ...] = ()
        if kind == "branch":
            server.execute("CHECKPOINT")
            tool("branch", "create", "work", url, environment=environment)
            server.stop()
            which = ("--branch", "work")
            server.arguments += which
            server.start()
        made = Loaded(server, url, environment, bank, root)
        made.which = which
        yield made


@pytest.fixture
def count(request) -> int:
    """Copies of each kind of home, with each interval."""
    return (200 if request.config.getoption("--long") else 6) // len(INTERVALS)


@pytest.mark.parametrize(("kind", "interval"), loads("local"))
def test_backups(kind, interval, count, tmp_path, seed):
    """Into new directories, one after the other."""
    with loaded(kind, interval, tmp_path, seed) as made:
        while made.copies < count:
            copies = []
            with made.load():
                for _ in range(AT_ONCE):
                    made.go_on()
                    told, target = made.told(), made.next_place()
                    made.slowly("backup", *made.which, made.url, str(target))
                    copies.append((told, target))
            for told, target in copies:
                made.judge(at_data(target.with_suffix(".server"), target), told, target.name)
        made.assert_none_wrong()


@pytest.mark.parametrize("kind", ("local", "dev-bucket"))
def test_backups_into_one_target(kind, count, tmp_path, seed):
    """Each brings the one before up to date, and each has a checkpoint in its midst, which truncates the log. What is opened is a copy of the backup."""
    rng = random.Random(seed)
    with loaded(kind, "30s", tmp_path, seed) as made:
        target = tmp_path / "target"
        while made.copies < count:
            copies = []
            with made.load():
                for _ in range(AT_ONCE):
                    made.go_on()
                    told, again = made.told(), made.next_place()
                    made.slowly("backup", made.url, str(target), checkpoint_after=rng.randrange(1, 200))
                    tool("restore", str(target), str(again))
                    copies.append((told, again))
            for told, again in copies:
                made.judge(at_data(again.with_suffix(".server"), again), told, again.name)
        assert_clean(str(target))
        made.assert_none_wrong()


@pytest.mark.parametrize(("kind", "interval"), loads("local", "branch"))
def test_branches(kind, interval, count, tmp_path, seed):
    """At restore points made under load, or at the newest checkpoint. Where a lock keeps others from a home in use, the points are copied instead, and the last ones are
    made branches when the server has stopped."""
    with loaded(kind, interval, tmp_path, seed) as made:
        path = f"{made.which[1]}/" if made.which else ""
        last: list[tuple[list[set[int]], str]] = []
        while made.copies < count:
            copies = []
            with made.load():
                for number in range(AT_ONCE):
                    made.go_on()
                    told, place = made.told(), made.next_place()
                    name = place.name
                    if kind == "local":
                        made.server.execute(f"SELECT logstead_create_restore_point('{name}')")
                        made.slowly("restore", "--point", name, made.url, str(place))
                    elif number % 2:
                        made.server.execute(f"SELECT logstead_create_restore_point('{name}')")
                        made.slowly("branch", "create", "--point", name, path + name, made.url)
                    else:
                        made.server.execute("CHECKPOINT")
                        made.slowly("branch", "create", path + name, made.url)
                    copies.append((told, place))
            for told, place in copies:
                if kind == "local":
                    made.judge(at_data(place.with_suffix(".server"), place), told, place.name)
                else:
                    branch = ObjectServer(place, made.url, made.environment, "--branch", path + place.name)
                    made.judge(branch, told, place.name)
            last = [(told, place.name) for told, place in copies]
        made.assert_none_wrong()
        if kind == "local":
            made.server.stop()
            for told, name in last:
                tool("branch", "create", "--point", name, name, made.url)
                branch = at_data(tmp_path / f"{name}.branch", made.server.data, "--branch", name)
                made.judge(branch, told, f"branch {name}")
            assert not made.wrong, made.wrong
            assert_clean(made.url)
