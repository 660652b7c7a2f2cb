"""The commit path from outside: protocols, tracking, homes, synchronous_commit, and what clients may learn before a crash."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field

import psycopg
import pytest
from harness import TIMEOUT_S, Server, wait_until
from test_crash import SCHEMA, Books, check, load
from test_operation import refused
from test_pgbench import check_books

pytestmark = pytest.mark.logstead_only

PROTOCOLS = ["group", "pipelined", "autonomous", "grouped-lanes"]
TRACKINGS = ["horizon", "gsn", "dsn", "exact"]
DEFAULTS = ("grouped-lanes", "exact")
# An appendable object store: an append takes some 10 ms, so at any moment much is visible and not yet durable.
SLOW_HOME = "sim://?model=s3express&dir={dir}"


def ways(each_with_each=True):
    """Every protocol with every tracking mode; `--fast` tries the default ones only. Where not each is needed with each, one of the two is the
    default one without `--long`."""

    def way(protocol, tracking):
        is_default = [chosen == default for chosen, default in zip((protocol, tracking), DEFAULTS, strict=True)]
        marks = [] if all(is_default) else [pytest.mark.slow]
        if not each_with_each and not any(is_default):
            marks.append(pytest.mark.long)
        return pytest.param(protocol, tracking, marks=marks, id=f"{protocol}-{tracking}")

    return [way(protocol, tracking) for protocol in PROTOCOLS for tracking in TRACKINGS]


def choose(server: Server, protocol: str, tracking: str, *more: str) -> Server:
    """Has every start of the server use these."""
    server.arguments = ["--commit-protocol", protocol, "--dependency-tracking", tracking, "--workers", "3", *more]
    return server


# -- settings and homes -----------------------------------------------------------------------------------------------


def test_settings_show_what_is_in_force(private_server):
    server = private_server
    shown = "SELECT setting FROM pg_settings WHERE name = '{}'"
    server.start(arguments=["--flush-timeout", "3ms", "--workers-per-lane", "all", "--workers", "3", "--write-way", "portable"])
    for name, expected in [
        ("commit_protocol", "grouped-lanes"),
        ("dependency_tracking", "exact"),
        ("commit_queue", "lock-free"),
        ("workers_per_lane", "all"),
        ("flush_timeout", "3ms"),
        ("flush_gather_delay", "0"),
        ("lane_buffer_size", "1MB"),
        ("flush_unit", "16kB"),
        ("log_allocation_limit", "256MB"),
        ("logstead.write_way", "portable"),
    ]:
        assert server.execute(f"SHOW {name}") == [(expected,)], name
    assert server.execute(shown.format("flush_timeout")) == [("3000",)]
    assert server.execute("SELECT lane, workers FROM logstead_commit") == [(0, 3)]
    with server.connect(autocommit=True) as connection, pytest.raises(psycopg.errors.CantChangeRuntimeParam):
        connection.execute("SET commit_protocol = 'group'")
    assert server.stop() == 0
    # What suits another home.
    home = ["--home", SLOW_HOME.format(dir=server.root / "objects")]
    server.start(arguments=home, env={"LOGSTEAD_WORKERS": "3"})
    assert server.execute("SHOW workers_per_lane") == [("2",)]
    assert server.execute("SHOW flush_unit") == [("512kB",)]
    assert server.execute("SHOW logstead.write_way") == [("",)]
    assert server.execute("SELECT workers FROM logstead_commit ORDER BY lane") == [(2,), (1,), (0,)], "two of three lanes are in use"
    in_force = "SELECT value, reason FROM logstead_adaptive WHERE what = 'lanes' AND decided_at IS NULL"
    assert server.execute(in_force) == [(2, "in force; adapts")]
    assert server.stop() == 0
    server.start(arguments=[*home, "--adaptive", "off"], env={"LOGSTEAD_WORKERS": "3"})
    assert server.execute("SELECT workers FROM logstead_commit ORDER BY lane") == [(2,), (1,)]
    assert server.execute(in_force) == [(2, "in force; fixed")]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--commit-protocol", "fast"], "grouped-lanes"),
        (["--dependency-tracking", "none"], "exact"),
        (["--workers-per-lane", "0"], "workers_per_lane"),
        (["--lane-buffer-size", "1kB"], "lane_buffer_size"),
        (["--flush-unit", "2MB", "--lane-buffer-size", "1MB"], "flush_unit"),
        (["--log-allocation-limit", "1MB", "--lane-buffer-size", "2MB"], "log_allocation_limit"),
        (["--write-way", "magic"], "uring"),
        (["--home", "ftp://bucket/log"], "ftp: are not supported"),
        (["--home", "sim://?model=tape"], "tape"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_settings_are_clear_errors(private_server, arguments, named):
    assert named in refused(private_server, *arguments)


def test_home_in_memory(private_server):
    server = private_server
    server.start(arguments=["--home", "memory:"])
    server.execute("CREATE TABLE kept (id int)", "INSERT INTO kept VALUES (1)")
    assert server.execute("SELECT * FROM kept") == [(1,)]
    assert server.stop() == 0
    assert not server.data.exists()


@pytest.mark.parametrize("home", ["file", "device", "sim"])
def test_homes_that_keep_the_log(private_server, home):
    server = private_server
    server.root.mkdir(parents=True, exist_ok=True)
    place = server.root / "place"
    if home == "device":
        place.write_bytes(bytes(128 << 20))
    url = SLOW_HOME.format(dir=place) if home == "sim" else f"file://{place}"
    server.arguments = ["--home", url, "--segment-size", "4MB"]
    server.start()
    server.execute("CREATE TABLE kept (id serial PRIMARY KEY, v text)", "INSERT INTO kept (v) VALUES ('a'), ('b')")
    server.restart_after_kill()
    assert server.execute("SELECT v FROM kept ORDER BY id") == [("a",), ("b",)]
    server.execute("INSERT INTO kept (v) VALUES ('c')")
    assert server.stop() == 0
    server.start()
    assert server.execute("SELECT v FROM kept ORDER BY id") == [("a",), ("b",), ("c",)]
    assert not server.data.exists()


# -- every protocol, every way of tracking ----------------------------------------------------------------------------


@pytest.mark.parametrize(("protocol", "tracking"), ways(each_with_each=False))
def test_pgbench(private_server, protocol, tracking):
    """TPC-B from more clients than workers; the views tell of it while it runs; what is done survives a kill."""
    server = choose(private_server, protocol, tracking)
    server.start()
    server.run("pgbench", "-i", "-q", "-s", 1)
    seen, stop = [], threading.Event()

    def look():
        with server.connect(autocommit=True) as connection:
            while not stop.is_set():
                lanes = connection.execute("SELECT sum(commits), min(protocol), min(tracking) FROM logstead_commit").fetchone()
                phases = connection.execute("SELECT phase, count FROM logstead_commit_latency").fetchall()
                seen.append((lanes, phases))
                time.sleep(0.1)

    looker = threading.Thread(target=look)
    looker.start()
    try:
        done = server.run("pgbench", "-n", "-M", "prepared", "-c", 8, "-j", 2, "-T", 2)
    finally:
        stop.set()
        looker.join(TIMEOUT_S)
    assert "number of failed transactions: 0" in done.stdout
    assert seen, "the views were never read to their end"
    commits = [lanes[0] for lanes, _ in seen]
    assert commits == sorted(commits)
    assert seen[-1][0][1:] == (protocol, tracking)
    assert [phase for phase, _ in seen[-1][1]] == ["execution", "lane wait", "flush", "dependency wait", "acknowledgment"]
    count = check_books(server)
    assert count > 0 and f"actually processed: {count}" in done.stdout
    server.restart_after_kill()
    assert check_books(server) == count


@pytest.mark.parametrize(("protocol", "tracking"), ways())
def test_crash(private_server, seed, protocol, tracking):
    """kill -9 under load, as in test_crash.py."""
    server, books = choose(private_server, protocol, tracking), Books()
    server.start()
    server.execute(*SCHEMA)
    for number in range(3):
        rng = random.Random(seed * 1_000_003 + number)
        base = (number + 1) * 1_000_000_000
        outcome = load(server, rng, base)
        server.start()
        check(server, rng, base, outcome, books)


# -- nobody learns of what a crash takes back -------------------------------------------------------------------------

ROWS = 4


@dataclass
class Learnt:
    """What all clients together were told: by row, the largest value."""

    values: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(ROWS), 0))
    lock: threading.Lock = field(default_factory=threading.Lock)
    answers: int = 0
    unexpected: list[str] = field(default_factory=list)

    def tell(self, row: int, value: int) -> None:
        with self.lock:
            self.values[row] = max(self.values[row], value)
            self.answers += 1


def writes(connection: psycopg.Connection, rng: random.Random, learnt: Learnt) -> None:
    """Counts up: by autocommit with RETURNING, or in a block, whose values are told by COMMIT only."""
    row = rng.randrange(ROWS)
    update = "UPDATE counter SET n = n + 1 WHERE id = %s RETURNING n"
    if rng.random() < 0.5:
        learnt.tell(row, connection.execute(update, (row,)).fetchone()[0])
    else:
        with connection.transaction():
            value = connection.execute(update, (row,)).fetchone()[0]
            connection.execute("INSERT INTO mark VALUES (%s, %s)", (row, value))
        learnt.tell(row, value)


def reads(connection: psycopg.Connection, rng: random.Random, learnt: Learnt) -> None:
    """Reads one row or all of them, in autocommit; or is refused because of a row, which tells that the row is there."""
    kind = rng.randrange(3)
    if kind == 0:
        for row, value in connection.execute("SELECT id, n FROM counter").fetchall():
            learnt.tell(row, value)
        return
    row = rng.randrange(ROWS)
    value = connection.execute("SELECT n FROM counter WHERE id = %s", (row,)).fetchone()[0]
    if kind == 1:
        learnt.tell(row, value)
        return
    try:
        # What a writer inserts when it has counted one further.
        with connection.transaction(force_rollback=True):
            connection.execute("INSERT INTO mark VALUES (%s, %s)", (row, value + 1))
    except psycopg.errors.UniqueViolation:
        learnt.tell(row, value + 1)


def until_killed(server: Server, setup: str, act, seed: float, learnt: Learnt) -> None:
    rng = random.Random(seed)
    try:
        with server.connect(autocommit=True) as connection:
            connection.execute(setup)
            while True:
                act(connection, rng, learnt)
    except psycopg.OperationalError as error:
        # 57P01 and its like, or no code at all: the server is gone.
        if error.sqlstate and error.sqlstate[:2] not in ("08", "57"):
            learnt.unexpected.append(str(error))
    except Exception as error:  # noqa: BLE001 a thread's own failure would go unnoticed
        learnt.unexpected.append(repr(error))


def learn_and_kill(server: Server, rng: random.Random, writers_setup: str) -> Learnt:
    """Writers and readers from several sessions, and kill -9 in the midst of it."""
    learnt, untrustworthy = Learnt(), Learnt()
    of_writers = untrustworthy if writers_setup.endswith("off") else learnt
    jobs = [(writers_setup, writes, of_writers)] * 3 + [("SET synchronous_commit = on", reads, learnt)] * 3
    threads = [
        threading.Thread(target=until_killed, args=(server, setup, act, rng.random(), told)) for setup, act, told in jobs
    ]
    for thread in threads:
        thread.start()
    # On a busy machine, or a slow home, the first answer takes longer than what is waited for behind it.
    wait_until(lambda: learnt.answers or learnt.unexpected, what="an answer")
    time.sleep(rng.uniform(0.2, 0.6))
    server.kill()
    for thread in threads:
        thread.join(TIMEOUT_S)
        assert not thread.is_alive(), "a client hangs although the server is dead"
    assert not learnt.unexpected + untrustworthy.unexpected, learnt.unexpected + untrustworthy.unexpected
    assert learnt.answers, "nobody was told anything"
    return learnt


@pytest.mark.slow
@pytest.mark.parametrize("tracking", TRACKINGS)
@pytest.mark.parametrize("writers", ["on", "off"])
@pytest.mark.parametrize("home", ["local", "slow"])
def test_nobody_learns_of_what_a_crash_takes_back(private_server, seed, home, writers, tracking):
    """Readers are synchronous, whatever the writers are: what they were told is there after the crash."""
    server = private_server
    more = ["--home", SLOW_HOME.format(dir=server.root / "objects")] if home == "slow" else []
    choose(server, "grouped-lanes", tracking, *more)
    server.start()
    server.execute(
        "CREATE TABLE counter (id int PRIMARY KEY, n bigint NOT NULL)",
        f"INSERT INTO counter SELECT g, 0 FROM generate_series(0, {ROWS - 1}) AS g",
        "CREATE TABLE mark (id int, n bigint, PRIMARY KEY (id, n))",
    )
    for number in range(3):
        rng = random.Random(seed * 1_000_003 + number)
        learnt = learn_and_kill(server, rng, f"SET synchronous_commit = {writers}")
        server.start()
        found = dict(server.execute("SELECT id, n FROM counter"))
        lost = {row: (told, found[row]) for row, told in learnt.values.items() if told > found[row]}
        assert not lost, f"told and then lost: {lost} after {learnt.answers} answers"


# -- synchronous_commit -----------------------------------------------------------------------------------------------


def count_up(server: Server, synchronous: str, told: list[int]) -> None:
    """One counter, one row per number: every transaction depends on the one before it, whoever made it."""
    try:
        with server.connect() as connection:
            connection.execute(f"SET synchronous_commit = {synchronous}")
            connection.commit()
            while True:
                with connection.transaction():
                    number = connection.execute("UPDATE chain SET n = n + 1 RETURNING n").fetchone()[0]
                    connection.execute("INSERT INTO link VALUES (%s, %s)", (number, synchronous))
                told.append(number)
    except psycopg.OperationalError:
        pass


@pytest.mark.parametrize("home", ["local", pytest.param("slow", marks=pytest.mark.slow)])
def test_synchronous_commits_survive_with_the_asynchronous_ones_they_build_on(private_server, seed, home):
    server = private_server
    server.arguments = ["--workers", "3"]
    if home == "slow":
        server.arguments += ["--home", SLOW_HOME.format(dir=server.root / "objects")]
    server.start()
    server.execute(
        "CREATE TABLE chain (n bigint)", "INSERT INTO chain VALUES (0)", "CREATE TABLE link (n bigint PRIMARY KEY, by text)"
    )
    rng = random.Random(seed)
    for _ in range(3):
        told: dict[str, list[int]] = {"on": [], "off": []}
        threads = [threading.Thread(target=count_up, args=(server, how, told[how])) for how in ["on", "off", "off"]]
        for thread in threads:
            thread.start()
        wait_until(lambda: all(told.values()), what="commits of both kinds are acknowledged")
        time.sleep(rng.uniform(0.0, 0.5))
        server.kill()
        for thread in threads:
            thread.join(TIMEOUT_S)
        server.start()
        ((last,),) = server.execute("SELECT n FROM chain")
        links = [number for (number,) in server.execute("SELECT n FROM link ORDER BY n")]
        assert links == list(range(1, last + 1)), "a transaction survived without what it builds on"
        assert max(told["on"]) <= last, f"acknowledged and lost: {max(told['on'])}, found {last}"


def test_asynchronous_commits_do_not_wait_and_are_durable_soon(private_server):
    """On a home where an append takes some 0.2 s, far more commits are acknowledged than appends have ended."""
    server = private_server
    home = SLOW_HOME.format(dir=server.root / "objects") + "&scale=20"
    server.arguments = ["--workers", "1", "--home", home]
    server.start()
    with server.connect(autocommit=True) as connection:
        connection.execute("CREATE TABLE quick (id int PRIMARY KEY)")
        connection.execute("SET synchronous_commit = off")
        flushes = "SELECT sum(flushes) FROM logstead_commit"
        before = connection.execute(flushes).fetchone()[0]
        # Those of the start and of CREATE TABLE, which has been waited for.
        commits = "SELECT sum(commits) FROM logstead_commit"
        earlier = connection.execute(commits).fetchone()[0]
        for number in range(500):
            connection.execute("INSERT INTO quick VALUES (%s)", (number,))
        after = connection.execute(flushes).fetchone()[0]
        assert after - before < 250, "a flush for every other commit: somebody waits for it"
        # Nobody asks for anything any more, and yet it becomes durable.
        deadline = time.monotonic() + TIMEOUT_S
        while connection.execute(commits).fetchone()[0] < earlier + 500:
            assert time.monotonic() < deadline, "asynchronous commits never become durable"
            time.sleep(0.05)
    server.restart_after_kill()
    assert server.execute("SELECT count(*) FROM quick") == [(500,)]
