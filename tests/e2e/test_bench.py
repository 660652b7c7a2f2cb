"""`logstead bench` as a program: its options, its reports, Ctrl-C, and a log that can be read afterwards."""

from __future__ import annotations

import json
import signal
import subprocess
import time

import pytest

from fleet import Fleet
from harness import TIMEOUT_S

pytestmark = pytest.mark.logstead_only


@pytest.fixture
def bench(server_kind):
    """Starts `logstead bench` with arguments."""
    binary = server_kind.binary()

    def start(*arguments: str) -> subprocess.Popen:
        command = [binary, "bench", *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


def ended(process: subprocess.Popen) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=TIMEOUT_S * 3)
    return process.returncode, out, err


def test_reports(bench, tmp_path):
    files = ["--json", str(tmp_path / "r.json"), "--html", str(tmp_path / "r.html")]
    code, out, err = ended(bench("smallbank", "--accounts", "100", "--workers", "1,2", "--transactions", "500", *files))
    # The bar is for terminals only.
    assert (code, err) == (0, "")
    assert out.startswith("smallbank\n") and "checked: 5 of 5 conditions hold" in out
    report = json.loads((tmp_path / "r.json").read_text())
    assert [run["workers"] for run in report["runs"]] == [1, 2]
    for run in report["runs"]:
        every = next(row for row in run["transactions"] if row["name"] == "all")
        assert every["committed"] + every["rolled_back"] == 500
        assert all(check["holds"] for check in run["checks"])
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
    # Results of two commands side by side.
    both = [str(tmp_path / "r.json")] * 2
    code, out, err = ended(bench("report", *both, "--html", str(tmp_path / "both.html")))
    assert (code, err) == (0, "") and out.endswith("both.html: 4 runs\n")
    assert (tmp_path / "both.html").read_text().count("<h2>smallbank</h2>") == 2
    (tmp_path / "r.json").write_text('{"no": "results"}')
    code, out, err = ended(bench("report", *both, "--html", str(tmp_path / "none.html")))
    assert (code, out) == (1, "") and "r.json" in err and not (tmp_path / "none.html").exists()


def test_its_log_is_a_log(bench, server_kind, tmp_path):
    log = tmp_path / "log"
    arguments = ["tatp", "--subscribers", "200", "--workers", "2", "--transactions", "200", "--log", f"local:{log}"]
    assert ended(bench(*arguments))[0] == 0
    verified = subprocess.run([server_kind.binary(), "log", "verify", str(log)], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert verified.stdout.startswith("the log is good"), verified.stderr
    code, out, err = ended(bench(*arguments))
    assert (code, out) == (2, "") and "is not empty" in err


def test_the_yardstick_of_a_fleet(bench, tmp_path):
    fleet = Fleet(tmp_path / "fleet")
    try:
        fleet.start()
        home = ["--home", fleet.url("yardstick"), "--way", "quorum"]
        code, out, err = ended(bench("bare", *home, "--workers", "2", "--transactions", "300", "--json", str(tmp_path / "r.json")))
        assert (code, err) == (0, ""), out
        (outcome,) = json.loads((tmp_path / "r.json").read_text())["runs"]
        assert outcome["transactions"][0]["committed"] == 300
        # Each node has lanes of its own.
        for node in fleet.nodes:
            lanes = (node.root / "data/volumes/yardstick/log").iterdir()
            assert {lane.name for lane in lanes} == {"lane-0000", "lane-0001"}
        code, out, err = ended(bench("bare", *home, "--transactions", "1"))
        assert code == 1 and "refused" in err, "there is a log already"
    finally:
        fleet.kill()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["ycsb", "--mix", "Q"], "--mix Q"),
        (["ycsb", "--workers", "none"], "--workers none"),
        (["tpcc", "--isolation", "dirty"], "--isolation dirty"),
        (["chess"], "chess"),
        (["tatp", "--wings", "2"], "--wings"),
    ],
)
def test_wrong_options(bench, arguments, named):
    code, out, err = ended(bench(*arguments))
    assert (code, out) == (2, "")
    assert named in err and "panicked" not in err


def test_interrupt(bench):
    process = bench("ycsb", "--table-size", "100", "--seconds", "1000", "--warmup", "0")
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    code, out, err = ended(process)
    assert code == 130, err
    assert "INTERRUPTED" in out and "checked: 3 of 3 conditions hold" in out
