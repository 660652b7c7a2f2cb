"""Running the server: start, settings, SIGTERM, a damaged log, a second server, and what it says about all that."""

from __future__ import annotations

import re
import socket
import subprocess
import time
import uuid

import psycopg
import pytest
from harness import TIMEOUT_S, ServerError, wait_until
from rawwire import Wire, rows

logstead_only = pytest.mark.logstead_only


def refused(server, *arguments: str, env: dict[str, str] | None = None) -> str:
    """What a server says that must not start; it must end by itself, not with a panic."""
    with pytest.raises(ServerError):
        server.start(arguments=arguments, env=env)
    status = server.process.wait(TIMEOUT_S)
    said = server.output_text()
    assert status != 0
    assert "panicked" not in said, said
    return said


# -- start ------------------------------------------------------------------------------------------------------------


@logstead_only
def test_start_says_where_everything_is(private_server):
    server = private_server.start()
    said = server.output_text()
    assert f"listening on 127.0.0.1:{server.port}" in said
    wait_until(lambda: "psql" in server.output_text(), what="the line that says how to connect")
    assert server.home in server.output_text() or server.data.name in server.output_text()
    assert f"-p {server.port}" in server.output_text()


def test_data_survives_a_restart(private_server):
    server = private_server.start()
    server.execute("CREATE TABLE kept (id serial PRIMARY KEY, v text)", "INSERT INTO kept (v) VALUES ('a'), ('b')")
    assert server.stop() == 0
    server.start()
    # A sequence may leave a gap, but never gives a number twice.
    ((third,),) = server.execute("INSERT INTO kept (v) VALUES ('c') RETURNING id")
    assert third > 2
    server.restart_after_kill()
    assert server.execute("SELECT id, v FROM kept ORDER BY id") == [(1, "a"), (2, "b"), (third, "c")]
    ((fourth,),) = server.execute("INSERT INTO kept (v) VALUES ('d') RETURNING id")
    assert fourth > third


@logstead_only
def test_restarts_without_work_in_between(private_server):
    """Many restarts, clean and not, change nothing."""
    server = private_server.start()
    server.execute("CREATE TABLE kept (id int PRIMARY KEY)", "INSERT INTO kept VALUES (1)")
    for number in range(20):
        if number % 2:
            server.kill()
        else:
            assert server.stop() == 0
        server.start()
    assert server.execute("SELECT * FROM kept") == [(1,)]


@logstead_only
def test_other_worker_counts_read_the_same_log(private_server):
    """The number of lanes may change between starts."""
    server = private_server
    expected = 0
    for workers in ["1", "4", "2", "3", "1"]:
        server.start(arguments=["--workers", workers])
        server.execute("CREATE TABLE IF NOT EXISTS w (id serial PRIMARY KEY, n int)")
        for _ in range(8):
            server.execute("INSERT INTO w (n) VALUES (1)", "UPDATE w SET n = n + 1")
        expected += 8
        assert server.execute("SELECT count(*) FROM w") == [(expected,)]
        server.kill()
    server.start()
    assert server.execute("SELECT count(*), max(n) FROM w") == [(expected, expected + 1)]


@logstead_only
def test_second_server_on_the_same_data_is_refused(private_server, server_kind):
    server = private_server.start()
    second = server_kind(server.root)
    said = refused(second)
    assert re.search(r"in use|lock|another", said), said
    assert server.execute("SELECT 1") == [(1,)]


@logstead_only
def test_port_in_use_is_a_clear_error(private_server):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = refused(private_server, "--listen", f"127.0.0.1:{port}")
        assert str(port) in said


# -- settings ---------------------------------------------------------------------------------------------------------


@logstead_only
@pytest.mark.parametrize(
    ("arguments", "env", "named"),
    [
        (["--workers", "0"], {}, "workers"),
        (["--workers", "many"], {}, "workers"),
        (["--workers", "-3"], {}, "3"),
        (["--listen", "nonsense"], {}, "listen"),
        (["--no-such-flag"], {}, "no-such-flag"),
        (["--config", "missing.toml"], {}, "missing.toml"),
        ([], {"LOGSTEAD_WORKERS": "abc"}, "workers"),
        (["--set", "no_such_setting=1"], {}, "no_such_setting"),
    ],
    ids=["zero", "word", "negative", "listen", "flag", "no-file", "environment", "unknown"],
)
def test_bad_settings_are_clear_errors(private_server, arguments, env, named):
    assert named in refused(private_server, *arguments, env=env).lower()


