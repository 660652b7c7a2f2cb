"""The whole server on real object stores: work, restarts, kill -9, refusals, faults between the two, without a local disk.

Each store is a real server on loopback (objectstores.py). Faults are injected by a proxy between Logstead and the store
(faultproxy.py); whether anything was lost or done twice is judged by clients that keep books of their own (transfers.py).
"""

from __future__ import annotations

import random
import re
import time

import psycopg
import pytest
from faultproxy import FAULTS, FaultProxy
from harness import wait_until
from objectserver import IMPATIENT, START_S, ObjectServer, go_on, home, log, store  # noqa: F401 a fixture
from objectstores import APPENDABLE, start
from test_operation import refused
from test_pgbench import check_books
from transfers import Bank

pytestmark = pytest.mark.logstead_only

# Every fault at once: about every sixth request is injured.
RATES = {fault: 0.015 for fault in FAULTS} | {"timeout": 0.004, "expired": 0.002, "slow": 0.05}
# The probe is left alone: what it is told decides whether a store is fit.
NOT_THE_PROBE = r"^(?!.*/probe/)"


@pytest.fixture
def serve(tmp_path):
    """Makes servers on URLs; none outlives the test."""
    servers = []

    def make(url: str, store, *arguments: str) -> ObjectServer:
        server = ObjectServer(tmp_path / f"server{len(servers)}", url, store.environment, *arguments)
        servers.append(server)
        return server

    yield make
    for server in servers:
        server.kill()


@pytest.fixture
def proxied(store, seed):
    """A fault proxy before the store; it injures nothing yet."""
    with FaultProxy(f"{store.host}:{store.port}", seed) as proxy:
        yield proxy


# -- without faults ---------------------------------------------------------------------------------------------------


def test_work_restart_kill_without_a_local_disk(store, serve):
    """psql and pgbench work; each start is in another empty directory, and all that was acknowledged is there."""
    server = serve(store.url("log"), store)
    server.start()
    assert "1 row" in server.psql("-c", "CREATE TABLE t (id serial PRIMARY KEY, v text)", "-c", "SELECT 1")
    server.psql("-c", "INSERT INTO t (v) SELECT 'row ' || g FROM generate_series(1, 500) AS g")
    server.assert_no_disk()
    server.run("pgbench", "-i", "-q", "-s", 1)
    done = server.run("pgbench", "-n", "-c", 8, "-j", 2, "-t", 15)
    assert "number of failed transactions: 0" in done.stdout
    assert check_books(server) == 120
    server.assert_no_disk()
    server.kill()
    server.start()
    assert server.execute("SELECT count(*), min(v), max(id) FROM t") == [(500, "row 1", 500)]
    assert check_books(server) == 120
    server.execute("UPDATE t SET v = 'changed' WHERE id = 7")
    server.assert_no_disk()
    assert server.stop() == 0
    server.start()
    assert server.execute("SELECT v FROM t WHERE id = 7") == [("changed",)]
    server.assert_no_disk()
    assert server.stop() == 0


def test_log_verify_and_dump(store, serve):
    server = serve(store.url("log"), store)
    # The log keeps them all.
    server.arguments += ["--checkpoint-interval", "0"]
    server.start()
    server.execute("CREATE TABLE t (id int PRIMARY KEY)")
    with server.connect(autocommit=True) as connection:
        for number in range(30):
            connection.execute("INSERT INTO t VALUES (%s)", (number,))
    server.kill()
    for _ in range(2):
        verified = log(server, "verify")
        assert verified.returncode == 0, verified.stdout + verified.stderr
        assert re.search(r"lane", verified.stdout) and re.search(r"block", verified.stdout)
        dumped = log(server, "dump")
        assert dumped.returncode == 0, dumped.stderr
        assert len(dumped.stdout.splitlines()) > 30 and re.search(r"(?i)csn", dumped.stdout)
        # Reading changes nothing: the server starts.
        server.start()
        assert server.execute("SELECT count(*) FROM t") == [(30,)]
        server.kill()
    for what in ("verify", "dump"):
        done = log(server, what, store.url("nowhere"))
        assert done.returncode != 0 and "nowhere" in done.stdout + done.stderr
        assert "panicked" not in done.stderr


