"""The fault proxy does what it says, and counts what it did: against a small store that remembers what reached it."""

from __future__ import annotations

import dataclasses
import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from faultproxy import FAULTS, FaultProxy
from harness import wait_until
from objectstores import ALL, start

pytestmark = pytest.mark.logstead_only

CONTENT = bytes(range(256)) * 8
AZURE = {"x-ms-version": "2024-11-04"}
S3_APPEND = {"x-amz-write-offset-bytes": "0"}


class Store:
    """Answers every GET with `CONTENT` and every PUT with its number; keeps what it was asked."""

    def __init__(self):
        store = self
        self.asked: list[tuple[str, str, dict, bytes]] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def answer(self):
                length = int(self.headers.get("content-length") or 0)
                body = self.rfile.read(length)
                store.asked.append((self.command, self.path, dict(self.headers), body))
                reply = CONTENT if self.command == "GET" else f"put {len(store.asked)}".encode()
                self.send_response(200)
                if self.path == "/chunked":
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(reply), reply))
                    return
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(reply)

            do_GET = do_PUT = do_HEAD = do_DELETE = answer

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def store():
    store = Store()
    yield store
    store.close()


@pytest.fixture
def proxy(store, seed):
    with FaultProxy(store.address, seed) as proxy:
        yield proxy


def ask(proxy, method="PUT", path="/object", body=b"bytes", headers=None, timeout=20.0):
    """One request on a connection of its own: (status, headers, body), or the exception it ended with."""
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=timeout)
    try:
        connection.request(method, path, body if method == "PUT" else None, headers or {})
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    except (OSError, http.client.HTTPException) as error:
        return error
    finally:
        connection.close()


def injured(proxy, fault):
    """How often."""
    return proxy.counts()[fault]