@logstead_only
@pytest.mark.parametrize(
    ("toml", "named"),
    [
        ("no_such_setting = 1", "no_such_setting"),
        ("workers = 'two'", "workers"),
        ("workers = 0", "workers"),
        ("workers = [", "settings.toml"),
        ("listen = 5", "listen"),
    ],
)
def test_bad_settings_files_are_clear_errors(private_server, tmp_path, toml, named):
    file = tmp_path / "settings.toml"
    file.write_text(toml + "\n")
    assert named in refused(private_server, "--config", str(file))


@logstead_only
def test_where_settings_come_from(private_server, tmp_path):
    """Command line before environment before file."""
    file = tmp_path / "settings.toml"
    file.write_text("workers = 3\n")
    server = private_server
    for arguments, env, expected in [
        (["--config", str(file)], {}, "3"),
        (["--config", str(file)], {"LOGSTEAD_WORKERS": "2"}, "2"),
        (["--config", str(file), "--workers", "1"], {"LOGSTEAD_WORKERS": "2"}, "1"),
    ]:
        server.start(arguments=arguments, env=env)
        assert server.execute("SHOW workers") == [(expected,)]
        assert server.stop() == 0


def test_show_all(server, is_postgres):
    found = {row[0]: row[1] for row in server.execute("SHOW ALL")}
    for name in ["server_version", "TimeZone", "DateStyle", "statement_timeout", "client_encoding", "application_name"]:
        assert name in found, sorted(found)
    if not is_postgres:
        assert found["workers"].isdigit()
        assert all(row[2] for row in server.execute("SHOW ALL")), "a setting without a description"