def test_two_prefixes_of_a_bucket_are_two_databases(store, serve):
    first, second = serve(store.url("a"), store), serve(store.url("a/b"), store)
    first.start()
    second.start()
    first.execute("CREATE TABLE only_here (id int)")
    with pytest.raises(psycopg.errors.UndefinedTable):
        second.execute("SELECT * FROM only_here")
    for server in (first, second):
        server.restart_after_kill()
    assert first.execute("SELECT count(*) FROM only_here") == [(0,)]


# -- what is refused --------------------------------------------------------------------------------------------------


def test_foreign_bucket_is_refused(store, serve):
    """Objects, but none of ours: whatever they are, they are not touched."""
    names = ["log/photos/cat.jpg", "log/lane-0000/notes.txt"]
    for name in names:
        store.put(name, b"somebody's")
    said = refused(serve(store.url("log"), store))
    assert re.search(r"cat\.jpg|notes\.txt|lane-0000|photos", said), said
    assert sorted(store.keys("")) == sorted(names)
    assert store.get(names[0]) == b"somebody's"


def test_damaged_manifest_is_refused(store, serve):
    server = serve(store.url("log"), store)
    server.start()
    server.execute("CREATE TABLE t (id int)")
    server.kill()
    (name,) = [name for name in store.keys("log/") if "manifest" in name]
    good = store.get(name)
    for bad in (good[: len(good) // 2], b"", bytes([good[0] ^ 1]) + good[1:], good[:-3] + bytes([good[-3] ^ 4]) + good[-2:]):
        store.put(name, bad)
        said = refused(server)
        assert "manifest" in said, said
        assert store.get(name) == bad
    store.put(name, good)
    server.start()
    assert server.execute("SELECT count(*) FROM t") == [(0,)]


@pytest.mark.parametrize("name", ["versitygw", "moto"])
def test_store_that_overwrites_instead_of_appending_is_refused(name, serve, tmp_path):
    """It answers 200 and destroys what was there: found out before anything is kept in it."""
    with start(name, tmp_path) as store:
        said = refused(serve(store.url("log", scheme="s3express"), store))
        assert "overwrites" in said and "s3://" in said, said
        assert store.keys() == []
        # The same server for what it can do.
        server = serve(store.url("log"), store)
        server.start()
        assert server.execute("SELECT 1") == [(1,)]


def test_what_cannot_be_used_says_why(store, serve):
    said = refused(serve(store.url("log").replace(store.bucket, "no-such-bucket"), store))
    assert "no-such-bucket" in said, said
    if store.name == "moto":
        return  # It does not look at signatures.
    wrong = serve(store.url("log"), store)
    for name in ("AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_KEY"):
        if name in wrong.credentials:
            wrong.credentials = {**wrong.credentials, name: "bm90IHRoZSBzZWNyZXQga2V5IG9mIHRoaXMgc3RvcmU="}
    said = refused(wrong)
    assert re.search(r"(?i)denied|signature|authenticat|permission", said), said
    assert "bm90IHRoZSBzZWNyZXQg" not in said
    assert store.keys() == []


# -- faults -----------------------------------------------------------------------------------------------------------


def injured(proxy: FaultProxy) -> dict[str, int]:
    counts = proxy.counts()
    return {fault: counts[fault] for fault in [*FAULTS, "slow"]}


def transfers_through_faults(server, store, proxy, bank, rng, kills: int, transfers: int) -> None:
    """Transfers while every fault happens and the server is killed; then a quiet end, and all books agree, twice."""
    server.start()
    bank.open(server)
    proxy.rates(only=NOT_THE_PROBE, **RATES)
    bank.start(server)
    try:
        for _ in range(kills):
            go_on(server, bank, rng.randrange(transfers // 2, transfers))
            pid = server.process.pid
            server.kill()
            bank.ended(pid)
            server.start(timeout_s=START_S)
        go_on(server, bank, transfers)
        pid = server.process.pid
    except BaseException as error:
        server.kill()
        recent = "\n".join(proxy.recent()[-40:])
        raise AssertionError(f"{error}\n{bank}\n{injured(proxy)}\n{recent}\n{server.output_text()[-4000:]}") from error
    bank.stop()
    proxy.rates()
    proxy.settle()
    # No client was told anything but that the server is gone.
    assert set(bank.endings) <= {"connection lost", "57P01", "57P03"}, bank.endings
    there = bank.check(server)
    assert bank.acknowledged() <= there
    server.kill()
    bank.ended(pid)
    # From another directory, without the proxy: the store alone has it.
    server.url = home(store, **IMPATIENT)
    server.start(timeout_s=START_S)
    assert bank.check(server) == there
    assert server.stop() == 0
    verified = log(server, "verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    print(f"{store.name}: {bank}; {kills} kills; of {proxy.counts()['requests']} requests: {injured(proxy)}")


@pytest.mark.two_stores
@pytest.mark.timeout(900)
def test_transfers_through_faults(store, serve, proxied, seed):
    """Everything at once, for a short time."""
    server = serve(home(store, proxy=proxied, **IMPATIENT), store)
    transfers_through_faults(server, store, proxied, Bank(seed), random.Random(seed), kills=3, transfers=80)
    assert sum(injured(proxied).values()) > 30, injured(proxied)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_transfers_through_faults_for_minutes(store, serve, proxied, seed, request):
    server = serve(home(store, proxy=proxied, **IMPATIENT), store)
    rounds = request.config.getoption("--fault-rounds")
    transfers_through_faults(server, store, proxied, Bank(seed, clients=10), random.Random(seed), kills=rounds, transfers=200)
    done = injured(proxied)
    possible = [fault for fault in done if fault != "wrong_offset" or store.name in APPENDABLE]
    assert all(done[fault] > 0 for fault in possible), done


# Truncation needs reads: it has its own test. One store that appends and one that does not.
@pytest.mark.two_stores
@pytest.mark.parametrize("store", ["dev-bucket", "versitygw"], indirect=True)
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in ("truncate", "expired", "timeout")])
def test_one_kind_of_fault_at_every_third_request(store, serve, proxied, seed, fault):
    """No client learns of it, and none waits for ever."""
    if fault == "wrong_offset" and store.name not in APPENDABLE:
        pytest.skip("nothing is appended here")
    server = serve(home(store, proxy=proxied, **IMPATIENT), store)
    server.start()
    bank = Bank(seed, clients=4, readers=1).open(server)
    proxied.rates(**{fault: 0.33})
    bank.start(server)
    go_on(server, bank, 60)
    bank.stop()
    proxied.rates()
    proxied.settle()
    assert not bank.endings and proxied.counts()[fault] > 5
    there = bank.check(server)
    server.restart_after_kill()
    assert bank.check(server) == there


@pytest.mark.two_stores
@pytest.mark.one_store
def test_recovery_through_faults(store, serve, proxied, seed, request):
    """Reading the log with bodies cut short, time-outs and throttling: what is read is right, or read again. Of a start's requests, some
    hundred with those for checkpoints, two of three fail, and one of fifty only after nine seconds: it takes its time."""
    server = serve(home(store, proxy=proxied, **IMPATIENT), store)
    server.start()
    bank = Bank(seed, clients=4, readers=1).open(server)
    bank.start(server)
    go_on(server, bank, 100)
    bank.stop()
    there = bank.check(server)
    rates = {"truncate": 0.25, "error_500_before": 0.1, "reset_before": 0.1, "throttle": 0.1, "lost_reply": 0.1, "timeout": 0.02}
    for _ in range(4 if request.config.getoption("--long") else 1):
        server.kill()
        proxied.rates(only=NOT_THE_PROBE, **rates)
        server.start(timeout_s=START_S)
        proxied.rates()
        assert bank.check(server) == there
    assert proxied.counts()["truncate"] > 0


@pytest.mark.two_stores
def test_expired_credentials_recover(store, serve, proxied, seed):
    """Everything is refused for a while; commits wait, and go on with the next credentials."""
    server = serve(home(store, proxy=proxied, **IMPATIENT), store)
    server.start()
    bank = Bank(seed, clients=4, readers=1).open(server)
    bank.start(server)
    for _ in range(3):
        go_on(server, bank, 20)
        before = proxied.counts()["expired"]
        proxied.expire(1.5)
        wait_until(lambda seen=before: proxied.counts()["expired"] >= seen + 2, what="requests that are refused")
    go_on(server, bank, 40)
    bank.stop()
    assert not bank.endings, bank.endings
    there = bank.check(server)
    server.restart_after_kill()
    assert bank.check(server) == there


@pytest.mark.two_stores
def test_store_that_is_away_and_comes_back(store, serve, proxied, seed):
    """Commits wait, whatever way it is away, and nobody is told of it."""
    server = serve(home(store, proxy=proxied, **IMPATIENT), store, "--lease-duration", "60s")
    server.start()
    bank = Bank(seed, clients=4, readers=0).open(server)
    bank.start(server)
    for how, delivers in (("reset", False), ("hold", False), ("hold", True)):
        go_on(server, bank, 20)
        proxied.cut(how)
        before = proxied.counts()["cut"]
        wait_until(lambda seen=before: proxied.counts()["cut"] > seen + 1, what="requests that go nowhere")
        # What the store had answered before may still be on its way to the clients.
        time.sleep(0.5)
        stuck = bank.acknowledged()
        time.sleep(1)
        assert bank.acknowledged() == stuck, "acknowledged without a store"
        proxied.mend(deliver=delivers)
    go_on(server, bank, 40)
    bank.stop()
    assert not bank.endings, bank.endings
    there = bank.check(server)
    server.restart_after_kill()
    assert bank.check(server) == there


# -- crossing from object to object -----------------------------------------------------------------------------------


@pytest.mark.parametrize("faults", [pytest.param(False, id="calm", marks=pytest.mark.long), pytest.param(True, id="faults")])
def test_thousands_of_commits_cross_many_objects(serve, tmp_path, seed, faults):
    """An object takes 40 appends here (10,000 at the provider): crossing is no event that anybody notices."""
    with (
        start("dev-bucket", tmp_path, arguments=("--parts-max", "40")) as store,
        FaultProxy(f"{store.host}:{store.port}", seed) as proxy,
    ):
        server = serve(home(store, proxy=proxy, appends=40, **IMPATIENT), store)
        # Objects of the log are counted below: none may be removed.
        server.arguments += ["--checkpoint-interval", "0"]
        server.start()
        bank = Bank(seed, clients=8).open(server)
        if faults:
            proxy.rates(only=NOT_THE_PROBE, **RATES)
        bank.start(server)
        go_on(server, bank, 300 if faults else 2000)
        bank.stop()
        proxy.rates()
        proxy.settle()
        assert not bank.endings, bank.endings
        there = bank.check(server)
        objects = [name for name in store.keys("log/") if re.search(r"/lane-\d+/\d+$", name)]
        assert len(objects) > (5 if faults else 20), objects
        server.restart_after_kill()
        assert bank.check(server) == there
        verified = log(server, "verify")
        assert verified.returncode == 0, verified.stdout + verified.stderr
        print(f"{bank}; {len(objects)} objects")
