"""LISTEN and NOTIFY between sessions, and advisory locks that sessions wait for."""

import threading

import psycopg
import pytest
from harness import TIMEOUT_S, wait_until


def received(connection, count, timeout_s=TIMEOUT_S):
    """The next notifications of an idle session."""
    notifications = connection.notifies(timeout=timeout_s, stop_after=count)
    return [(n.channel, n.payload, n.pid) for n in notifications]


def nothing_came(connection):
    """Asks something and looks at what came with the answer."""
    seen = []
    connection.add_notify_handler(seen.append)
    connection.execute("SELECT 1")
    connection.remove_notify_handler(seen.append)
    return not seen


def test_an_idle_session_hears_at_once_in_commit_order(server):
    with server.connect(autocommit=True) as listener, server.connect() as one, server.connect() as other:
        listener.execute("LISTEN news")
        listener.execute("LISTEN weather")
        one.execute("NOTIFY news, 'first of one'")
        one.execute("SELECT pg_notify('weather', 'rain')")
        other.execute("NOTIFY news, 'of the other'")
        assert nothing_came(listener), "nothing is told of a transaction that has not committed"
        other.commit()
        assert received(listener, 1) == [("news", "of the other", other.info.backend_pid)]
        one.execute("NOTIFY news, 'first of one'")
        one.commit()
        pid = one.info.backend_pid
        assert received(listener, 2) == [("news", "first of one", pid), ("weather", "rain", pid)]


def test_what_is_rolled_back_is_never_told(server):
    with server.connect(autocommit=True) as listener, server.connect() as sender:
        listener.execute("LISTEN news")
        sender.execute("NOTIFY news, 'rolled back'")
        sender.rollback()
        sender.execute("NOTIFY news, 'kept'")
        sender.execute("SAVEPOINT s")
        sender.execute("NOTIFY news, 'behind the savepoint'")
        sender.execute("ROLLBACK TO s")
        sender.execute("NOTIFY news, 'kept'")
        sender.commit()
        assert received(listener, 1) == [("news", "kept", sender.info.backend_pid)]
        listener.execute("UNLISTEN *")
        sender.execute("NOTIFY news, 'to nobody'")
        sender.commit()
        assert nothing_came(listener)


def test_a_session_in_a_transaction_hears_behind_its_end(server):
    with server.connect() as listener, server.connect(autocommit=True) as sender:
        listener.execute("LISTEN news")
        listener.commit()
        listener.execute("SELECT 1")
        sender.execute("NOTIFY news, 'meanwhile'")
        assert nothing_came(listener)
        seen = []
        listener.add_notify_handler(lambda n: seen.append(n.payload))
        listener.commit()
        assert seen == ["meanwhile"]
        # Its own come with its own commit.
        listener.execute("NOTIFY news, 'mine'")
        listener.commit()
        assert seen == ["meanwhile", "mine"]


def test_many_senders_many_listeners(server):
    listeners = [server.connect(autocommit=True) for _ in range(3)]
    for listener in listeners:
        listener.execute("LISTEN crowd")

    def send(sender):
        with server.connect(autocommit=True) as connection:
            for i in range(40):
                connection.execute("SELECT pg_notify('crowd', %s)", (f"{sender} {i}",))

    senders = [threading.Thread(target=send, args=(n,)) for n in range(4)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(TIMEOUT_S)
    heard = [[payload for _, payload, _ in received(listener, 160)] for listener in listeners]
    assert heard[0] == heard[1] == heard[2], "everybody hears in one order"
    for sender in range(4):
        assert [p for p in heard[0] if p.startswith(f"{sender} ")] == [f"{sender} {i}" for i in range(40)]
    for listener in listeners:
        listener.close()


def waits(server, pid):
    """Whether a session waits for an advisory lock."""
    return bool(server.execute(f"SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND pid = {pid}"))


def test_advisory_locks_are_waited_for(server):
    with server.connect(autocommit=True) as first, server.connect(autocommit=True) as second:
        first.execute("SELECT pg_advisory_lock(77)")
        assert second.execute("SELECT pg_try_advisory_lock(77), pg_try_advisory_lock_shared(77)").fetchone() == (False, False)
        got = []
        waiting = threading.Thread(target=lambda: got.append(second.execute("SELECT pg_advisory_lock_shared(77)").fetchall()))
        waiting.start()
        wait_until(lambda: waits(server, second.info.backend_pid), what="the second waits")
        assert not got
        first.execute("SELECT pg_advisory_unlock(77)")
        waiting.join(TIMEOUT_S)
        assert got == [[("",)]]
        assert first.execute("SELECT pg_try_advisory_lock(77), pg_try_advisory_lock_shared(77)").fetchone() == (False, True)
    # Sessions give theirs back when they end.
    with server.connect(autocommit=True) as third:
        wait_until(lambda: third.execute("SELECT pg_try_advisory_xact_lock(77)").fetchone() == (True,), what="it is free")


def test_waiting_for_an_advisory_lock_ends_with_its_limits(server):
    with server.connect(autocommit=True) as first, server.connect() as second:
        first.execute("SELECT pg_advisory_lock(5, 6)")
        second.execute("SET LOCAL lock_timeout = '50ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            second.execute("SELECT pg_advisory_xact_lock(5, 6)")
        second.rollback()
        failed = []

        def wait():
            try:
                second.execute("SELECT pg_advisory_lock(5, 6)")
            except psycopg.Error as error:
                failed.append(error.sqlstate)

        waiting = threading.Thread(target=wait)
        waiting.start()
        wait_until(lambda: waits(server, second.info.backend_pid), what="it waits")
        second.cancel()
        waiting.join(TIMEOUT_S)
        assert failed == ["57014"]
        second.rollback()
        assert not waits(server, second.info.backend_pid)


def test_advisory_locks_in_a_circle(server):
    with server.connect(autocommit=True) as first, server.connect(autocommit=True) as second:
        first.execute("SELECT pg_advisory_lock(1001)")
        second.execute("SELECT pg_advisory_lock(1002)")
        ended = {}

        def lock(name, connection, key):
            try:
                connection.execute("SELECT pg_advisory_lock(%s)", (key,))
                ended[name] = "locked"
            except psycopg.Error as error:
                ended[name] = error.sqlstate
                connection.execute("SELECT pg_advisory_unlock_all()")

        one = threading.Thread(target=lock, args=("first", first, 1002))
        one.start()
        wait_until(lambda: waits(server, first.info.backend_pid), what="the first waits")
        two = threading.Thread(target=lock, args=("second", second, 1001))
        two.start()
        one.join(TIMEOUT_S)
        two.join(TIMEOUT_S)
        assert sorted(ended.values()) == ["40P01", "locked"]
