"""What the log costs, as SQL shows it: on simulated homes, with the built-in prices and with one's own."""

from __future__ import annotations

import objectstores
import pytest
from test_operation import refused

pytestmark = pytest.mark.logstead_only

HOME = "sim://?model=s3express&scale=0.1&dir={dir}"
HEAD = """dated 2031-04-01
columns append put get head list delete session upload-gb read-gb stored-gb-month
"""


def test_commits_are_counted_and_priced(private_server):
    server = private_server
    server.arguments = ["--home", HOME.format(dir=server.root / "objects"), "--workers", "1"]
    server.start()
    server.execute("CREATE TABLE t (id int PRIMARY KEY)")
    look = "SELECT requests, bytes, dollars FROM logstead_cost WHERE kind = 'append'"
    requests, size, dollars = server.execute(look)[0]
    for number in range(20):
        server.execute(f"INSERT INTO t VALUES ({number})")
    more_requests, more_bytes, more_dollars = server.execute(look)[0]
    # One client alone: each of its commits is an append of its own.
    assert more_requests - requests >= 20
    expected = (more_requests - requests) * 1.13e-6 + (more_bytes - size) * 0.0032e-9
    assert more_dollars - dollars == pytest.approx(expected)
    home, provider, prices, transactions, per_million, total = server.execute(
        "SELECT home, provider, prices, transactions, dollars_per_million_transactions, dollars FROM logstead_cost_summary"
    )[0]
    assert "s3express" in home
    assert (provider, prices) == ("s3express", "built in, 2026-11-21")
    assert transactions >= 20
    assert per_million == pytest.approx(total / transactions * 1e6)
    # After a restart the counts begin again: what is read to recover is among them.
    assert server.stop() == 0
    server.start()
    assert server.execute("SELECT sum(requests) FROM logstead_cost WHERE kind = 'append'")[0][0] < more_requests
    assert server.execute("SELECT requests, bytes FROM logstead_cost WHERE kind = 'get'")[0] > (0, 0)


@pytest.mark.parametrize("name", ["dev-bucket", "dev-bucket-s3"])
def test_requests_on_the_wire_are_counted(private_server, tmp_path, name):
    server = private_server
    with objectstores.start(name, tmp_path) as store:
        server.start(arguments=["--home", store.url("log"), "--workers", "1"], env=store.environment)
        server.execute("CREATE TABLE t (id int PRIMARY KEY)")
        # Where there are no appends, a block is an object of its own.
        kind = "append" if store.scheme == "s3express" else "put"
        price = {"append": 1.13e-6, "put": 5e-6}[kind]
        look = f"SELECT requests, dollars FROM logstead_cost WHERE kind = '{kind}' AND provider = '{store.scheme}'"
        requests, dollars = server.execute(look)[0]
        for number in range(20):
            server.execute(f"INSERT INTO t VALUES ({number})")
        more_requests, more_dollars = server.execute(look)[0]
        assert more_requests - requests >= 20
        # In billionths of a dollar, since sums of fractions are not exact.
        assert round((more_dollars - dollars) * 1e9) >= round(20 * price * 1e9)
        # The start probes and reads the bucket; the lease is renewed every third of ten seconds, whoever does anything.
        others = "SELECT kind FROM logstead_cost WHERE requests > 0"
        assert {("put",), ("get",), ("list",)} <= set(server.execute(others))
        idle = server.execute("SELECT idle_dollars_per_month FROM logstead_cost_summary")[0][0]
        assert idle == pytest.approx(730 * 3600 / (10 / 3) * {"append": 1.13e-6, "put": 5e-6}[kind])
        assert server.stop() == 0


def test_prices_are_the_users(private_server):
    server = private_server
    server.root.mkdir(parents=True, exist_ok=True)
    prices = server.root / "prices.txt"
    prices.write_text(HEAD + "s3express 1000000 0 0 0 0 0 0 0 0 0\n")
    home = HOME.format(dir=server.root / "objects")
    server.start(arguments=["--home", home, "--price-list", str(prices)])
    server.execute("CREATE TABLE t (id int)")
    assert server.execute("SELECT abs(dollars - requests) < 1e-6 FROM logstead_cost WHERE kind = 'append'") == [(True,)]
    assert server.execute("SELECT sum(dollars) FROM logstead_cost WHERE kind <> 'append'") == [(0.0,)]
    assert server.execute("SELECT prices FROM logstead_cost_summary") == [(f"{prices}, 2031-04-01",)]
    assert server.execute("SHOW price_list") == [(str(prices),)]


def test_a_local_home_costs_nothing(private_server):
    private_server.start()
    for view in ("logstead_cost", "logstead_cost_summary"):
        assert private_server.execute(f"SELECT count(*) FROM {view}") == [(0,)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HEAD + "s3express 1 2 3\n", "line 3: s3express has 3 prices"),
        (HEAD + "\ntape 1 2 three 4 5 6 7 8 9 10\n", 'line 4: "three" is no price of get'),
        ("s3express 1 2 3 4 5 6 7 8 9 10\n", "line 1: a line"),
        (None, "No such file"),
    ],
)
def test_a_bad_price_list_is_refused_with_its_line(private_server, text, why):
    private_server.root.mkdir(parents=True, exist_ok=True)
    prices = private_server.root / "prices.txt"
    if text is not None:
        prices.write_text(text)
    said = refused(private_server, "--price-list", str(prices))
    assert why in said
    assert "price_list" in said
    assert str(prices) in said