@logstead_only
def test_help_and_version(server_kind):
    binary = server_kind.binary()
    for arguments in (["--help"], ["serve", "--help"], ["log", "--help"], ["--version"]):
        done = subprocess.run([binary, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S)
        assert done.returncode == 0 and "logstead" in done.stdout
    assert subprocess.run([binary, "nonsense"], capture_output=True, timeout=TIMEOUT_S).returncode != 0


# -- SIGTERM ----------------------------------------------------------------------------------------------------------


def test_sigterm_lets_transactions_end(private_server):
    server = private_server.start()
    server.execute("CREATE TABLE term (id int PRIMARY KEY)")
    connection = server.connect()
    connection.execute("INSERT INTO term VALUES (1)")
    server.process.terminate()

    def refuses():
        try:
            server.connect(connect_timeout=5).close()
        except psycopg.OperationalError:
            return True
        return False

    wait_until(refuses, what="new connections are refused")
    connection.execute("INSERT INTO term VALUES (2)")
    connection.commit()
    connection.close()
    assert server.process.wait(TIMEOUT_S) == 0
    server.start()
    assert server.execute("SELECT id FROM term ORDER BY id") == [(1,), (2,)]


@logstead_only
def test_sigterm_ends_idle_sessions(private_server):
    server = private_server.start()
    with Wire(server) as idle:
        assert rows(idle.simple("SELECT 1")) == [[b"1"]]
        started = time.monotonic()
        server.process.terminate()
        last = idle.closed()
        assert [message.fields["C"] for message in last if message.kind == "E"] == ["57P01"]
        assert server.process.wait(TIMEOUT_S) == 0
        assert time.monotonic() - started < TIMEOUT_S


@logstead_only
@pytest.mark.slow
def test_sigterm_does_not_wait_for_ever(private_server):
    """A transaction that never ends is rolled back after the grace time; so is one that waits for its lock."""
    server = private_server.start()
    server.execute("CREATE TABLE term (id int PRIMARY KEY)", "INSERT INTO term VALUES (0)")
    with Wire(server) as forgotten, Wire(server) as waiting:
        forgotten.simple("BEGIN")
        forgotten.simple("UPDATE term SET id = 5")
        from rawwire import query

        waiting.send(query("UPDATE term SET id = 6"))
        time.sleep(0.2)
        assert server.stop(timeout_s=120) == 0
    server.start()
    assert server.execute("SELECT id FROM term") in ([(0,)], [(6,)])


def test_sigterm_under_load_loses_nothing(private_server):
    """pgbench is cut off; everything it was told is committed is there."""
    server = private_server.start()
    server.run("pgbench", "-i", "-q", "-s", 1)
    load = subprocess.Popen(
        ["pgbench", "-n", "-c", "4", "-T", "60", "-M", "prepared"],
        env=server.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        wait_until(lambda: server.execute("SELECT count(*) FROM pgbench_history")[0][0] > 50, what="pgbench runs")
        if server.name == "postgres":
            load.terminate()
        assert server.stop(timeout_s=120) == 0
        load.wait(TIMEOUT_S)
    finally:
        load.kill()
        load.communicate()
    server.start()
    from test_pgbench import check_books

    assert check_books(server) > 50


# -- the log ----------------------------------------------------------------------------------------------------------


def log(server, *arguments: str) -> subprocess.CompletedProcess:
    """`logstead log ...`"""
    return subprocess.run([server.binary(), "log", *arguments], capture_output=True, text=True, timeout=300)


def places(server, needle: bytes) -> list[tuple]:
    """Every file and offset below the data directory where some bytes stand."""
    found = []
    for path in sorted(server.data.rglob("*")):
        if path.is_file():
            content, at = path.read_bytes(), -1
            while (at := content.find(needle, at + 1)) >= 0:
                found.append((path, at))
    assert found, f"{needle!r} is nowhere in {server.data}"
    return found


@pytest.fixture
def written(private_server):
    """A server that was killed after 300 commits of one session; the marks of the 100th and of the last."""
    # The log keeps them all.
    private_server.arguments += ["--checkpoint-interval", "0"]
    server = private_server.start()
    marks = [uuid.uuid4().hex for _ in range(300)]
    server.execute("CREATE TABLE log_t (id int PRIMARY KEY, mark text)")
    with server.connect(autocommit=True) as connection:
        for number, mark in enumerate(marks):
            connection.execute("INSERT INTO log_t VALUES (%s, %s)", (number, mark))
    server.kill()
    return server, marks[100].encode(), marks[-1].encode()


@logstead_only
def test_log_verify_and_dump(written):
    server, middle, _ = written
    verified = log(server, "verify", server.home)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert re.search(r"lane", verified.stdout) and re.search(r"block", verified.stdout)
    dumped = log(server, "dump", server.home)
    assert dumped.returncode == 0, dumped.stderr
    assert len(dumped.stdout.splitlines()) > 300
    assert re.search(r"(?i)csn", dumped.stdout)
    # Reading changes nothing, and the server still starts.
    server.start()
    assert server.execute("SELECT count(*) FROM log_t") == [(300,)]


@logstead_only
def test_what_is_mounted_read_only_is_read(written, tmp_path):
    """A snapshot of the data directory, say: it is checked, listed and copied without a byte written there."""
    server, middle, last = written
    copied = tmp_path / "copied"
    script = f"""
        mount --bind {server.data} {server.data} && mount -o remount,ro,bind {server.data} || exit 77
        touch {server.data}/lock 2> /dev/null && exit 77
        "$0" log verify {server.data} && "$0" fsck {server.data} && "$0" branch list {server.data} && "$0" backup {server.data} {copied}
    """
    found = subprocess.run(["unshare", "-rm", "sh", "-c", script, server.binary()], capture_output=True, text=True, timeout=300)
    if found.returncode == 77 or "unshare" in found.stderr:
        pytest.skip(f"nothing can be mounted here: {found.stderr}")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "0 damages" in found.stdout and copied.exists(), found.stdout
    # Also where no server has ever left its lock.
    (server.data / "lock").unlink()
    found = subprocess.run(["unshare", "-rm", "sh", "-c", script, server.binary()], capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stdout + found.stderr


@logstead_only
def test_log_commands_on_nothing(private_server, server_kind, tmp_path):
    for what in ("verify", "dump"):
        done = log(private_server, what, str(tmp_path / "nowhere"))
        assert done.returncode != 0 and "nowhere" in done.stdout + done.stderr
        assert "panicked" not in done.stderr


@logstead_only
def test_a_lanes_last_acknowledged_block_is_lost(private_server):
    """Nothing in its own lane tells: what others wrote later does. The start is refused, with the place, until the loss is accepted."""
    server = private_server
    server.arguments += ["--checkpoint-interval", "0", "--workers", "3", "--workers-per-lane", "1"]
    server.start()
    server.execute("CREATE TABLE log_t (id int PRIMARY KEY)")
    sessions = [server.connect(autocommit=True) for _ in range(12)]
    for number in range(240):
        # Some of the sessions, and so some of the workers, end long before the others.
        sessions[number % (12 - number // 40)].execute("INSERT INTO log_t VALUES (%s)", (number,))
    server.kill()
    dumped = log(server, "dump", server.home).stdout
    lanes: dict[int, list[tuple[int, ...]]] = {}
    for line in dumped.splitlines():
        if found := re.match(r"epoch \d+ lane (\d+)", line):
            lane = lanes.setdefault(int(found[1]), [])
        elif found := re.match(r"block (\d+) at segment (\d+) offset (\d+): .* CSN \d+\.\.(\d+), .* horizon (\d+)", line):
            lane.append(tuple(int(number) for number in found.groups()))
    horizon = max(block[4] for blocks in lanes.values() for block in blocks)
    ends = {lane: blocks[-1] for lane, blocks in lanes.items() if blocks}
    lane, (block, segment, offset, csn, _) = min(ends.items(), key=lambda end: end[1][3])
    assert len(ends) > 1 and csn < horizon, "a lane ends before the others"
    (path,) = server.data.glob(f"**/lane-{lane:04}/{segment:012}.seg")
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(bytes(4096))
    verified = log(server, "verify", server.home)
    assert verified.returncode != 0
    for text in (verified.stdout + verified.stderr, refused(server), refused(server)):
        assert f"lane {lane}, block {block}, byte offset {offset} of segment {segment}" in text or f"block {block} of lane {lane} at" in text, text
        assert "no lane has an entry with CSN" in text and "--accept-data-loss" in text, text
    server.start(arguments=["--accept-data-loss"])
    ids = [number for (number,) in server.execute("SELECT id FROM log_t ORDER BY id")]
    assert ids == list(range(len(ids))) and len(ids) < 240, "what survives is what came before the loss"
    server.execute("INSERT INTO log_t VALUES (1000)")
    server.restart_after_kill()
    assert server.execute("SELECT count(*) FROM log_t") == [(len(ids) + 1,)]


@logstead_only
def test_flipped_byte_in_the_middle(written):
    """Corruption before good blocks: the start is refused, with the place, until the loss is accepted."""
    server, middle, _ = written
    for path, at in places(server, middle):
        with open(path, "r+b") as file:
            file.seek(at)
            byte = file.read(1)
            file.seek(at)
            file.write(bytes([byte[0] ^ 0x01]))
    verified = log(server, "verify", server.home)
    said = refused(server)
    for text in (verified.stdout + verified.stderr, said):
        assert re.search(r"(?i)lane \D{0,3}\d+", text), text
        assert re.search(r"(?i)block \D{0,3}\d+", text), text
        assert re.search(r"(?i)offset \D{0,3}\d+", text), text
    assert verified.returncode != 0
    assert "--accept-data-loss" in said
    # Refused again, without having changed anything.
    assert "--accept-data-loss" in refused(server)
    server.start(arguments=["--accept-data-loss"])
    ids = [number for (number,) in server.execute("SELECT id FROM log_t ORDER BY id")]
    assert ids == list(range(len(ids))) and len(ids) <= 100, "what survives is what came before the damage"
    server.execute("INSERT INTO log_t VALUES (1000, 'new')")
    server.restart_after_kill()
    assert server.execute("SELECT mark FROM log_t WHERE id = 1000") == [("new",)]
    assert server.execute("SELECT count(*) FROM log_t") == [(len(ids) + 1,)]


@logstead_only
@pytest.mark.parametrize("tear", ["zeros", "noise", "half"])
def test_torn_tail_is_no_error(written, tear):
    """A last block that was only partly written is the end of the lane, nothing more."""
    server, _, last = written
    for path, at in places(server, last):
        size = path.stat().st_size
        with open(path, "r+b") as file:
            file.seek(at)
            length = min(size - at, 16384)
            if tear == "half":
                # The rest of the sector is as it was before: zeros; what follows is untouched.
                file.write(b"\0" * min(length, 512 - at % 512))
            else:
                file.write(b"\0" * length if tear == "zeros" else bytes((i * 37 + 11) % 256 for i in range(length)))
    server.start()
    ids = [number for (number,) in server.execute("SELECT id FROM log_t ORDER BY id")]
    assert ids == list(range(299))
    server.execute("INSERT INTO log_t VALUES (299, 'again')")
    server.restart_after_kill()
    assert server.execute("SELECT count(*) FROM log_t") == [(300,)]
