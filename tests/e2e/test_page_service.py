"""Replicas that write the pages of their primary's checkpoints (`page_service`): only log goes from the primary to storage.

Whoever writes them, whichever of the two is killed or stopped meanwhile: what was acknowledged is there, `fsck` finds nothing, and a
checkpoint is taken all the same.
"""

from __future__ import annotations

import os
import random
import signal
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from fleet import ServerOnFleet
from harness import LogsteadServer, free_port, wait_until
from objectserver import ObjectServer, go_on, home
from objectstores import start as start_store
from test_checkpoints import assert_clean
from test_replica import ReplicaServer
from transfers import Bank

pytestmark = pytest.mark.logstead_only

# The home has little part in it: the others are for --long.
HOMES = ("file", *(pytest.param(home, marks=pytest.mark.long) for home in ("dev-bucket", "dev-fleet")))
# Not so often that a replica, which opens while nothing is kept for it yet, finds gone what it has just found.
OFTEN = ("--set", "checkpoint_interval=2s", "--set", "lease_duration=1s")


class Services:
    """A primary and a replica that writes its pages."""

    def __init__(self, primary: LogsteadServer, replica: ReplicaServer, url: str, environment: dict[str, str]):
        self.primary, self.replica, self.url, self.environment = primary, replica, url, environment

    def checkpoints(self) -> dict[str, object]:
        names = "published, published_by_replicas, replica_failures, replica_absences, published_bytes, by_replica, page_services"
        values = self.primary.execute(f"SELECT {names} FROM logstead_checkpoints")[0]
        return dict(zip(names.split(", "), values, strict=True))

    def writes(self, more: int) -> dict[str, object]:
        """Waits until the replica has written so many more checkpoints."""
        goal = self.checkpoints()["published_by_replicas"] + more
        try:
            wait_until(lambda: self.checkpoints()["published_by_replicas"] >= goal, timeout_s=120, what=f"{more} checkpoints")
        except TimeoutError as error:
            why = self.primary.execute("SELECT last_replica_error FROM logstead_checkpoints")
            state = self.replica.execute("SELECT state, feed, last_error FROM logstead_replica")
            raise AssertionError(f"{error}: {self.checkpoints()}, {why}, {state}\n{self.replica.output_text()[-2000:]}") from error
        return self.checkpoints()

    def assert_clean(self) -> None:
        """Nothing is wrong at the home, indexes and their rows included. Both are stopped."""
        assert_clean(self.url, self.environment)


@contextmanager
def services(where: str, tmp_path: Path, *arguments: str):
    """Both, running, at a home of this kind."""
    port = free_port()
    with ExitStack() as stack:
        arguments = (*OFTEN, "--listen", f"127.0.0.1:{port}", *arguments)
        if where == "file":
            primary = LogsteadServer(tmp_path / "primary")
            primary.arguments = ["--workers", "2", *arguments]
            url, environment = f"file://{primary.data}", {}
        elif where == "dev-fleet":
            primary = ServerOnFleet(tmp_path / "primary")
            primary.arguments = ["--workers", "2", *arguments]
            url, environment = primary.home, {}
        else:
            store = stack.enter_context(start_store(where, tmp_path))
            url, environment = home(store), store.environment
            primary = ObjectServer(tmp_path / "primary", url, environment, *arguments)
        stack.callback(primary.kill)
        primary.start()
        replica = ReplicaServer(tmp_path / "replica", url, environment)
        conninfo = f"host=127.0.0.1 port={port} user=postgres"
        polls = ("--set", "replica_poll_interval=20ms")
        replica.arguments = ["--workers", "2", *polls, "--page-service", "on", "--primary-conninfo", conninfo]
        stack.callback(replica.kill)
        replica.start()
        yield Services(primary, replica, url, environment)


