"""The transfer check itself: it passes on a server that keeps its word, and finds each way of breaking it."""

from __future__ import annotations

import pytest
from harness import wait_until
from transfers import Bank


@pytest.fixture
def bank(private_server, seed):
    """Clients that were told of some transfers; they have stopped."""
    private_server.start()
    bank = Bank(seed, clients=4).open(private_server)
    bank.start(private_server)
    wait_until(lambda: bank.acknowledged() >= 40, what="transfers")
    bank.stop()
    assert bank.check(private_server) == bank.acknowledged() >= 40
    return bank


def test_kills_are_no_breach(private_server, bank):
    for _ in range(2):
        goal = bank.acknowledged() + 40
        bank.start(private_server)
        wait_until(lambda goal=goal: bank.acknowledged() >= goal, what="transfers")
        pid = private_server.process.pid
        private_server.kill()
        bank.ended(pid)
        private_server.start()
        bank.stop()
        assert bank.acknowledged() <= bank.check(private_server)
    assert bank.endings["connection lost"] > 0


FIRST = "client = 0 AND number = (SELECT min(number) FROM ledger WHERE client = 0)"


@pytest.mark.parametrize(
    ("breach", "found"),
    [
        (f"DELETE FROM ledger WHERE {FIRST}", "balances do not follow"),
        (f"INSERT INTO ledger SELECT * FROM ledger WHERE {FIRST}", "there twice"),
        ("UPDATE account SET balance = balance + 1 WHERE id = 1", "money was made or lost"),
        ("UPDATE counter SET n = n - 1 WHERE client = 0", "disagree"),
        ("INSERT INTO ledger VALUES (0, 1000000, 1, 1, 0, '')", "nobody asked"),
        (
            "BEGIN; UPDATE account SET balance = balance + l.amount FROM ledger l WHERE id = l.src AND l." + FIRST.replace("AND n", "AND l.n") + ";"
            " UPDATE account SET balance = balance - l.amount FROM ledger l WHERE id = l.dst AND l." + FIRST.replace("AND n", "AND l.n") + ";"
            f" DELETE FROM ledger WHERE {FIRST}; UPDATE counter SET n = n - 1 WHERE client = 0; COMMIT",
            "acknowledged and lost",
        ),
    ],
    ids=["ledger row lost", "twice", "balance", "counter", "surplus", "a whole transfer lost"],
)  # fmt: skip
def test_breaches_are_found(private_server, bank, breach, found):
    private_server.execute(breach)
    with pytest.raises(AssertionError, match=found):
        bank.check(private_server)


def test_transfer_that_comes_back_is_found(private_server, bank):
    books = bank.books[0]
    back = max(books.acknowledged)
    books.acknowledged.remove(back)
    books.missing.add(back)
    with pytest.raises(AssertionError, match="never committed, yet there"):
        bank.check(private_server)


@pytest.mark.parametrize(
    ("breach", "found"),
    [("UPDATE counter SET n = n - 1 WHERE client = 0", "was known to be"), ("UPDATE account SET balance = 0 WHERE id = 1", "shows a total")],
    ids=["stale", "torn"],
)
def test_wrong_reads_are_found(private_server, bank, breach, found):
    private_server.execute(breach)
    with private_server.connect(autocommit=True) as connection:
        bank.read(connection, private_server.process.pid)
    with pytest.raises(AssertionError, match=found):
        bank.assert_right()
