"""One log in three stores: any one of them may be away, come back, or be lost, and nothing that was acknowledged is."""

from __future__ import annotations

import contextlib
import random

import pytest
from faultproxy import FaultProxy
from harness import wait_until
from objectserver import IMPATIENT, START_S, ObjectServer, go_on, home, log
from objectstores import start
from test_object_homes import NOT_THE_PROBE, RATES, injured
from transfers import Bank

pytestmark = pytest.mark.logstead_only


@pytest.fixture
def three(seed, tmp_path):
    """Three stores, each behind a proxy of its own that can make it vanish."""
    with contextlib.ExitStack() as stack:
        stores = [stack.enter_context(start("dev-bucket", tmp_path / f"store{number}")) for number in range(3)]
        proxies = [stack.enter_context(FaultProxy(f"{store.host}:{store.port}", seed + number)) for number, store in enumerate(stores)]
        yield stores, proxies


@pytest.fixture
def server(three, tmp_path):
    stores, proxies = three
    urls = [home(store, proxy=proxy, **IMPATIENT) for store, proxy in zip(stores, proxies)]
    server = ObjectServer(tmp_path / "server", ",".join(urls), stores[0].environment)
    yield server
    server.kill()


def test_majority_goes_on_without_one(server, three, seed):
    """One store is killed in the middle: commits go on. Then the server starts with another one missing: nothing is lost."""
    _, proxies = three
    server.arguments += ["--ack", "majority"]
    server.start()
    bank = Bank(seed, clients=6).open(server)
    for away in range(3):
        bank.start(server)
        go_on(server, bank, 30)
        proxies[away].cut("reset")
        go_on(server, bank, 60)
        pid = server.process.pid
        server.kill()
        bank.ended(pid)
        bank.stop()
        # The one that was away is back, and lacks what was acknowledged without it; another one is away.
        proxies[away].mend()
        other = proxies[(away + 1) % 3]
        other.cut("reset")
        server.start()
        bank.check(server)
        bank.start(server)
        go_on(server, bank, 30)
        bank.stop()
        assert not bank.endings.keys() - {"connection lost"}, bank.endings
        there = bank.check(server)
        other.mend()
        assert server.stop() == 0
        server.start()
        assert bank.check(server) == there
    print(bank)


def test_majority_waits_without_two(server, three, seed):
    """Two are away: nothing is acknowledged, nobody is told of an error, and all goes on when one is back."""
    _, proxies = three
    server.arguments += ["--ack", "majority", "--lease-duration", "60s"]
    server.start()
    bank = Bank(seed, clients=4, readers=0).open(server)
    bank.start(server)
    go_on(server, bank, 20)
    for number in (0, 1):
        proxies[number].cut("reset")
    before = proxies[1].counts()["cut"]
    wait_until(lambda: proxies[1].counts()["cut"] > before + 3, what="requests that go nowhere")
    stuck = bank.acknowledged()
    wait_until(lambda: proxies[1].counts()["cut"] > before + 8, what="requests that go nowhere")
    # At most one per client was on its way.
    assert bank.acknowledged() <= stuck + len(bank.books), "acknowledged by a minority"
    proxies[1].mend()
    go_on(server, bank, 20)
    proxies[0].mend()
    go_on(server, bank, 20)
    bank.stop()
    assert not bank.endings, bank.endings
    there = bank.check(server)
    server.restart_after_kill()
    assert bank.check(server) == there


def test_all_waits_for_each(server, three, seed):
    """`--ack all`: what is acknowledged is in every one, so any two may be lost."""
    stores, proxies = three
    server.arguments += ["--ack", "all", "--lease-duration", "60s"]
    server.start()
    bank = Bank(seed, clients=4, readers=0).open(server)
    bank.start(server)
    go_on(server, bank, 30)
    proxies[2].cut("reset")
    before = proxies[2].counts()["cut"]
    wait_until(lambda: proxies[2].counts()["cut"] > before + 3, what="requests that go nowhere")
    stuck = bank.acknowledged()
    wait_until(lambda: proxies[2].counts()["cut"] > before + 8, what="requests that go nowhere")
    assert bank.acknowledged() <= stuck + len(bank.books), "acknowledged without one"
    proxies[2].mend()
    go_on(server, bank, 30)
    bank.stop()
    assert not bank.endings, bank.endings
    there = bank.check(server)
    assert server.stop() == 0
    for store in stores:
        verified = log(server, "verify", home(store))
        assert verified.returncode == 0 and "one of several copies" in verified.stdout, verified.stdout + verified.stderr
    server.start()
    assert bank.check(server) == there


def transfers_through_faults(server, proxies, seed, ack: str, kills: int, transfers: int) -> None:
    """Every fault at every store, and kill -9."""
    rng = random.Random(seed)
    server.arguments += ["--ack", ack]
    server.start()
    bank = Bank(seed).open(server)
    for proxy in proxies:
        proxy.rates(only=NOT_THE_PROBE, **RATES)
    bank.start(server)
    for _ in range(kills):
        go_on(server, bank, rng.randrange(transfers // 2, transfers))
        pid = server.process.pid
        server.kill()
        bank.ended(pid)
        server.start(timeout_s=START_S)
    go_on(server, bank, transfers)
    bank.stop()
    assert set(bank.endings) <= {"connection lost", "57P01", "57P03"}, bank.endings
    for proxy in proxies:
        proxy.rates()
        proxy.settle()
    there = bank.check(server)
    assert bank.acknowledged() <= there
    counts = [injured(proxy) for proxy in proxies]
    pid = server.process.pid
    server.kill()
    bank.ended(pid)
    # With `majority` any one may be missing.
    if ack == "majority":
        proxies[rng.randrange(3)].cut("reset")
    server.start(timeout_s=START_S)
    assert bank.check(server) == there
    print(f"--ack {ack}: {bank}; {kills} kills; {counts}")
    assert all(sum(count.values()) > 10 for count in counts), counts


@pytest.mark.timeout(900)
@pytest.mark.parametrize("ack", ["majority", pytest.param("all", marks=pytest.mark.long)])
def test_transfers_through_faults(server, three, seed, ack):
    """Everything at once, for a short time."""
    transfers_through_faults(server, three[1], seed, ack, kills=2, transfers=60)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("ack", ["majority", "all"])
def test_transfers_through_faults_for_minutes(server, three, seed, ack, request):
    rounds = request.config.getoption("--fault-rounds")
    transfers_through_faults(server, three[1], seed, ack, kills=rounds, transfers=150)