def test_forwards_what_it_does_not_injure(proxy, store):
    """Head and body unchanged, Host included, many requests on one connection, chunks, no body, HEAD."""
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
    for number in range(20):
        connection.request("PUT", f"/a?n={number}", bytes([number]) * number, {"Host": "signed.example:9", "X-Odd": " v "})
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, f"put {number + 1}".encode())
        method, path, headers, body = store.asked[-1]
        assert (method, path, body) == ("PUT", f"/a?n={number}", bytes([number]) * number)
        assert headers["Host"] == "signed.example:9" and headers["X-Odd"].strip() == "v"
    connection.request("PUT", "/a", iter([b"one", b"two"]), encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
    connection.getresponse().read()
    assert store.asked[-1][2]["Transfer-Encoding"] == "chunked"
    connection.close()
    assert ask(proxy, "GET", "/chunked")[2] == CONTENT
    status, headers, body = ask(proxy, "HEAD")
    # The length of the body that a GET would have.
    assert (status, body, headers["content-length"]) == (200, b"", str(len(f"put {len(store.asked)}")))
    counts = proxy.counts()
    assert counts["requests"] == counts["forwarded"] == len(store.asked)
    assert not any(counts[fault] for fault in FAULTS)


def test_lost_reply(proxy, store):
    proxy.arm("lost_reply")
    assert isinstance(ask(proxy), ConnectionResetError)
    assert len(store.asked) == 1 and injured(proxy, "lost_reply") == 1
    assert ask(proxy)[0] == 200


def test_reset_before(proxy, store):
    proxy.arm("reset_before")
    assert isinstance(ask(proxy), ConnectionResetError)
    assert not store.asked and injured(proxy, "reset_before") == 1


@pytest.mark.parametrize("headers", [{}, AZURE], ids=["s3", "azure"])
def test_delay_then_deliver(proxy, store, headers):
    """The client has its time-out (of either sort) and has gone on when the request arrives."""
    proxy.times(late_s=0.2)
    sorts = set()
    for number in range(40):
        proxy.arm("delay_then_deliver")
        answer = ask(proxy, path=f"/late{number}", headers=headers)
        sorts.add("reset" if isinstance(answer, ConnectionResetError) else answer[0])
    proxy.settle()
    assert sorts == {"reset", 500 if headers else 400}
    assert {path for _, path, _, _ in store.asked} == {f"/late{number}" for number in range(40)}
    assert injured(proxy, "delay_then_deliver") == 40
    assert injured(proxy, "delivered_late") == injured(proxy, "delivered_late_and_done") == len(store.asked) == 40


def test_duplicate(proxy, store):
    proxy.arm("duplicate", times=30)
    answers = {ask(proxy)[2] for _ in range(30)}
    assert len(store.asked) == 60 and injured(proxy, "duplicate") == 30
    # Sometimes the first answer, sometimes the second.
    assert {int(answer.split()[1]) % 2 for answer in answers} == {0, 1}


@pytest.mark.parametrize(("fault", "reached"), [("error_500_before", 0), ("error_500_after", 1)])
@pytest.mark.parametrize("headers", [{}, AZURE], ids=["s3", "azure"])
def test_error_500(proxy, store, fault, reached, headers):
    proxy.arm(fault)
    status, _, body = ask(proxy, headers=headers)
    assert status == 500 and b"<Code>InternalError</Code>" in body
    assert len(store.asked) == reached and injured(proxy, fault) == 1


@pytest.mark.parametrize(
    ("headers", "expected"),
    [({}, {(503, "SlowDown"), (429, "TooManyRequests")}), (AZURE, {(503, "ServerBusy")})],
    ids=["s3", "azure"],
)
def test_throttle(proxy, store, headers, expected):
    proxy.arm("throttle", times=60)
    found = set()
    for _ in range(60):
        status, _, body = ask(proxy, headers=headers)
        found.add((status, body.decode().partition("<Code>")[2].partition("<")[0]))
    assert found == expected
    assert not store.asked and injured(proxy, "throttle") == 60


def test_timeout(proxy, store):
    proxy.arm("timeout")
    assert isinstance(ask(proxy, timeout=0.3), TimeoutError)
    assert not store.asked and injured(proxy, "timeout") == 1


@pytest.mark.parametrize("path", ["/object", "/chunked"])
def test_truncate(proxy, store, path):
    """A prefix, never the whole; with the true length the client notices, with an agreeing one it cannot."""
    proxy.arm("truncate", times=40)
    for _ in range(40):
        answer = ask(proxy, "GET", path)
        if isinstance(answer, http.client.IncompleteRead):
            assert CONTENT.startswith(answer.partial) and len(answer.partial) < len(CONTENT)
        else:
            assert answer[0] == 200 and CONTENT.startswith(answer[2]) and len(answer[2]) < len(CONTENT)
            assert int(answer[1]["content-length"]) == len(answer[2])
    counts = proxy.counts()
    assert counts["truncate"] == 40 == len(store.asked)
    assert counts["truncate_with_true_length"] > 0 < counts["truncate_with_agreeing_length"]
    # Only answers with a body.
    proxy.arm("truncate")
    assert ask(proxy, "PUT")[0] == 200 and proxy.armed() == 1


@pytest.mark.parametrize(
    ("path", "headers", "status", "code"),
    [
        ("/object", S3_APPEND, 400, b"InvalidWriteOffset"),
        ("/container/blob?comp=appendblock", AZURE, 412, b"AppendPositionConditionNotMet"),
    ],
    ids=["s3", "azure"],
)
def test_wrong_offset(proxy, store, path, headers, status, code):
    """Appends only."""
    proxy.arm("wrong_offset")
    assert ask(proxy)[0] == ask(proxy, path="/container/blob", headers=AZURE)[0] == 200
    assert proxy.armed() == 1
    answer = ask(proxy, path=path, headers=headers)
    assert answer[0] == status and code in answer[2]
    assert len(store.asked) == 2 and injured(proxy, "wrong_offset") == 1
    assert proxy.counts()["wrong_offset append"] == 1


@pytest.mark.parametrize(
    ("headers", "statuses", "code"),
    [({}, {400, 403}, b"ExpiredToken"), (AZURE, {403}, b"AuthenticationFailed")],
    ids=["s3", "azure"],
)
def test_expired(proxy, store, headers, statuses, code):
    """Everything is refused for a while."""
    proxy.expire(3600)
    answers = [ask(proxy, method, headers=headers) for method in ["PUT", "GET"] * 20]
    assert {answer[0] for answer in answers} == statuses and all(code in answer[2] for answer in answers)
    assert ask(proxy, "HEAD", headers=headers)[0] in statuses
    assert not store.asked
    proxy.expire(0)
    assert ask(proxy, headers=headers)[0] == 200 and injured(proxy, "expired") == 41


def test_a_window_of_expired_credentials_spares_what_the_filter_spares(proxy, store):
    """A server that starts within it has never been known to the store, and rightly does not wait for better credentials."""
    proxy.times(late_s=0.05, slow_s=0.01, expired_s=3600.0)
    proxy.rates(only=r"^(?!.*/probe/)", expired=1.0)
    assert ask(proxy)[0] in (400, 403)
    assert ask(proxy, path="/probe/a")[0] == 200
    assert ask(proxy)[0] in (400, 403) and injured(proxy, "expired") == 2


def test_rates_and_filters(proxy, store):
    """Every kind happens at its rate, to what the filter names, and the counts add up."""
    proxy.times(late_s=0.05, slow_s=0.01, expired_s=0.0)
    rates = {fault: 0.07 for fault in FAULTS if fault != "timeout"}
    proxy.rates(**rates, slow=0.1)
    for number in range(600):
        ask(proxy, ["PUT", "GET"][number % 2], "/a", headers=S3_APPEND)
    proxy.rates()
    proxy.settle()
    counts = proxy.counts()
    assert all(counts[fault] > 0 for fault in [*rates, "slow"]), counts
    assert counts["requests"] == 600 == counts["asked append"] + counts["asked get"]
    never = sum(counts[fault] for fault in ("reset_before", "error_500_before", "throttle", "wrong_offset", "expired"))
    assert len(store.asked) == counts["forwarded"] == 600 - never + counts["duplicate"]
    proxy.rates(only=r"^put_if_absent .*/b", throttle=1.0)
    assert ask(proxy, path="/b")[0] == ask(proxy, path="/a", headers={"If-None-Match": "*"})[0] == 200
    assert ask(proxy, path="/b", headers={"If-None-Match": "*"})[0] in (429, 503)
    with pytest.raises(ValueError, match="no such fault"):
        proxy.rates(gremlins=1.0)


def test_armed_faults_skip(proxy, store):
    proxy.arm("lost_reply", match="PUT", skip=2)
    answers = [ask(proxy), ask(proxy, "GET"), ask(proxy), ask(proxy), ask(proxy)]
    assert [isinstance(answer, ConnectionResetError) for answer in answers] == [False, False, False, True, False]
    proxy.arm("lost_reply", match="nothing")
    proxy.disarm()
    assert proxy.armed() == 0


@pytest.mark.parametrize("delivers", [False, True])
def test_cut_holds(proxy, store, delivers):
    """Silence; then what was held arrives late, or never."""
    proxy.cut("hold")
    assert isinstance(ask(proxy, timeout=0.3), TimeoutError)
    assert not store.asked
    proxy.mend(deliver=delivers)
    # The proxy counts a request before it passes it on: what the store has is asked of the store.
    wait_until(lambda: len(store.asked) == delivers, what="the held request")
    assert proxy.counts()["delivered_after_cut"] == delivers
    assert ask(proxy)[0] == 200
    assert len(store.asked) == 1 + delivers


def test_cut_resets(proxy, store):
    idle = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
    idle.request("GET", "/a")
    idle.getresponse().read()
    proxy.cut("reset")
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        idle.request("GET", "/a")
        idle.getresponse()
    assert isinstance(ask(proxy), ConnectionError)
    proxy.mend()
    assert ask(proxy)[0] == 200 and len(store.asked) == 2


def test_store_that_is_gone(proxy, store):
    """A store that cannot be reached is a connection reset; a new one is found."""
    first = store.address
    proxy.upstream("127.0.0.1", 1)
    assert isinstance(ask(proxy), ConnectionError) and injured(proxy, "upstream_failed") == 1
    host, _, port = first.rpartition(":")
    proxy.upstream(host, int(port))
    assert ask(proxy)[0] == 200


def test_same_seed_same_faults(store):
    """What one client sees is reproduced by the seed."""

    def run(seed):
        with FaultProxy(store.address, seed) as proxy:
            proxy.rates(reset_before=0.2, throttle=0.2, duplicate=0.2)
            answers = [ask(proxy) for _ in range(60)]
            return [type(answer).__name__ if isinstance(answer, Exception) else answer[0] for answer in answers]

    assert run(7) == run(7) != run(8)


@pytest.mark.parametrize("name", ALL)
def test_real_stores_take_what_is_forwarded(name, tmp_path, seed):
    """Requests signed for the proxy's address reach them unchanged, so the signatures hold."""
    with start(name, tmp_path) as store, FaultProxy(f"{store.host}:{store.port}", seed) as proxy:
        seen = dataclasses.replace(store, port=proxy.port)
        for number in range(5):
            seen.put(f"some/object-{number}", bytes([number]) * 100_000)
        assert seen.keys("some/") == [f"some/object-{number}" for number in range(5)]
        assert seen.get("some/object-3") == store.get("some/object-3") == b"\x03" * 100_000
        counts = proxy.counts()
        assert (counts["requests"], counts["asked list"], counts["asked put"]) == (7, 1, 5)
        proxy.arm("duplicate", match="put ")
        seen.put("some/object-5", b"twice the same")
        proxy.expire(3600)
        assert seen.request("GET", "some/object-5")[0] in (400, 403)
        assert store.get("some/object-5") == b"twice the same"
