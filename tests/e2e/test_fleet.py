"""A log on six storage nodes in three zones: any zone may be away, and nothing that was acknowledged is lost."""

from __future__ import annotations

import os
import random
import re
import subprocess
import time

import psycopg
import pytest
from fleet import SEGMENT_BYTES, Fleet, Node
from harness import LogsteadServer, ServerError, wait_until
from objectserver import ObjectServer, go_on, log
from test_disk_full import fill
from transfers import Bank

pytestmark = pytest.mark.logstead_only


@pytest.fixture
def fleet(tmp_path):
    fleet = Fleet(tmp_path / "fleet")
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


def test_goes_on_without_a_zone(server, fleet, seed):
    """Each zone is killed in turn, in the midst of transfers, and the server as well, which starts without that zone."""
    server.start()
    server.assert_no_disk()
    bank = Bank(seed, clients=6).open(server)
    for away in "abc":
        bank.start(server)
        go_on(server, bank, 30)
        for node in fleet.zone(away):
            node.kill()
        go_on(server, bank, 30)
        restarted(server, bank)
        bank.start(server)
        go_on(server, bank, 30)
        # They are back, and lack what was acknowledged without them: the next start completes them.
        for node in fleet.zone(away):
            node.start()
        restarted(server, bank)
    assert not bank.endings.keys() - {"connection lost"}, bank.endings
    there = bank.check(server)
    assert server.stop() == 0
    assert fleet.status()[-1] == "6 of 6 copies are complete"
    verified = log(server, "verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    server.start()
    assert bank.check(server) == there
    server.assert_no_disk()


def test_nodes_come_back_while_the_server_runs(server, fleet, seed):
    """Two nodes are killed and started again under transfers, and then two others: without the first two nothing would go on."""
    server.start()
    bank = Bank(seed, clients=4).open(server)
    bank.start(server)
    for away in ([0, 3], [1, 4], [2, 5]):
        go_on(server, bank, 20)
        for number in away:
            fleet.nodes[number].kill()
        go_on(server, bank, 40)
        returns = server.output_text().count("is back, and complete")
        for number in away:
            fleet.nodes[number].start()
        wait_until(lambda: server.output_text().count("is back, and complete") >= returns + 2, timeout_s=60, what="two returns")
        fleet.wait_complete()
    go_on(server, bank, 20)
    restarted(server, bank)
    assert not bank.endings.keys() - {"connection lost"}, bank.endings


def test_nodes_come_back_to_a_server_at_rest(server, fleet):
    """Lanes that nobody writes to begin a segment at those that come back; the others are complete without it."""
    server.start()
    server.execute("CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)")
    for away in ([0, 3], [1, 4]):
        for number in away:
            fleet.nodes[number].kill()
        server.execute("UPDATE t SET a = a + 1")
        returns = server.output_text().count("is back, and complete")
        for number in away:
            fleet.nodes[number].start()
        wait_until(lambda: server.output_text().count("is back, and complete") >= returns + 2, timeout_s=60, what="two returns")
    fleet.wait_complete()
    # What is written then goes to all.
    server.execute("UPDATE t SET a = a + 1")
    fleet.wait_complete()


def test_a_node_that_stalls_is_not_waited_for(server, fleet, seed):
    """Two nodes are stopped, not killed: their connections stay, and nothing comes over them."""
    server.start()
    bank = Bank(seed, clients=4, readers=0).open(server)
    bank.start(server)
    go_on(server, bank, 20)
    stalled = [fleet.nodes[0], fleet.nodes[3]]
    for node in stalled:
        node.pause()
    go_on(server, bank, 60)
    for node in stalled:
        node.go_on()
    go_on(server, bank, 20)
    restarted(server, bank)
    assert not bank.endings.keys() - {"connection lost"}, bank.endings


def test_without_three_commits_wait_until_one_is_back(server, fleet, seed):
    """A zone and one node more: nothing is acknowledged and nothing is lost; with a fourth node everything goes on, without a restart."""
    server.start()
    bank = Bank(seed, clients=4, readers=0).open(server)
    bank.start(server)
    go_on(server, bank, 20)
    for node in fleet.nodes[:3]:
        node.kill()
    wait_until(lambda: "commits wait until one is back" in server.output_text(), what="too few nodes")
    time.sleep(0.2)
    waiting = bank.acknowledged()
    time.sleep(2)
    assert bank.acknowledged() == waiting and server.running() and not bank.endings, bank.endings
    told = fleet.command("status")
    assert told.returncode != 0 and "nothing can be stored" in told.stderr, told.stderr
    fleet.nodes[1].start()
    go_on(server, bank, 20)
    assert not bank.endings, bank.endings
    # The same, and the server is killed meanwhile: it starts when enough are back.
    fleet.nodes[1].kill()
    pid = server.process.pid
    time.sleep(0.5)
    server.kill()
    bank.ended(pid)
    bank.stop()
    with pytest.raises(ServerError):
        server.start()
    fleet.nodes[1].start()
    server.start()
    bank.check(server)


def test_others_take_the_place_of_a_zone_that_is_lost(server, fleet, seed):
    """A zone is lost for good under transfers; two new nodes take its place, and then the others may go, one after the other."""
    server.start()
    bank = Bank(seed, clients=4).open(server)
    bank.start(server)
    go_on(server, bank, 20)
    lost = fleet.zone("a")
    for node in lost:
        node.kill()
    go_on(server, bank, 20)
    for node in lost:
        fleet.change("add", fleet.another("a").address, "--instead-of", node.address)
    wait_until(lambda: server.output_text().count("one of the log's homes now") == 2, timeout_s=60, what="two new nodes")
    fleet.wait_complete()
    assert sorted(fleet.members()) == sorted(node.address for node in fleet.nodes if node not in lost)
    # Those that were lost are back, and nobody asks them any more: the new ones are what is there without another zone.
    for node in lost:
        node.start()
    for node in fleet.zone("b"):
        node.kill()
    go_on(server, bank, 20)
    restarted(server, bank)
    bank.start(server)
    for node in fleet.zone("b"):
        node.start()
    # One is drained, one more comes, and two go.
    first, second, third = fleet.zone("b")[0], *fleet.zone("c")
    fleet.change("drain", first.address, fleet.another("b").address)
    fleet.change("add", fleet.another("c").address)
    fleet.change("remove", second.address)
    fleet.change("remove", third.address)
    gone = [*lost, first, second, third]
    expected = sorted(node.address for node in fleet.nodes if node not in gone)
    wait_until(lambda: sorted(fleet.members()) == expected and "to " not in "".join(fleet.status()), timeout_s=60, what="five nodes")
    go_on(server, bank, 20)
    for node in gone:
        node.kill()
    # The URL names nodes that are gone, and two that are there.
    restarted(server, bank)
    fleet.wait_complete(5)
    assert not bank.endings.keys() - {"connection lost"}, bank.endings
    server.assert_no_disk()


def test_a_node_whose_disk_is_new_is_filled_while_the_server_runs(server, fleet, seed):
    server.start()
    bank = Bank(seed, clients=4, readers=0).open(server)
    bank.start(server)
    go_on(server, bank, 20)
    for number in (1, 4):
        fleet.nodes[number].kill()
        fleet.nodes[number].empty()
        go_on(server, bank, 20)
        fleet.nodes[number].start()
    wait_until(lambda: server.output_text().count("one of the log's homes now") == 2, timeout_s=60, what="two filled nodes")
    fleet.wait_complete()
    # They are two of the four that are left.
    for number in (0, 3):
        fleet.nodes[number].kill()
    go_on(server, bank, 20)
    restarted(server, bank)
    assert not bank.endings.keys() - {"connection lost"}, bank.endings


def filled(server: ObjectServer, node: Node) -> tuple[int, int, int]:
    """How much a node that came back last has from its peers (how many, bytes), and how much through the server."""
    told = re.findall(rf"{node.address}\S* has (\d+) segments, side segments and objects \((\d+) bytes\) from its peers, and (\d+) ", server.output_text())
    assert told, "it has not come back"
    return tuple(int(count) for count in told[-1])


def test_a_node_is_filled_by_its_peers(server, fleet, seed):
    """One is emptied under transfers: what it lacks goes from node to node, and not through the server."""
    server.start()
    server.execute("CREATE TABLE t (a int PRIMARY KEY, pad text)")
    with server.connect(autocommit=True) as connection:
        for first in range(0, 16000, 1000):
            connection.execute(f"INSERT INTO t SELECT g, repeat(md5(g::text), 30) FROM generate_series({first}, {first + 999}) g")
    server.execute("CHECKPOINT")
    bank = Bank(seed, clients=4, readers=0).open(server)
    bank.start(server)
    go_on(server, bank, 20)
    node = fleet.nodes[4]
    node.kill()
    node.empty()
    go_on(server, bank, 20)
    look = "SELECT sum(bytes)::int8 FROM logstead_cost WHERE kind = 'get' AND home NOT LIKE %s"
    others = (f"%{node.address}%",)

    def read_of_others() -> int:
        with server.connect() as connection:
            return connection.execute(look, others).fetchone()[0]

    before = read_of_others()
    node.start()
    wait_until(lambda: f"{node.address}/main is one of the log's homes now" in server.output_text(), timeout_s=60, what="a filled node")
    crossed = read_of_others() - before
    go_on(server, bank, 20)
    bank.stop()
    fleet.wait_complete()
    count, size, through_server = filled(server, node)
    assert count > 3 and size > 2_000_000, (count, size)
    assert through_server == 0 and crossed < size / 10, (crossed, size)
    # It is one of the four that are left.
    for number in (0, 3):
        fleet.nodes[number].kill()
    restarted(server, bank)
    assert server.execute("SELECT count(*), count(DISTINCT pad) FROM t") == [(16000, 16000)]
    assert not bank.endings.keys() - {"connection lost"}, bank.endings


def test_peers_go_away_while_a_node_is_filled(server, fleet, seed):
    """One of those from which an emptied node fetches is killed meanwhile, and then one is stopped: others have it all."""
    server.start()
    server.execute("CREATE TABLE t (a int PRIMARY KEY, pad text)")
    with server.connect(autocommit=True) as connection:
        for first in range(0, 16000, 1000):
            connection.execute(f"INSERT INTO t SELECT g, repeat(md5(g::text), 30) FROM generate_series({first}, {first + 999}) g")
    server.execute("CHECKPOINT")
    bank = Bank(seed, clients=2, readers=0).open(server)
    bank.start(server)
    go_on(server, bank, 20)
    node = fleet.nodes[5]
    for leave, come_back, peer in ((Node.kill, Node.start, fleet.nodes[0]), (Node.pause, Node.go_on, fleet.nodes[2])):
        node.kill()
        node.empty()
        go_on(server, bank, 20)
        begun, ended = (server.output_text().count(what) for what in ("which comes back", "is one of the log's homes now"))
        node.start()
        wait_until(lambda: server.output_text().count("which comes back") > begun, timeout_s=60, what="its return")
        leave(peer)
        # Four are left.
        go_on(server, bank, 20)
        come_back(peer)
        wait_until(lambda: server.output_text().count("is one of the log's homes now") > ended, timeout_s=90, what="a filled node")
        fleet.wait_complete()
    restarted(server, bank)
    assert not bank.endings.keys() - {"connection lost"}, bank.endings


def test_damage_is_repaired(server, fleet):
    """Bits rot on one node: the others say what is right."""
    server.start()
    server.execute("CREATE TABLE t (a int PRIMARY KEY, pad text)")
    # One segment and a little, in one lane.
    with server.connect(autocommit=True) as connection:
        for first in range(0, 1400, 100):
            connection.execute(f"INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series({first}, {first + 99}) g")
    volumes = [fleet.nodes[number].root / "data/volumes/main/log" for number in (2, 3)]
    # One that is full, and the same on both.
    of_two = [(path, volumes[1] / path.relative_to(volumes[0])) for path in volumes[0].rglob("*.seg")]
    same = [path for path, other in of_two if other.exists() and path.read_bytes() == other.read_bytes()]
    whole = next(path for path in same if any(path.read_bytes()[SEGMENT_BYTES - 100_000 :]))
    good = whole.read_bytes()
    returns = server.output_text().count("is back, and complete")
    with whole.open("r+b") as file:
        file.seek(60000)
        file.write(bytes(byte ^ 255 for byte in good[60000:60100]))
    # And of one page or more. Nothing changes from here on, so none goes.
    server.execute("CHECKPOINT")
    objects = [fleet.nodes[number].root / "data/volumes/main/objects" for number in (2, 3)]
    rotten = max((path for path in objects[0].iterdir() if (objects[1] / path.name).exists()), key=lambda path: path.stat().st_size)
    with rotten.open("r+b") as file:
        file.seek(rotten.stat().st_size // 2)
        file.write(b"rotten")
    assert rotten.read_bytes() != (objects[1] / rotten.name).read_bytes()
    fleet.change("repair", fleet.nodes[2].address)
    wait_until(lambda: server.output_text().count("is back, and complete") > returns, timeout_s=60, what="its repair")
    wait_until(lambda: "repaired" not in "".join(fleet.status()), what="the end of the repair")
    # A checkpoint may have removed it meanwhile, from all of them.
    if whole.exists():
        assert whole.read_bytes() == good
    assert rotten.read_bytes() == (objects[1] / rotten.name).read_bytes()
    assert "was damaged: it has been copied again" in server.output_text()
    verified = log(server, "verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    fleet.wait_complete()


def test_changes_that_cannot_be_are_refused(server, fleet, tmp_path):
    def refused(what: str, *arguments: str) -> str:
        told = fleet.command(what, *arguments)
        assert told.returncode != 0 and "panicked" not in told.stderr, told.stderr
        return told.stderr

    first, another = fleet.nodes[0].address, fleet.another("a")
    assert "is missing" in refused("add", another.address), "there is no volume yet"
    server.start()
    assert "one of the volume's nodes already" in refused("add", first)
    assert "none of the volume's nodes" in refused("add", another.address, "--instead-of", another.address)
    assert "none of the volume's nodes" in refused("remove", another.address)
    assert "none of the volume's nodes" in refused("repair", another.address)
    assert "HOST:PORT" in refused("add", "nonsense")
    another.kill()
    assert "Connection refused" in refused("add", another.address)
    fleet.wait_complete()


def test_a_node_that_lost_its_disk_is_filled_again(server, fleet):
    server.start()
    server.execute("CREATE TABLE t (a int PRIMARY KEY)", "INSERT INTO t SELECT generate_series(1, 20000)", "CHECKPOINT")
    assert server.stop() == 0
    fleet.nodes[2].kill()
    fleet.nodes[2].empty()
    fleet.nodes[2].start()
    status = fleet.status()
    assert status[-1] == "5 of 6 copies are complete" and "has nothing of this volume" in status[2], status
    server.start()
    assert server.execute("SELECT count(*), sum(a) FROM t") == [(20000, 200010000)]
    fleet.wait_complete()


def test_full_disks(tmp_path):
    """One and two nodes whose disks are full are done without; with three, writers get 53100 until there is room again."""
    disks = [tmp_path / f"fleet/node{number}" for number in range(3)]
    fleet, server = Fleet(tmp_path / "fleet"), None
    try:
        for disk in disks:
            disk.mkdir(parents=True)
            if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", str(disk)], capture_output=True).returncode != 0:
                pytest.skip("mounting is not allowed here")
        server = ObjectServer(tmp_path / "server", fleet.start().url(), {})
        server.start()
        server.execute("CREATE TABLE t (a int PRIMARY KEY, pad bytea)")
        stored = 0

        def insert() -> str | None:
            nonlocal stored
            with server.connect(autocommit=True) as connection:
                try:
                    connection.execute("INSERT INTO t VALUES (%s, %s)", (stored, os.urandom(100_000)))
                except psycopg.Error as error:
                    return error.sqlstate
                stored += 1
            return None

        for full in range(2):
            fill(disks[full], 1 << 20)
            for _ in range(40):
                assert insert() is None
        # Less than the node keeps for what frees room, and enough for what is written until it has told so: one that
        # cannot take an append counts as lost, and with three of those commits wait.
        fill(disks[2], 8 << 20)
        wait_until(lambda: insert() is not None, what="a refusal")
        assert insert() == "53100"
        assert server.execute("SELECT count(*) FROM t") == [(stored,)]
        (disks[2] / "ballast").unlink()
        wait_until(lambda: insert() is None, what="room")
        # Several segments more: what was refused before does not count any more.
        for _ in range(40):
            assert insert() is None
        assert server.execute("SELECT count(*) FROM t") == [(stored,)]
        server.restart_after_kill()
        assert server.execute("SELECT count(*) FROM t") == [(stored,)]
    finally:
        if server:
            server.kill()
        fleet.kill()
        for disk in disks:
            subprocess.run(["umount", "-l", str(disk)], capture_output=True)


def test_replicas_follow_and_one_takes_over(server, fleet, tmp_path, seed):
    """A replica reads the nodes beside the server, and takes the log when that is killed; the old one is shut out."""
    server.start()
    bank = Bank(seed, clients=4, readers=1).open(server)
    replica = LogsteadServer(tmp_path / "replica")
    replica.root.mkdir()
    try:
        listen = ["--listen", "127.0.0.1:0", "--workers", "2"]
        replica.command = lambda *arguments: [LogsteadServer.binary(), "serve", *listen, "--replica-of", fleet.url(), *arguments]
        replica.start()
        bank.start(server)
        go_on(server, bank, 30)
        token = server.execute("UPDATE counter SET n = n", "SELECT logstead_commit_token()")
        with replica.connect() as connection:
            connection.execute(f"SET logstead.read_after = '{token[0][0]}'")
            assert connection.execute("SELECT sum(balance) FROM account").fetchone() == (48000,)
        # Paused, not dead: it does not know that another one has taken over.
        old = server.process.pid
        fleet.nodes[4].kill()
        Node.pause(server)
        replica.execute("SELECT pg_promote()")
        Node.go_on(server)
        wait_until(lambda: not server.running(), what="the end of the old primary")
        bank.ended(old)
        bank.stop()
        bank.check(replica)
    finally:
        replica.kill()


def test_backup_and_branch(server, fleet, tmp_path):
    server.start()
    server.execute("CREATE TABLE t (a int PRIMARY KEY)", "INSERT INTO t SELECT generate_series(1, 1000)")
    program = LogsteadServer.binary()
    backup = subprocess.run([program, "backup", server.url, str(tmp_path / "backup")], capture_output=True, text=True, timeout=120)
    assert backup.returncode == 0, backup.stderr
    server.execute("DELETE FROM t", "CHECKPOINT")
    branch = subprocess.run([program, "branch", "create", "trial", server.url], capture_output=True, text=True, timeout=120)
    assert branch.returncode == 0, branch.stderr
    copy = LogsteadServer(tmp_path / "copy")
    copy.root.mkdir()
    copy.command = lambda *arguments: [program, "serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "backup"), *arguments]
    try:
        copy.start()
        assert copy.execute("SELECT count(*) FROM t") == [(1000,)]
    finally:
        copy.kill()
    other = ObjectServer(tmp_path / "other", server.url, {}, "--branch", "trial")
    try:
        other.start()
        assert other.execute("SELECT count(*) FROM t") == [(0,)]
        other.execute("INSERT INTO t VALUES (7)")
        assert server.execute("SELECT count(*) FROM t") == [(0,)]
    finally:
        other.kill()


def test_what_cannot_be_opened_says_why(fleet, tmp_path):
    def refused(url: str, *arguments: str, **variables: str) -> str:
        command = [LogsteadServer.binary(), "serve", "--listen", "127.0.0.1:0", "--home", url, *arguments]
        told = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path, env=variables)
        assert told.returncode != 0 and "panicked" not in told.stderr, told.stderr
        return told.stderr

    first = f"127.0.0.1:{fleet.nodes[0].port}"
    assert "names no volume" in refused(f"fleet://{first},{first}")
    assert "a volume's name is" in refused(f"fleet://{first},{first}/../x")
    assert "from 2 to 32 nodes" in refused(f"fleet://{first}/main")
    assert "it is the same place as" in refused(f"fleet://{first},{first}/main")
    assert "HOST:PORT" in refused("fleet://a,b/main")
    assert "the key of the volume is wrong" in refused(fleet.url(), LOGSTEAD_FLEET_SECRET="another")
    assert "no option of it" in refused(fleet.url(options="?colour=red"))
    told = subprocess.run(
        [LogsteadServer.binary(), "storage", "--listen", "0.0.0.0:0", "--data", str(tmp_path / "open")], capture_output=True, text=True
    )
    assert told.returncode != 0 and "not a loopback address" in told.stderr, told.stderr


def test_encrypted_with_a_secret(tmp_path, certificate):
    """Each side proves the secret over the encrypted connection; the certificate may be anybody's."""
    encrypted = ["--tls-cert", str(certificate / "server.crt"), "--tls-key", str(certificate / "server.key")]
    fleet = Fleet(tmp_path / "fleet", *encrypted, secret="a secret")
    try:
        fleet.start()
        server = ObjectServer(tmp_path / "server", fleet.url(options="?tls=on"), {"LOGSTEAD_FLEET_SECRET": "a secret"})
        try:
            server.start()
            server.execute("CREATE TABLE t (a int)", "INSERT INTO t SELECT generate_series(1, 1000)")
            server.restart_after_kill()
            assert server.execute("SELECT count(*) FROM t") == [(1000,)]
            # Nodes speak encrypted to one another, too, and know the volume's key.
            node = fleet.nodes[4]
            node.kill()
            node.empty()
            node.start()
            server.execute("INSERT INTO t SELECT generate_series(1, 1000)")
            wait_until(lambda: f"{node.address}/main?tls=on is one of the log's homes now" in server.output_text(), timeout_s=60, what="a filled node")
            count, _, through_server = filled(server, node)
            assert count > 0 and through_server == 0
        finally:
            server.kill()
        for url, variables in [(fleet.url(options="?tls=on"), {"LOGSTEAD_FLEET_SECRET": "a guess"}), (fleet.url(), server.credentials)]:
            other = ObjectServer(tmp_path / "other", url, variables)
            with pytest.raises(ServerError):
                other.start()
            other.kill()
    finally:
        fleet.kill()


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_nodes_come_and_go_under_transfers(server, fleet, seed, request):
    """For minutes: kill, stop, empty and replace nodes at random, never more than two at a time, and kill the server."""
    rng = random.Random(seed)
    server.start()
    bank = Bank(seed).open(server)
    for _ in range(request.config.getoption("--fault-rounds")):
        bank.start(server)
        go_on(server, bank, 30)
        hit = rng.sample(fleet.nodes, 2)
        for node in hit:
            rng.choice([node.kill, node.pause])()
        go_on(server, bank, 60)
        for node in hit:
            node.kill()
            if rng.random() < 0.3:
                node.empty()
            node.start()
        restarted(server, bank)
    there = bank.check(server)
    assert server.stop() == 0
    fleet.wait_complete()
    server.start()
    assert bank.check(server) == there


def test_what_a_disk_damages_is_found(tmp_path, seed):
    """A byte of an object is changed on one node, under transfers: the node finds and tells it, and a repair copies the object from the others."""
    fleet = Fleet(tmp_path / "fleet", "--scrub-interval", "1").start()
    server = ObjectServer(tmp_path / "server", fleet.url(), {})
    try:
        server.start()
        bank = Bank(seed, clients=2).open(server)
        server.execute("CREATE TABLE filler AS SELECT g AS id, repeat('f', 100) AS f FROM generate_series(1, 20000) g", "CHECKPOINT")
        bank.start(server)
        go_on(server, bank, 20)
        node = fleet.nodes[3]
        objects = node.root / "data" / "volumes" / "main" / "objects"
        largest = max(objects.iterdir(), key=lambda path: path.stat().st_size)
        whole = largest.read_bytes()
        returns = server.output_text().count("is back, and complete")
        with largest.open("r+b") as file:
            file.seek(len(whole) // 2)
            file.write(bytes([whole[len(whole) // 2] ^ 1]))
        wait_until(lambda: f"object {largest.name} of volume main is damaged" in node.output_text(), what="the scrub")
        [line] = [line for line in fleet.status() if line.startswith(node.address)]
        assert line.endswith(": complete, 1 damaged objects: see `fleet repair`"), line
        fleet.change("repair", node.address)
        wait_until(lambda: server.output_text().count("is back, and complete") > returns, what="the return")
        go_on(server, bank, 20)
        fleet.wait_complete()
        assert largest.read_bytes() == whole, "unless a later checkpoint does without it"
        wait_until(lambda: "damaged" not in "".join(fleet.status()), what="good news")
        assert [other.output_text().count("is damaged") for other in fleet.nodes] == [0, 0, 0, 1, 0, 0]
        restarted(server, bank)
    finally:
        server.kill()
        fleet.kill()