@pytest.mark.parametrize("where", HOMES)
def test_pages_are_the_replicas_whoever_is_killed(where, tmp_path, seed, request):
    """Transfers, while both are killed at random and started again; what the primary writes of checkpoints does not grow meanwhile."""
    rng = random.Random(seed)
    with services(where, tmp_path) as both:
        primary, replica = both.primary, both.replica
        bank = Bank(seed, clients=3, readers=1).open(primary)
        usual = 1 if where == "dev-fleet" else 2
        for _ in range(3 if request.config.getoption("--long") else usual):
            bank.start(primary)
            before = both.writes(1)
            go_on(primary, bank, 30)
            after = both.writes(2)
            written = after["published_by_replicas"] - before["published_by_replicas"]
            failures = sum(after[name] - before[name] for name in ("replica_failures", "replica_absences"))
            # Each that was not the replica's is accounted for, and without one the primary has stored nothing.
            own = after["published"] - before["published"] - written
            assert own <= failures, (before, after)
            if own == 0:
                assert after["published_bytes"] == before["published_bytes"]
            assert after["page_services"] == 1
            for server in rng.choice([(primary,), (replica,), (primary, replica)]):
                pid = server.process.pid
                server.kill()
                if server is primary:
                    bank.ended(pid)
                    bank.stop()
                server.start()
            bank.stop()
            bank.check(primary)
        bank.start(primary)
        both.writes(1)
        bank.stop()
        there = bank.check(primary)
        replica.follows(primary)
        query = "SELECT * FROM account ORDER BY 1"
        assert replica.execute(query) == primary.execute(query)
        assert replica.stop() == 0
        assert primary.stop() == 0
        both.assert_clean()
        primary.start()
        assert bank.check(primary) == there


@pytest.mark.parametrize("where", HOMES)
def test_the_primary_takes_a_checkpoint_itself_where_no_replica_does(where, tmp_path):
    """One that is stopped costs a wait; one that is killed costs nothing. Both write again when they are back."""
    with services(where, tmp_path, "--page-service-timeout", "500ms") as both:
        primary, replica = both.primary, both.replica
        primary.execute("CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t SELECT g, 0 FROM generate_series(1, 2000) g")

        def changed() -> None:
            primary.execute("UPDATE t SET n = n + 1 WHERE id % 50 = 0")

        def written(what: str, is_there) -> dict[str, object]:
            def there() -> bool:
                changed()
                return is_there(both.checkpoints())

            wait_until(there, timeout_s=120, what=what)
            return both.checkpoints()

        first = written("the replica's first", lambda now: now["published_by_replicas"] > 0)
        os.kill(replica.process.pid, signal.SIGSTOP)
        stopped = written("the primary's", lambda now: now["replica_failures"] > first["replica_failures"] and now["by_replica"] is False)
        # It is not asked again while it says nothing.
        more = written("more of the primary's", lambda now: now["published"] >= stopped["published"] + 3)
        assert more["replica_failures"] == stopped["replica_failures"]
        assert more["published_by_replicas"] == stopped["published_by_replicas"]
        why = primary.execute("SELECT last_replica_error FROM logstead_checkpoints")[0][0]
        assert why, "the view says why"
        os.kill(replica.process.pid, signal.SIGCONT)
        back = written("the replica's again", lambda now: now["published_by_replicas"] > more["published_by_replicas"])
        replica.kill()
        gone = written("the primary's again", lambda now: now["page_services"] == 0 and now["by_replica"] is False)
        assert gone["published"] > back["published"]
        replica.start()
        written("the replica's at last", lambda now: now["published_by_replicas"] > gone["published_by_replicas"])
        # By hand, as a restore point and at the stop as well.
        primary.execute("CHECKPOINT")
        expected = primary.execute("SELECT sum(n), count(*) FROM t")
        assert replica.stop() == 0
        assert primary.stop() == 0
        both.assert_clean()
        primary.start()
        assert primary.execute("SELECT sum(n), count(*) FROM t") == expected
