"""A volume of two groups of three nodes: lanes and objects are divided between them, and each may do without a node."""

from __future__ import annotations

import subprocess
import time

import pytest
from fleet import Fleet, Node
from harness import ServerError, wait_until
from objectserver import ObjectServer, go_on, log
from test_replace import replace
from transfers import Bank

pytestmark = pytest.mark.logstead_only

# Of each group.
NODES = 3


class Groups(Fleet):
    """Two times three nodes; the volume's URL names the first three."""

    def __init__(self, root):
        super().__init__(root, zones=("a", "b", "c") * 2)
        self.seeds = self.group(0)

    def group(self, number: int) -> list[Node]:
        return self.nodes[number * NODES : (number + 1) * NODES]

    def add(self) -> None:
        self.change("add-group", *(node.address for node in self.group(1)))

    def lanes(self, number: int) -> dict[int, set[str]]:
        """By epoch: the lanes that have segments on a group's nodes."""
        lanes: dict[int, set[str]] = {}
        for node in self.group(number):
            for segment in (node.root / "data/volumes/main/log").glob("lane-*/*.seg"):
                lanes.setdefault(int(segment.stem) >> 32, set()).add(segment.parent.name)
        return lanes

    def objects(self, number: int) -> int:
        """How many objects the first of a group's nodes has."""
        return sum(1 for path in (self.group(number)[0].root / "data/volumes/main/objects").rglob("*") if path.is_file())


@pytest.fixture
def fleet(tmp_path):
    fleet = Groups(tmp_path / "fleet")
    yield fleet.start()
    fleet.kill()


@pytest.fixture
def server(fleet, tmp_path):
    server = ObjectServer(tmp_path / "server", fleet.url(), {})
    yield server
    server.kill()


def restarted(server: ObjectServer, bank: Bank) -> None:
    """The server is killed and started again, in the midst of transfers."""
    pid = server.process.pid
    server.kill()
    bank.ended(pid)
    bank.stop()
    server.start()
    bank.check(server)


def divided(server: ObjectServer, fleet: Groups) -> None:
    """A server that has begun with two groups."""
    server.start()
    server.execute("CREATE TABLE made (a int)")
    fleet.add()
    assert server.stop() == 0
    server.start()


