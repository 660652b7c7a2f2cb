"""Restore points, going back to them, and branches, as operators meet them: on local disks and on object stores, with kill -9."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from pathlib import Path

import psycopg
import pytest
from faultproxy import FaultProxy
from harness import LogsteadServer
from objectserver import IMPATIENT, ObjectServer, home
from objectstores import start as start_store
from test_checkpoints import assert_clean, one

pytestmark = pytest.mark.logstead_only

OFTEN = ("--checkpoint-interval", "100ms")


def tool(*arguments: str, environment: dict[str, str] | None = None, check: bool = True) -> subprocess.CompletedProcess:
    """`logstead ARGUMENTS`"""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("LOGSTEAD_")}
    command = [LogsteadServer.binary(), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**inherited, **(environment or {})})
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def killed(after_s: float, *arguments: str) -> bool:
    """Begins `logstead ARGUMENTS` and kills it. True if it was through by then."""
    process = subprocess.Popen([LogsteadServer.binary(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        process.communicate(timeout=after_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return False
    return True


def at_data(root: Path, data: Path, *arguments: str) -> LogsteadServer:
    """A server of another directory, or of a branch."""

    class Other(LogsteadServer):
        def command(self, *more: str) -> list[str]:
            return [self.binary(), "serve", "--listen", "127.0.0.1:0", "--data", str(data), "--workers", "2", *arguments, *more]

    return Other(root)


def values(server) -> list:
    return server.execute("SELECT id, v FROM t ORDER BY id")


def test_restore_points_are_made_listed_and_dropped(private_server):
    private_server.start(OFTEN)
    private_server.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a')")
    assert private_server.execute("SELECT logstead_create_restore_point('before')") == [("before",)]
    points = private_server.execute("SELECT name, csn, objects, bytes FROM logstead_restore_points WHERE name = 'before'")
    assert len(points) == 1 and points[0][1] > 0 and points[0][2] > 0 and points[0][3] > 0, points
    with private_server.connect(autocommit=True) as connection:
        with pytest.raises(psycopg.errors.DuplicateObject):
            connection.execute("SELECT logstead_create_restore_point('before')")
        with pytest.raises(psycopg.errors.UndefinedObject):
            connection.execute("SELECT logstead_drop_restore_point(%s)", ("nothing",))
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            connection.execute("SELECT logstead_create_restore_point('')")
        assert connection.execute("SELECT logstead_create_restore_point(NULL)").fetchone() == (None,)
        # In a transaction: what others have committed, not what it has written itself.
        with connection.transaction():
            connection.execute("INSERT INTO t VALUES (2, 'b')")
            connection.execute("SELECT logstead_create_restore_point(%s)", ("within",))
    private_server.restart_after_kill(arguments=OFTEN)
    names = "SELECT name FROM logstead_restore_points WHERE name IS NOT NULL ORDER BY csn, name"
    assert private_server.execute(names) == [("before",), ("within",)]
    assert private_server.execute("SELECT logstead_drop_restore_point('before')") == [("before",)]
    assert private_server.execute(names) == [("within",)]
    private_server.stop()
    assert_clean(private_server.home)


def test_going_back_in_time(private_server, tmp_path):
    """To the state of a time, a name, and not before the oldest; the old one stays as it is. Cut short by kill -9, it goes on."""
    keep = (*OFTEN, "--restore-point-interval", "1s", "--restore-point-retention", "1h")
    private_server.start(keep)
    private_server.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE INDEX ON t (v)", "INSERT INTO t VALUES (0, 'first')")
    states = []
    for number in range(1, 6):
        private_server.execute(f"INSERT INTO t SELECT g, 'v{number}' || repeat('x', 50) FROM generate_series({number * 1000}, {number * 1000 + 500}) AS g")
        # Time for a checkpoint that holds it, and for one that keeps that.
        time.sleep(0.4)
        states.append((private_server.execute("SELECT clock_timestamp()::text")[0][0], values(private_server)))
        time.sleep(1.2)
    private_server.execute("SELECT logstead_create_restore_point('the name')", "DELETE FROM t WHERE id > 0")
    assert len(private_server.execute("SELECT * FROM logstead_restore_points")) > 3
    private_server.stop()
    url = private_server.home
    listed = tool("branch", "list", url).stdout
    assert ": the name\n" in listed and ": kept by time\n" in listed, listed
    done = tool("restore", "--at", "2020-01-01 00:00:00+00", url, str(tmp_path / "too-early"), check=False)
    assert done.returncode == 1 and "the oldest was taken at" in done.stderr, done.stderr
    assert tool("restore", "--at", "soon", url, str(tmp_path / "x"), check=False).returncode == 2
    for number, (moment, rows) in enumerate(states[1:4]):
        new = tmp_path / f"restored{number}"
        for after_ms in (5, 15, 30, 60):
            killed(after_ms / 1000, "restore", "--at", moment, url, str(new))
        told = tool("restore", "--at", moment, url, str(new)).stdout
        assert "with the state of" in told, told
        assert_clean(str(new))
        server = at_data(tmp_path / f"server{number}", new).start()
        try:
            assert values(server) == rows
            server.execute("INSERT INTO t VALUES (-1, 'new')")
            server.restart_after_kill()
            assert len(values(server)) == len(rows) + 1
        finally:
            server.kill()
        again = tool("restore", "--at", moment, url, str(new), check=False)
        assert again.returncode == 1 and "not overwritten" in again.stderr, again.stderr
    new = tmp_path / "named"
    tool("restore", "--point", "the name", url, str(new))
    server = at_data(tmp_path / "server-named", new).start()
    try:
        assert values(server) == states[-1][1]
    finally:
        server.kill()
    private_server.start(keep)
    assert values(private_server) == [(0, "first")]


def diverge(parent, branch, rows: list) -> None:
    """Both are changed, and collected; neither sees the other's."""
    assert values(branch) == rows
    for number in range(6):
        parent.execute(f"INSERT INTO t VALUES ({1000 + number}, 'parent')", "UPDATE t SET v = v || 'p' WHERE id < 100", "CHECKPOINT")
        branch.execute(f"INSERT INTO t VALUES ({2000 + number}, 'branch')", "DELETE FROM t WHERE id = " + str(number), "CHECKPOINT")
    branch.execute("CREATE TABLE only_here (x int)", "INSERT INTO only_here VALUES (1)")
    assert parent.execute("SELECT count(*) FROM t WHERE v = 'branch'") == [(0,)]
    assert branch.execute("SELECT count(*) FROM t WHERE v = 'parent' OR v LIKE '%p'") == [(0,)]
    assert [row[0] for row in values(branch) if row[0] < 100] == [row[0] for row in rows if row[0] >= 6]


