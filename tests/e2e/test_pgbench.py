"""pgbench: initialisation and the three built-in scripts in every protocol mode, with the books checked afterwards."""

import pytest

MODES = ["simple", "extended", "prepared"]
SCRIPTS = ["tpcb-like", "simple-update", "select-only"]


def check_books(server) -> int:
    """The history explains every balance; returns the number of history rows."""
    rows = server.execute(
        "SELECT (SELECT coalesce(sum(abalance), 0) FROM pgbench_accounts), (SELECT sum(tbalance) FROM pgbench_tellers),"
        " (SELECT sum(bbalance) FROM pgbench_branches), (SELECT coalesce(sum(delta), 0) FROM pgbench_history),"
        " (SELECT count(*) FROM pgbench_history)"
    )
    accounts, tellers, branches, history, count = rows[0]
    assert accounts == tellers == branches == history
    return count


@pytest.mark.parametrize("scale", [1, pytest.param(10, marks=pytest.mark.long)])
def test_initialise(server, scale):
    server.run("pgbench", "-i", "-q", "-s", scale, timeout_s=600)
    counts = "SELECT (SELECT count(*) FROM pgbench_branches), (SELECT count(*) FROM pgbench_tellers)," \
        " (SELECT count(*) FROM pgbench_accounts), (SELECT count(*) FROM pgbench_history)"
    assert server.execute(counts) == [(scale, 10 * scale, 100000 * scale, 0)]
    server.run("pgbench", "-n", "-c", 4, "-j", 2, "-t", 50)
    assert check_books(server) == 200


@pytest.mark.parametrize("mode", MODES)
def test_tpcb(server, mode):
    server.run("pgbench", "-i", "-q", "-s", 1)
    done = server.run("pgbench", "-n", "-M", mode, "-b", "tpcb-like", "-c", 8, "-j", 2, "-t", 100)
    assert "number of transactions actually processed: 800/800" in done.stdout
    assert "number of failed transactions: 0" in done.stdout
    assert check_books(server) == 800


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("script", ["simple-update", "select-only"])
def test_other_scripts(server, mode, script):
    if script == "simple-update" or not server.execute("SELECT 1 FROM pg_class WHERE relname = 'pgbench_accounts'"):
        server.run("pgbench", "-i", "-q", "-s", 1)
    done = server.run("pgbench", "-n", "-M", mode, "-b", script, "-c", 8, "-j", 2, "-t", 200)
    assert "number of transactions actually processed: 1600/1600" in done.stdout
    assert "number of failed transactions: 0" in done.stdout
    if script == "simple-update":
        rows = server.execute("SELECT (SELECT sum(abalance) FROM pgbench_accounts), sum(delta), count(*) FROM pgbench_history")
        assert rows[0][0] == rows[0][1] and rows[0][2] == 1600


def test_server_side_generation_and_pipeline(server, tmp_path):
    """`-I dtGvp` generates rows with generate_series on the server; a custom script pipelines its statements."""
    server.run("pgbench", "-i", "-q", "-s", 1, "-I", "dtGvp")
    assert server.execute("SELECT count(*), min(aid), max(aid) FROM pgbench_accounts") == [(100000, 1, 100000)]
    script = tmp_path / "pipeline.sql"
    script.write_text(
        "\\set aid random(1, 100000)\n\\startpipeline\nBEGIN;\n"
        "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\nEND;\n\\endpipeline\n"
    )
    server.run("pgbench", "-n", "-M", "prepared", "-f", script, "-c", 4, "-t", 100)
    assert server.execute("SELECT sum(abalance) FROM pgbench_accounts") == [(400,)]