def test_a_group_is_added_under_load_and_nodes_of_both_are_killed(server, fleet, seed):
    """It is used from the next start on; then one node of each group is away, another one each time, and the server is killed."""
    server.start()
    bank = Bank(seed, clients=4).open(server)
    bank.start(server)
    go_on(server, bank, 20)
    fleet.add()
    go_on(server, bank, 20)
    said = fleet.status()
    assert "group 0:" in said and "group 1, to be used from the server's next start on:" in said, said
    first = max(fleet.lanes(0))
    # Looked at now: a checkpoint may have removed them by then.
    lanes = fleet.lanes(0)[first]
    assert not fleet.lanes(1), "nothing lies there before"
    restarted(server, bank)
    second = max(fleet.lanes(0))
    assert second > first
    here, there = fleet.lanes(0)[second], fleet.lanes(1)[second]
    assert here and there and not here & there, (here, there)
    assert here | there == lanes, "as many lanes as before, divided"
    assert set(fleet.lanes(1)) == {second}
    for away in ([0, 4], [1, 5], [2, 3]):
        bank.start(server)
        go_on(server, bank, 20)
        for number in away:
            fleet.nodes[number].kill()
        go_on(server, bank, 30)
        restarted(server, bank)
        bank.start(server)
        go_on(server, bank, 20)
        returns = server.output_text().count("is back, and complete")
        for number in away:
            fleet.nodes[number].start()
        wait_until(lambda: server.output_text().count("is back, and complete") >= returns + 2, timeout_s=60, what="two returns")
        bank.stop()
    fleet.wait_complete()

    def both_have_objects() -> bool:
        # Which group an object is in follows from its number: each checkpoint has others.
        server.execute("INSERT INTO objects VALUES (1)", "CHECKPOINT")
        return fleet.objects(0) > 0 and fleet.objects(1) > 0

    server.execute("CREATE TABLE objects (a int)")
    wait_until(both_have_objects, what="objects in both groups")
    checked = bank.check(server)
    assert not bank.endings.keys() - {"connection lost"}, bank.endings
    assert server.stop() == 0
    verified = log(server, "verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    server.start()
    assert bank.check(server) == checked


def test_a_group_is_used_by_the_process_that_replaces_the_server(server, fleet, seed):
    """Sessions and transfers go on, and what is written from then on is divided."""
    server.arguments += ["--replace-grace", "60s"]
    server.start()
    bank = Bank(seed, clients=4, readers=2).open(server)
    bank.start(server)
    go_on(server, bank, 20)
    fleet.add()
    before = fleet.lanes(0)[max(fleet.lanes(0))]
    replace(server)
    go_on(server, bank, 20)
    here, there = (fleet.lanes(number)[max(fleet.lanes(0))] for number in (0, 1))
    assert here and there and not here & there and here | there == before, (here, there, before)
    replace(server)
    go_on(server, bank, 20)
    bank.stop()
    bank.check(server)
    assert not bank.endings, bank.endings
    assert server.stop() == 0


def test_a_group_without_a_majority_keeps_commits_waiting(server, fleet, seed):
    """Nothing that was acknowledged is lost, and everything goes on when a node of it is back; a start needs a majority of each."""
    divided(server, fleet)
    bank = Bank(seed, clients=4, readers=0).open(server)
    bank.start(server)
    go_on(server, bank, 20)
    first, second, third = fleet.group(1)
    first.kill()
    go_on(server, bank, 20)
    second.kill()
    wait_until(lambda: "too few of the homes of group 1 are left" in server.output_text(), what="too few nodes")
    time.sleep(1)
    second.start()
    go_on(server, bank, 40)
    pid = server.process.pid
    server.kill()
    bank.ended(pid)
    bank.stop()
    third.kill()
    with pytest.raises(ServerError, match="group 1: "):
        server.start()
    told = fleet.command("status")
    assert told.returncode != 0 and "of group 1 answer" in told.stderr, told
    first.start()
    third.start()
    server.start()
    bank.check(server)
    fleet.wait_complete()


def test_nodes_of_a_group_are_replaced_and_what_cannot_be_is_refused(server, fleet, tmp_path):
    """Each node of the second group goes for a new one while the server runs; whoever opens the volume finds it then."""
    divided(server, fleet)
    server.execute("CREATE TABLE t (a int)", "INSERT INTO t SELECT generate_series(1, 2000)")

    def refused(what: str, *arguments: str) -> str:
        told = fleet.command(what, *arguments)
        assert told.returncode != 0, told
        return told.stderr

    before = [node.address for node in fleet.group(1)]
    another = fleet.another("a")
    assert "it is one of group 1 already" in refused("add-group", *before)
    assert "it is named twice" in refused("add-group", another.address, another.address)
    assert "from 2 to 32 nodes" in refused("add-group", another.address)
    assert "say which one the node is for" in refused("add", another.address)
    assert "it is none of the volume's nodes" in refused("remove", another.address)
    assert "another log" in refused("add", before[0], "--group", "0")
    assert "a server has begun to use it" in refused("remove-group", "1")
    wrong = f"fleet://{','.join(before)}/main"
    told = subprocess.run([server.binary(), "log", "verify", wrong], capture_output=True, text=True, timeout=60)
    assert told.returncode != 0 and "those of group 1 of the volume" in told.stderr, told
    for old in before:
        fleet.change("drain", old, another.address)
        wait_until(lambda: old not in "".join(fleet.status()), timeout_s=60, what=f"{old} to go")
        server.execute("UPDATE t SET a = a + 1")
        if old != before[-1]:
            another = fleet.another("a")
    fleet.wait_complete()
    for node in fleet.nodes:
        if node.address in before:
            node.kill()
    server.execute("UPDATE t SET a = a + 1")
    backup = tmp_path / "backup"
    told = subprocess.run([server.binary(), "backup", server.url, str(backup)], capture_output=True, text=True, timeout=120)
    assert told.returncode == 0, told.stderr
    server.kill()
    server.start()
    assert server.execute("SELECT count(*), min(a) FROM t") == [(2000, 5)]
    fleet.wait_complete()
