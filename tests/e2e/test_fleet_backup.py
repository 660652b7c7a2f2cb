"""Continuous backup by storage nodes: one of them copies the volume on and on, another takes over, and what is there is the database."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest
from fleet import Fleet
from harness import LogsteadServer, wait_until
from objectserver import ObjectServer, go_on
from objectstores import ObjectStore
from objectstores import start as start_store
from test_backup import assert_holds, command
from test_checkpoints import assert_clean
from transfers import Bank

pytestmark = pytest.mark.logstead_only

AT_WORK = re.compile(r"backs up to (\S+): CSN (\d+), (\d+) s ago")


class BackedUp:
    """A fleet whose nodes back up to one place, and the server on it."""

    def __init__(self, root: Path, place: str, environment: dict[str, str]):
        self.root, self.place, self.environment = root, place, environment
        self.fleet = Fleet(root / "fleet", "--backup", place, "--backup-interval", "1", secret="of the fleet")
        for node in self.fleet.nodes:
            node.variables |= environment
        self.fleet.start()
        self.server = ObjectServer(root / "server", self.fleet.url(), {"LOGSTEAD_FLEET_SECRET": "of the fleet"})

    @property
    def url(self) -> str:
        return f"{self.place}/main"

    def kill(self) -> None:
        self.server.kill()
        self.fleet.kill()

    def at_work(self) -> dict[str, tuple[int, int]]:
        """By address, the nodes that say they back up: CSN and age of what is there."""
        found = ((line.split(": ")[0], AT_WORK.search(line)) for line in self.fleet.status())
        return {address: (int(hit[2]), int(hit[3])) for address, hit in found if hit}

    def says(self, what: str) -> bool:
        return any(what in line for line in self.fleet.status())

    def wait_stored(self) -> None:
        """Until a moment that is later than now is there."""
        since = time.monotonic()

        def is_there() -> bool:
            before = time.monotonic()
            return any(age + 1 < before - since for _, age in self.at_work().values())

        wait_until(is_there, timeout_s=90, what=f"a backup\n{self.fleet.status()}")

    def node_at_work(self):
        addresses = wait_until(self.at_work, timeout_s=90, what="a node that backs up")
        return next(node for node in self.fleet.nodes if node.address in addresses)

    def restored(self, name: str, *which: str) -> LogsteadServer:
        """A server on what is restored, not started."""
        server = LogsteadServer(self.root / name)
        server.root.mkdir()
        restore(*which, self.url, server.home, environment=self.environment)
        assert_clean(server.home)
        return server


def restore(*arguments: str, environment: dict[str, str], status: int = 0) -> str:
    """`logstead restore ARGUMENTS`; what it said."""
    process = command("restore", *arguments, environment=environment)
    said, errors = process.communicate(timeout=300)
    assert process.returncode == status, (process.returncode, said, errors)
    return said + errors


@pytest.fixture
def store(tmp_path):
    with start_store("dev-bucket", tmp_path / "store") as store:
        yield store


@pytest.fixture
def backed_up(tmp_path, store):
    backed_up = BackedUp(tmp_path, store.url("backups"), store.environment)
    yield backed_up
    backed_up.kill()


@pytest.fixture
def in_directory(tmp_path):
    backed_up = BackedUp(tmp_path, str(tmp_path / "backups"), {})
    yield backed_up
    backed_up.kill()


def told(bank: Bank) -> list[set[int]]:
    with bank.lock:
        return [set(books.acknowledged) for books in bank.books]


def goes_on_without_who_makes_it(backed_up: BackedUp, seed: int) -> None:
    """The node that backs up is killed under transfers, another one goes on, and then everything is killed: what was told before the last moment is there."""
    server = backed_up.server.start()
    bank = Bank(seed, clients=4, readers=1).open(server)
    bank.start(server)
    go_on(server, bank, 50)
    backed_up.wait_stored()
    first = backed_up.node_at_work()
    first.kill()
    # A large transaction, whose records lie beside the log.
    server.execute("CREATE TABLE big (v text)", "INSERT INTO big SELECT repeat(md5(g::text), 40) FROM generate_series(1, 2000) g")
    go_on(server, bank, 50)
    heard = told(bank)
    backed_up.wait_stored()
    assert backed_up.node_at_work().address != first.address
    server.execute("CHECKPOINT")
    go_on(server, bank, 50)
    assert sum(map(len, heard)) < bank.acknowledged()
    pid = server.process.pid
    backed_up.kill()
    bank.ended(pid)
    bank.stop()
    restored = backed_up.restored("restored")
    try:
        restored.start()
        assert assert_holds(bank, restored, heard) > 0
        assert restored.execute("SELECT count(*), sum(length(v)) FROM big") == [(2000, 2000 * 32 * 40)]
    finally:
        restored.kill()


def test_another_node_goes_on_in_an_object_store(backed_up, seed):
    goes_on_without_who_makes_it(backed_up, seed)


def test_another_node_goes_on_in_a_directory(in_directory, seed):
    goes_on_without_who_makes_it(in_directory, seed)


def test_restore_points_are_there_until_they_are_dropped(backed_up):
    server = backed_up.server.start()
    server.execute("CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)", "SELECT logstead_create_restore_point('one')")
    for number in range(2, 6):
        # Each changes what the one before has.
        server.execute(f"UPDATE t SET a = {number}", "CHECKPOINT")
        backed_up.wait_stored()
    one = backed_up.restored("one", "--point", "one")
    newest = backed_up.restored("newest")
    again = backed_up.root / "again"
    again.mkdir()
    # What is restored has the restore points, too.
    restore("--point", "one", newest.home, str(again / "data"), environment={})
    for restored, holds in ((one, 1), (newest, 5), (LogsteadServer(again), 1)):
        try:
            restored.start()
            assert restored.execute("SELECT a FROM t") == [(holds,)]
        finally:
            restored.kill()
    server.execute("SELECT logstead_drop_restore_point('one')", "UPDATE t SET a = 6", "CHECKPOINT")
    backed_up.wait_stored()
    nowhere = str(backed_up.root / "none")
    said = restore("--point", "one", backed_up.url, nowhere, environment=backed_up.environment, status=1)
    assert 'no restore point "one"' in said, said
    assert_clean(backed_up.url, backed_up.environment)


def contents(directory: Path) -> dict[str, tuple[int, int, int]]:
    """Each file with its length, when it was written, and its number on the disk."""
    states = ((path, path.stat()) for path in sorted(directory.rglob("*")) if path.is_file())
    return {str(path): (state.st_size, state.st_mtime_ns, state.st_ino) for path, state in states}


def test_nothing_is_stored_while_nothing_happens(in_directory):
    server = in_directory.server.start()
    server.execute("CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)", "CHECKPOINT", "INSERT INTO t VALUES (2)")
    in_directory.wait_stored()
    directory = Path(in_directory.place)

    def rests() -> bool:
        before = contents(directory)
        assert before
        for _ in range(3):
            in_directory.wait_stored()
        return contents(directory) == before

    # The server's own checkpoint may fall into it, once: then it has nothing to say until something is written.
    assert rests() or rests()
    before = contents(directory)
    server.execute("INSERT INTO t VALUES (3)")
    in_directory.wait_stored()
    assert contents(directory) != before


def test_another_database_of_the_same_name_is_refused(backed_up):
    """The volume is removed and made anew: its backup stays, and the nodes say why they make none."""
    server = backed_up.server.start()
    server.execute("CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)")
    backed_up.wait_stored()
    server.kill()
    backed_up.fleet.kill()
    for node in backed_up.fleet.nodes:
        shutil.rmtree(node.root / "data" / "volumes" / "main")
        node.start()
    server.start()
    server.execute("CREATE TABLE other (a int)", "CHECKPOINT")
    wait_until(lambda: backed_up.says("it is a backup of another database"), timeout_s=60, what=backed_up.fleet.status)
    server.execute("INSERT INTO other VALUES (1)")
    restored = backed_up.restored("restored")
    try:
        restored.start()
        assert restored.execute("SELECT a FROM t") == [(1,)]
    finally:
        restored.kill()


@pytest.mark.long
def test_a_place_that_is_away_is_told_and_waited_for(backed_up, store: ObjectStore, tmp_path):
    server = backed_up.server.start()
    server.execute("CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)")
    backed_up.wait_stored()
    store.kill()
    server.execute("INSERT INTO t VALUES (2)")
    wait_until(lambda: backed_up.says("cannot back up to"), timeout_s=120, what="a failure that is told")
    server.execute("INSERT INTO t VALUES (3)")
    secrets = (*store.credentials.values(), "of the fleet")
    for node in backed_up.fleet.nodes:
        said = node.output_text()
        assert not [secret for secret in secrets[:2] if secret in said]
    with start_store("dev-bucket", tmp_path / "store", port=store.port):
        backed_up.wait_stored()
        restored = backed_up.restored("restored")
    try:
        restored.start()
        assert restored.execute("SELECT sum(a) FROM t") == [(6,)]
    finally:
        restored.kill()