def test_a_list_of_pins_that_is_lost_is_not_an_empty_one(private_server):
    private_server.start(OFTEN)
    private_server.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a')")
    private_server.execute("SELECT logstead_create_restore_point('before')")
    private_server.stop()
    pins = private_server.data / "pins"
    hidden = pins.rename(private_server.data.parent / "pins")
    for command in (("fsck", private_server.home), ("branch", "list", private_server.home)):
        told = tool(*command, check=False)
        assert told.returncode != 0 and "pins of restore points and branches are missing" in told.stdout + told.stderr, told
    refused = tool("branch", "create", "trial", private_server.home, check=False)
    assert refused.returncode != 0 and "are missing" in refused.stderr and not pins.exists(), refused
    # The server goes on, says so at its start, and removes nothing.
    private_server.start(OFTEN)
    warned = [line for line in private_server.output if "WARN" in line and "cannot be looked up" in line]
    assert len(warned) == 1 and "are missing" in warned[0], private_server.output_text()
    for _ in range(3):
        private_server.execute("UPDATE t SET v = v || 'b'", "CHECKPOINT")
    (error,) = private_server.execute("SELECT last_collection_error FROM logstead_checkpoints")[0]
    assert "are missing" in error, error
    with private_server.connect(autocommit=True) as connection, pytest.raises(psycopg.Error, match="are missing"):
        connection.execute("SELECT logstead_create_restore_point('after')")
    private_server.stop()
    damaged = bytearray(hidden.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    pins.write_bytes(damaged)
    told = tool("fsck", private_server.home, check=False)
    assert told.returncode != 0 and "pins" in told.stdout + told.stderr, told
    private_server.start(OFTEN)
    assert [line for line in private_server.output if "WARN" in line and "cannot be looked up" in line], private_server.output_text()
    private_server.stop()
    hidden.rename(pins)
    private_server.start(OFTEN)
    private_server.execute("UPDATE t SET v = v || 'b'", "CHECKPOINT")
    with private_server.connect(autocommit=True) as connection:
        connection.execute("SET logstead.as_of = 'before'")
        assert connection.execute("SELECT * FROM t").fetchall() == [(1, "a")]
    assert private_server.execute("SELECT last_collection_error FROM logstead_checkpoints") == [(None,)]
    private_server.stop()
    assert_clean(private_server.home)


def test_a_branch_beside_its_parent(private_server, tmp_path):
    """Made with kill -9 in the middle, served beside the parent, restarted, branched again, and dropped."""
    private_server.start(OFTEN)
    private_server.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t SELECT g, 'v' || g FROM generate_series(0, 99) AS g")
    rows = values(private_server)
    data = private_server.data
    refused = tool("branch", "create", "trial", str(data), check=False)
    assert refused.returncode == 1 and "in use" in refused.stderr
    private_server.stop()
    through = False
    for after_ms in (3, 6, 10, 15, 25):
        through = killed(after_ms / 1000, "branch", "create", "trial", str(data))
    done = tool("branch", "create", "trial", str(data), check=False)
    assert done.returncode == 0 or "already exists" in done.stderr, (through, done.stderr)
    assert "branch trial (made)" in tool("branch", "list", str(data)).stdout
    assert tool("branch", "create", "No!", str(data), check=False).returncode == 1
    branch = at_data(tmp_path / "branch", data, "--branch", "trial", *OFTEN)
    try:
        branch.start()
        private_server.start(OFTEN)
        diverge(private_server, branch, rows)
        assert private_server.execute("SELECT to_regclass('only_here')") == [(None,)]
        before = (values(private_server), values(branch))
        branch.restart_after_kill()
        private_server.restart_after_kill(arguments=OFTEN)
        assert (values(private_server), values(branch)) == before
        private_server.stop()
        refused = tool("branch", "drop", "trial", str(data), check=False)
        assert refused.returncode == 1 and "in use" in refused.stderr
        branch.stop()
        assert_clean(str(data))
        clean = tool("fsck", str(data), "--branch", "trial")
        assert "DAMAGED" not in clean.stdout
        # A branch of the branch.
        tool("branch", "create", "trial/again", str(data))
        second = at_data(tmp_path / "second", data, "--branch", "trial/again").start()
        try:
            assert values(second) == before[1]
            second.execute("DELETE FROM t")
        finally:
            second.stop()
        branch.start()
        assert values(branch) == before[1]
        branch.stop()
        refused = tool("branch", "drop", "trial", str(data), check=False)
        assert refused.returncode == 1 and "branches of its own" in refused.stderr
        tool("branch", "drop", "trial/again", str(data))
        tool("branch", "drop", "trial", str(data))
        gone = tool("serve", "--data", str(data), "--listen", "127.0.0.1:0", "--branch", "trial", check=False)
        assert gone.returncode == 1 and 'branch "trial" does not exist' in gone.stderr, gone.stderr
        private_server.start(OFTEN)
        private_server.execute("UPDATE t SET v = 'x'", "CHECKPOINT")
        assert one(private_server, "logstead_checkpoints")["last_collection_error"] is None
        private_server.stop()
        assert "0 objects with 0 bytes not needed" in assert_clean(str(data))
        assert not list((data / "branches").glob("*/objects/*"))
    finally:
        branch.kill()


@pytest.mark.parametrize("kind", ("dev-bucket", "azurite", "versitygw"))
def test_a_branch_in_an_object_store(kind, tmp_path):
    """Made while the parent's server runs."""
    with start_store(kind, tmp_path) as store:
        url = home(store)
        environment = store.environment
        parent = ObjectServer(tmp_path / "parent", url, environment, *OFTEN)
        branch = ObjectServer(tmp_path / "branch", url, environment, "--branch", "trial", *OFTEN)
        try:
            parent.start()
            parent.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t SELECT g, 'v' || g FROM generate_series(0, 99) AS g", "CHECKPOINT")
            rows = values(parent)
            tool("branch", "create", "trial", url, environment=environment)
            branch.start()
            diverge(parent, branch, rows)
            before = (values(parent), values(branch))
            refused = tool("branch", "drop", "trial", url, environment=environment, check=False)
            assert refused.returncode == 1, refused.stdout
            branch.restart_after_kill()
            assert (values(parent), values(branch)) == before
            branch.stop()
            assert "DAMAGED" not in tool("fsck", url, "--branch", "trial", environment=environment).stdout
            tool("branch", "drop", "trial", url, environment=environment)
            parent.execute("UPDATE t SET v = 'x'", "CHECKPOINT")
            new = home(store, "restored")
            parent.execute("SELECT logstead_create_restore_point('here')", "DELETE FROM t", "CHECKPOINT")
            tool("restore", "--point", "here", url, new, environment=environment)
            restored = ObjectServer(tmp_path / "restored", new, environment, *OFTEN)
            try:
                restored.start()
                assert restored.execute("SELECT count(*), min(v) FROM t") == [(106, "x")]
            finally:
                restored.kill()
            parent.stop()
            assert_clean(url, environment)
        finally:
            branch.kill()
            parent.kill()


@pytest.mark.long
def test_a_branch_in_three_stores(tmp_path, seed):
    """A majority of three stores keeps parent and branch; whichever is away, the branch is made and listed, both go on, start again, and the branch is dropped."""
    with contextlib.ExitStack() as stack:
        stores = [stack.enter_context(start_store("dev-bucket", tmp_path / f"store{number}")) for number in range(3)]
        proxies = [stack.enter_context(FaultProxy(f"{store.host}:{store.port}", seed + number)) for number, store in enumerate(stores)]
        url = ",".join(home(store, proxy=proxy, **IMPATIENT) for store, proxy in zip(stores, proxies))
        environment = stores[0].environment
        parent = ObjectServer(tmp_path / "parent", url, environment, "--ack", "majority", *OFTEN)
        branch = ObjectServer(tmp_path / "branch", url, environment, "--ack", "majority", "--branch", "trial", *OFTEN)
        try:
            parent.start()
            parent.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t SELECT g, 'v' || g FROM generate_series(0, 99) AS g", "CHECKPOINT")
            rows = values(parent)
            proxies[0].cut("reset")
            refused = tool("branch", "create", "trial", url, environment=environment, check=False)
            assert refused.returncode == 1 and "ack = all" in refused.stderr, refused.stderr
            made = tool("branch", "create", "--ack", "majority", "trial", url, environment=environment)
            assert 'branch "trial" begins with the state of' in made.stdout, made.stdout
            assert "branch trial (made)" in tool("branch", "list", url, environment=environment).stdout
            # The two that the branch began with.
            branch.start()
            assert values(branch) == rows
            # Who was away for a while is a member again with the next start.
            proxies[0].mend()
            for server in (parent, branch):
                server.restart_after_kill()
            proxies[1].cut("reset")
            diverge(parent, branch, rows)
            before = (values(parent), values(branch))
            proxies[1].mend()
            proxies[2].cut("reset")
            for server in (parent, branch):
                server.restart_after_kill()
            assert (values(parent), values(branch)) == before
            proxies[2].mend()
            for number in range(3):
                for server in (parent, branch):
                    server.execute(f"INSERT INTO t VALUES ({3000 + number}, 'both')", "CHECKPOINT")
            before = (values(parent), values(branch))
            branch.stop()
            parent.stop()
            assert_clean(url, environment)
            assert "DAMAGED" not in tool("fsck", url, "--branch", "trial", environment=environment).stdout
            parent.start()
            branch.start()
            assert (values(parent), values(branch)) == before
            branch.stop()
            # What is read of a list is a majority's, and where one member has lost something it is another's.
            for key in stores[0].keys("log/objects/"):
                assert stores[0].request("DELETE", key)[0] in (200, 204)
            assert_clean(url, environment)
            verified = tool("log", "verify", url, environment=environment).stdout
            assert "the log is good" in verified and "several copies" not in verified, verified
            proxies[2].cut("reset")
            assert_clean(url, environment)
            copy = home(stores[1], "copy")
            assert "a new copy" in tool("backup", url, copy, environment=environment).stdout
            restored = ObjectServer(tmp_path / "restored", copy, environment, *OFTEN)
            try:
                restored.start()
                assert values(restored) == before[0]
            finally:
                restored.kill()
            refused = tool("branch", "drop", "trial", url, environment=environment, check=False)
            assert refused.returncode == 1 and "ack = all" in refused.stderr, refused.stderr
            tool("branch", "drop", "--ack", "majority", "trial", url, environment=environment)
            assert "trial" not in tool("branch", "list", url, environment=environment).stdout
            proxies[2].mend()
            parent.execute("UPDATE t SET v = 'x'", "CHECKPOINT")
            assert one(parent, "logstead_checkpoints")["last_collection_error"] is None
            parent.stop()
            assert_clean(url, environment)
        finally:
            branch.kill()
            parent.kill()


@pytest.mark.parametrize("kind", ("file", "dev-bucket"))
def test_a_backup_of_a_branch(kind, tmp_path):
    """It is a database of its own, with what the branch reads of its parent: taken beside both servers, incremental, and whole when the branch is gone."""
    with contextlib.ExitStack() as stack:
        if kind == "file":
            url, environment = str(tmp_path / "data"), {}
            parent = at_data(tmp_path / "parent", tmp_path / "data", *OFTEN)
            branch = at_data(tmp_path / "branch", tmp_path / "data", "--branch", "trial", *OFTEN)
        else:
            store = stack.enter_context(start_store(kind, tmp_path))
            url, environment = home(store), store.environment
            parent = ObjectServer(tmp_path / "parent", url, environment, *OFTEN)
            branch = ObjectServer(tmp_path / "branch", url, environment, "--branch", "trial", *OFTEN)
        target = tmp_path / "copy"
        try:
            parent.start()
            parent.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t SELECT g, 'v' || g FROM generate_series(0, 9999) AS g", "CHECKPOINT")
            rows = values(parent)
            parent.stop()
            tool("branch", "create", "trial", url, environment=environment)
            branch.start()
            parent.start()
            # Most of it is the parent's still.
            branch.execute("UPDATE t SET v = 'branch' WHERE id < 5", "CHECKPOINT", "INSERT INTO t VALUES (-1, 'tail')")
            parent.execute("DELETE FROM t WHERE id >= 100", "CHECKPOINT")
            said = tool("backup", "--branch", "trial", url, str(target), environment=environment).stdout
            assert "a new copy" in said, said
            held = [(-1, "tail"), *((id, "branch" if id < 5 else v) for id, v in rows)]
            assert values(branch) == held
            # Both go on; what the copy has of them already is not copied again.
            parent.execute("UPDATE t SET v = 'parent'", "CHECKPOINT")
            branch.execute("SELECT logstead_create_restore_point('here')", "DELETE FROM t WHERE id = 9999", "CHECKPOINT")
            said = tool("backup", "--branch", "trial", url, str(target), environment=environment).stdout
            assert "copy before" in said and int(said.split(" objects were there")[0].split()[-1]) > 0, said
            assert "restore point" in tool("branch", "list", "--branch", "trial", url, environment=environment).stdout
            point = tmp_path / "point"
            tool("restore", "--branch", "trial", "--point", "here", url, str(point), environment=environment)
            other = tool("backup", url, str(target), environment=environment, check=False)
            assert other.returncode == 1 and "of another database" in other.stderr, other.stderr
            unknown = tool("backup", "--branch", "other", url, str(tmp_path / "x"), environment=environment, check=False)
            assert unknown.returncode == 1 and 'branch "other" does not exist' in unknown.stderr, unknown.stderr
            branch.stop()
            parent.stop()
            tool("branch", "drop", "trial", url, environment=environment)
            for place, expected in ((target, held[:-1]), (point, held)):
                assert_clean(str(place))
                server = at_data(tmp_path / f"server-{place.name}", place).start()
                try:
                    assert values(server) == expected
                    server.execute("INSERT INTO t VALUES (20000, 'its own')", "CHECKPOINT")
                    server.restart_after_kill()
                    assert values(server) == [*expected, (20000, "its own")]
                finally:
                    server.kill()
            parent.start()
            assert parent.execute("SELECT count(*), min(v) FROM t") == [(100, "parent")]
        finally:
            branch.kill()
            parent.kill()
