"""An HTTP/1.1 proxy that stands between a server and a real object store and injures requests in named ways.

It runs in a process of its own (`python faultproxy.py --upstream HOST:PORT --seed N`), which prints the port it listens on and
the port of its control channel: one JSON object per line, each answered by one. `FaultProxy` below starts it and speaks with it.

Signatures cover the Host header, and the server is configured with the proxy as its endpoint: heads are forwarded unchanged,
Host included, and the stores, which check signatures against the Host they are sent, accept that.

Each request suffers one fault at most (`slow` besides): one that a test has armed, else one that is drawn by the rates from a
seeded generator. Every fault is counted when it was really done: `truncate` only if there was a body to cut, `wrong_offset`
only on appends. So the counts are what a test may reason about:

    lost_reply          forwarded; the answer is thrown away, the connection reset
    reset_before        the connection is reset; never forwarded
    delay_then_deliver  the client gets a time-out (an answer that says so, or a reset); the request is delivered some time
                        later, when the client has gone on: a late duplicate
    duplicate           forwarded twice, one after the other; the first or the second answer is returned
    error_500_before    the provider's internal error; never forwarded
    error_500_after     forwarded; then the provider's internal error instead of the answer
    throttle            the provider's "slow down"; never forwarded
    timeout             never answered, never forwarded; the client has to give up
    truncate            forwarded; the body of a GET is cut short, with the true Content-Length (and the connection closed) or
                        with a Content-Length that agrees with what is sent, though Content-Range or checksums may not
    wrong_offset        appends only: the provider's "that is not the offset", although nothing is wrong; never forwarded
    expired             the provider's "these credentials have expired", for this request and all others for some time; never
                        forwarded
    slow                forwarded after some time

`cut` is the network between the two breaking: what arrives is `hold` (kept; delivered at `mend`, unless that drops it) or
`reset`. Requests that were under way are not answered either.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import socket
import struct
import subprocess
import sys
from collections import Counter, deque
from dataclasses import dataclass, field

FAULTS = (
    "lost_reply",
    "reset_before",
    "delay_then_deliver",
    "duplicate",
    "error_500_before",
    "error_500_after",
    "throttle",
    "timeout",
    "truncate",
    "wrong_offset",
    "expired",
)
# Ends of the ranges that times are drawn from, in seconds. Tests may set them; nothing may depend on them.
TIMES = {"late_s": 2.0, "slow_s": 0.3, "expired_s": 1.0}
HEAD_BYTES_MAX = 1 << 20
RECENT_MAX = 200


@dataclass
class Message:
    """A request or an answer: its head as it came, and its body as it came (chunks still framed)."""

    head: bytes
    body: bytes = b""
    start: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    # The sender closes the connection behind it.
    closes: bool = False

    @property
    def method(self) -> str:
        return self.start.split(" ", 1)[0]

    @property
    def target(self) -> str:
        return self.start.split(" ")[1]

    @property
    def status(self) -> int:
        return int(self.start.split(" ")[1])


class Gone(Exception):
    """The other side closed the connection, or what it sends is no HTTP."""


async def read_message(reader: asyncio.StreamReader, answer_to: str | None = None, writer: asyncio.StreamWriter | None = None) -> Message:
    """One message. `answer_to` is the method of the request that it answers; `None`: it is a request, whose sender may want to be
    told by `writer` to go on."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError) as error:
        raise Gone from error
    lines = head[:-4].decode("latin-1").split("\r\n")
    message = Message(head, start=lines[0])
    for line in lines[1:]:
        name, _, value = line.partition(":")
        message.headers[name.strip().lower()] = value.strip()
    message.closes = message.headers.get("connection", "").lower() == "close" or lines[0].startswith("HTTP/1.0 ")
    if answer_to is None and writer and message.headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        if answer_to is not None:
            if message.status < 200:
                return await read_message(reader, answer_to)
            if answer_to == "HEAD" or message.status in (204, 304):
                return message
        if "chunked" in message.headers.get("transfer-encoding", "").lower():
            message.body = await read_chunks(reader)
        elif "content-length" in message.headers:
            message.body = await reader.readexactly(int(message.headers["content-length"]))
        elif answer_to is not None:
            message.body = await reader.read(-1)
            message.closes = True
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError) as error:
        raise Gone from error
    return message


async def read_chunks(reader: asyncio.StreamReader) -> bytes:
    """A chunked body with its framing and trailers."""
    parts = []
    while True:
        line = await reader.readuntil(b"\r\n")
        parts.append(line)
        size = int(line.split(b";")[0], 16)
        if size == 0:
            break
        parts.append(await reader.readexactly(size + 2))
    while True:
        line = await reader.readuntil(b"\r\n")
        parts.append(line)
        if line == b"\r\n":
            return b"".join(parts)


def plain_body(message: Message) -> bytes:
    """The body without the framing of chunks."""
    if "chunked" not in message.headers.get("transfer-encoding", "").lower():
        return message.body
    parts, at = [], 0
    while True:
        end = message.body.index(b"\r\n", at)
        size = int(message.body[at:end].split(b";")[0], 16)
        if size == 0:
            return b"".join(parts)
        parts.append(message.body[end + 2 : end + 2 + size])
        at = end + 2 + size + 2


def is_azure(request: Message) -> bool:
    return "x-ms-version" in request.headers


def is_append(request: Message) -> bool:
    """An append to an object, at an offset that the provider checks."""
    if is_azure(request):
        return request.method == "PUT" and re.search(r"[?&]comp=appendblock\b", request.target) is not None
    return request.method == "PUT" and "x-amz-write-offset-bytes" in request.headers


def kind(request: Message) -> str:
    """What the request asks for, for counts: `append`, `put_if_absent`, `replace`, `put`, `get`, `head`, `list`, `delete`, ..."""
    if is_append(request):
        return "append"
    if request.method == "PUT":
        if "if-none-match" in request.headers:
            return "put_if_absent"
        return "replace" if "if-match" in request.headers else "put"
    if request.method == "GET" and re.search(r"[?&](list-type=|comp=list\b|prefix=)", request.target):
        return "list"
    return request.method.lower()


def provider_error(request: Message, status: int, code: str, text: str) -> bytes:
    """An error as this provider words it."""
    reasons = {400: "Bad Request", 403: "Forbidden", 408: "Request Timeout", 412: "Precondition Failed", 429: "Too Many Requests"}
    reasons |= {500: "Internal Server Error", 503: "Service Unavailable"}
    more = ""
    if is_azure(request):
        body = f'<?xml version="1.0" encoding="utf-8"?><Error><Code>{code}</Code><Message>{text}</Message></Error>'
        more = f"x-ms-error-code: {code}\r\nx-ms-request-id: faultproxy\r\nx-ms-version: {request.headers['x-ms-version']}\r\n"
    else:
        body = (
            f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{text}</Message>'
            "<RequestId>FAULTPROXY</RequestId><HostId>faultproxy</HostId></Error>"
        )
        more = "x-amz-request-id: FAULTPROXY\r\n"
    if request.method == "HEAD":
        body = ""
    head = f"HTTP/1.1 {status} {reasons[status]}\r\nContent-Type: application/xml\r\n{more}Content-Length: {len(body)}\r\n\r\n"
    return (head + body).encode()


class Proxy:
    """The proxy's process: state, and the two servers (data and control)."""

    def __init__(self, upstream: tuple[str, int], seed: int):
        self.upstream = upstream
        self.rng = random.Random(seed)
        self.rates: dict[str, float] = {}
        self.times = dict(TIMES)
        self.only: re.Pattern | None = None
        self.armed: list[dict] = []
        self.counts: Counter[str] = Counter()
        self.recent: deque[str] = deque(maxlen=RECENT_MAX)
        self.expired_until = 0.0
        self.cut: str | None = None
        self.mended = asyncio.Event()
        self.mended.set()
        # Counts up at every cut: what was under way then is not answered.
        self.cuts = 0
        self.drop_held = False
        self.clients: set[asyncio.StreamWriter] = set()
        self.late: set[asyncio.Task] = set()

    # -- one client's connection ----------------------------------------------------------------------------------
    async def serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.clients.add(writer)
        upstream = Upstream(self.upstream)
        try:
            while True:
                request = await read_message(reader, writer=writer)
                self.counts["requests"] += 1
                self.counts[f"asked {kind(request)}"] += 1
                if not await self.serve_request(request, reader, writer, upstream) or request.closes:
                    break
        except Gone:
            pass
        except (ConnectionError, asyncio.CancelledError):
            reset(writer)
        finally:
            self.clients.discard(writer)
            upstream.close()
            writer.close()

    async def serve_request(self, request, reader, writer, upstream) -> bool:
        """Answers one request, or injures it; whether the connection is still good."""
        cuts = self.cuts
        if self.cut == "reset":
            self.count("cut", request)
            reset(writer)
            return False
        if self.cut == "hold":
            self.count("cut", request)
            await self.mended.wait()
            if not self.drop_held:
                self.count("delivered_after_cut", request)
                await self.deliver(request, Upstream(self.upstream), last=True)
            reset(writer)
            return False
        fault = self.choose(request)
        if self.rates.get("slow", 0.0) > self.rng.random():
            self.count("slow", request)
            await asyncio.sleep(self.rng.uniform(0, self.times["slow_s"]))

        if fault == "reset_before":
            self.count(fault, request)
            reset(writer)
            return False
        if fault == "timeout":
            self.count(fault, request)
            # Until the client gives up.
            with contextlib.suppress(ConnectionError):
                while await reader.read(1 << 16):
                    pass
            return False
        if fault == "delay_then_deliver":
            self.count(fault, request)
            self.deliver_later(request, self.rng.uniform(0, self.times["late_s"]))
            if self.rng.random() < 0.5:
                reset(writer)
                return False
            return await self.say(writer, self.timed_out(request))
        if fault in ("error_500_before", "throttle", "wrong_offset", "expired"):
            self.count(fault, request)
            return await self.say(writer, self.lie(fault, request))

        answer = await self.deliver(request, upstream)
        if answer is None:
            # The store itself hung up: the client may not learn more than that.
            self.counts["upstream_failed"] += 1
            reset(writer)
            return False
        if self.cuts != cuts:
            self.count("cut", request)
            await self.mended.wait()
            reset(writer)
            return False
        if fault == "lost_reply":
            self.count(fault, request)
            reset(writer)
            return False
        if fault == "error_500_after":
            self.count(fault, request)
            return await self.say(writer, self.lie(fault, request))
        if fault == "duplicate":
            second = await self.deliver(request, upstream)
            if second is not None:
                self.count(fault, request)
                answer = self.rng.choice([answer, second])
        elif fault == "truncate" and request.method == "GET" and answer.status in (200, 206) and plain_body(answer):
            self.count(fault, request)
            await self.truncated(writer, answer)
            return False
        return await self.say(writer, answer.head + answer.body) and not answer.closes

    # -- faults ---------------------------------------------------------------------------------------------------
    def choose(self, request: Message) -> str | None:
        """The fault of this request: armed, a window of expired credentials, or drawn."""
        what = f"{kind(request)} {request.method} {request.target}"
        now = asyncio.get_running_loop().time()
        for arm in self.armed:
            if re.search(arm["match"], what) and applies(arm["fault"], request):
                if arm["skip"] > 0:
                    arm["skip"] -= 1
                    continue
                arm["times"] -= 1
                if arm["times"] <= 0:
                    self.armed.remove(arm)
                return arm["fault"]
        # Also of a window: credentials drawn to expire must not meet what the filter spares.
        if self.only and not self.only.search(what):
            return None
        if now < self.expired_until:
            return "expired"
        # One draw for all kinds: the sum of the rates is the share of the requests that suffer.
        drawn = self.rng.random()
        for fault in FAULTS:
            drawn -= self.rates.get(fault, 0.0)
            if drawn < 0:
                if not applies(fault, request):
                    return None
                if fault == "expired":
                    self.expired_until = now + self.rng.uniform(0, self.times["expired_s"])
                return fault
        return None

    def count(self, fault: str, request: Message) -> None:
        self.counts[fault] += 1
        self.counts[f"{fault} {kind(request)}"] += 1
        self.recent.append(f"{fault}: {kind(request)} {request.method} {request.target}")

    def lie(self, fault: str, request: Message) -> bytes:
        """The answer of a provider who does not do it, or does not say so."""
        azure = is_azure(request)
        if fault.startswith("error_500"):
            text = "We encountered an internal error. Please try again."
            return provider_error(request, 500, "InternalError", text)
        if fault == "throttle":
            if azure:
                return provider_error(request, 503, "ServerBusy", "The server is busy.")
            if self.rng.random() < 0.3:
                return provider_error(request, 429, "TooManyRequests", "Please reduce your request rate.")
            return provider_error(request, 503, "SlowDown", "Please reduce your request rate.")
        if fault == "wrong_offset":
            if azure:
                text = "The append position condition specified was not met."
                return provider_error(request, 412, "AppendPositionConditionNotMet", text)
            text = "The write offset value that you specified does not match the current object size."
            return provider_error(request, 400, "InvalidWriteOffset", text)
        if azure:
            text = "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly."
            return provider_error(request, 403, "AuthenticationFailed", text)
        # Amazon answers 400, others 403.
        return provider_error(request, self.rng.choice([400, 403]), "ExpiredToken", "The provided token has expired.")

    def timed_out(self, request: Message) -> bytes:
        """The answer of a provider who gave up waiting for itself."""
        if is_azure(request):
            text = "The operation could not be completed within the permitted time."
            return provider_error(request, 500, "OperationTimedOut", text)
        text = "Your socket connection to the server was not read from or written to within the timeout period."
        return provider_error(request, 400, "RequestTimeout", text)

    def deliver_later(self, request: Message, after_s: float) -> None:
        async def later():
            await asyncio.sleep(after_s)
            answer = await self.deliver(request, Upstream(self.upstream), last=True)
            self.counts["delivered_late"] += 1
            if answer is not None and answer.status < 300:
                self.counts["delivered_late_and_done"] += 1

        task = asyncio.get_running_loop().create_task(later())
        self.late.add(task)
        task.add_done_callback(self.late.discard)

    async def truncated(self, writer: asyncio.StreamWriter, answer: Message) -> None:
        body = plain_body(answer)
        short = body[: self.rng.randrange(len(body))]
        honest = self.rng.random() < 0.5
        self.counts["truncate_with_true_length" if honest else "truncate_with_agreeing_length"] += 1
        lines = [
            line
            for line in answer.head[:-4].split(b"\r\n")
            if line.partition(b":")[0].strip().lower() not in (b"content-length", b"transfer-encoding", b"connection")
        ]
        lines += [b"Content-Length: %d" % (len(body) if honest else len(short)), b"Connection: close"]
        await self.say(writer, b"\r\n".join(lines) + b"\r\n\r\n" + short)

    # -- wires ----------------------------------------------------------------------------------------------------
    async def deliver(self, request: Message, upstream: "Upstream", last: bool = False) -> Message | None:
        """Forwards a request; its answer, or `None` if the store hung up (nobody knows then what it did)."""
        self.counts["forwarded"] += 1
        answer = await upstream.ask(request)
        if last:
            upstream.close()
        return answer

    @staticmethod
    async def say(writer: asyncio.StreamWriter, answer: bytes) -> bool:
        writer.write(answer)
        await writer.drain()
        return True

    # -- control --------------------------------------------------------------------------------------------------
    async def serve_control(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            try:
                answer = await self.control(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()

    async def control(self, order: dict) -> dict:
        what = order["do"]
        if what == "rates":
            unknown = set(order["rates"]) - set(FAULTS) - {"slow"}
            if unknown:
                raise ValueError(f"no such fault: {sorted(unknown)}")
            self.rates = order["rates"]
            self.only = re.compile(order["only"]) if order["only"] else None
            if not self.rates.get("expired"):
                self.expired_until = 0.0
        elif what == "times":
            self.times |= order["times"]
        elif what == "arm":
            if order["fault"] not in FAULTS:
                raise ValueError(f"no such fault: {order['fault']}")
            self.armed.append({key: order[key] for key in ("fault", "match", "times", "skip")})
        elif what == "disarm":
            self.armed.clear()
        elif what == "expire":
            self.expired_until = asyncio.get_running_loop().time() + order["seconds"]
        elif what == "cut":
            self.cut, self.cuts = order["how"], self.cuts + 1
            self.mended.clear()
            if self.cut == "reset":
                for client in list(self.clients):
                    reset(client)
        elif what == "mend":
            self.cut, self.drop_held = None, not order["deliver"]
            self.mended.set()
        elif what == "settle":
            # What is to be delivered late has been.
            while self.late:
                await asyncio.wait(list(self.late))
        elif what == "upstream":
            self.upstream = (order["host"], order["port"])
        elif what != "counts":
            raise ValueError(f"no such order: {what}")
        return {"counts": dict(self.counts), "recent": list(self.recent), "armed": len(self.armed)}


def applies(fault: str, request: Message) -> bool:
    """Whether the fault means anything for this request."""
    if fault == "wrong_offset":
        return is_append(request)
    return fault != "truncate" or request.method == "GET"


class Upstream:
    """A connection to the store, made when it is needed, kept while it is good."""

    def __init__(self, address: tuple[str, int]):
        self.address = address
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: Message) -> Message | None:
        """Sends a request once, never twice; its answer."""
        if self.streams and (self.streams[0].at_eof() or self.streams[1].is_closing()):
            self.close()
        try:
            if not self.streams:
                self.streams = await asyncio.open_connection(*self.address, limit=HEAD_BYTES_MAX)
            reader, writer = self.streams
            writer.write(request.head + request.body)
            await writer.drain()
            answer = await read_message(reader, answer_to=request.method)
        except (OSError, Gone):
            self.close()
            return None
        if answer.closes or request.closes:
            self.close()
        return answer

    def close(self) -> None:
        if self.streams:
            self.streams[1].close()
            self.streams = None


def reset(writer: asyncio.StreamWriter) -> None:
    """Ends a connection so that its client sees a reset, not an end."""
    sock = writer.get_extra_info("socket")
    if sock is not None and not writer.is_closing():
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()


async def main() -> None:
    parser = argparse.ArgumentParser(description="A proxy that injures requests to an object store.")
    parser.add_argument("--upstream", required=True, metavar="HOST:PORT")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    host, _, port = given.upstream.rpartition(":")
    proxy = Proxy((host, int(port)), given.seed)
    data = await asyncio.start_server(proxy.serve_client, "127.0.0.1", 0, limit=HEAD_BYTES_MAX)
    control = await asyncio.start_server(proxy.serve_control, "127.0.0.1", 0)
    ports = [server.sockets[0].getsockname()[1] for server in (data, control)]
    print(*ports, flush=True)
    # Whoever started this process is gone when its pipe is: nobody needs the proxy then.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)


class FaultProxy:
    """The proxy's process, as tests see it. A context manager."""

    def __init__(self, upstream: str, seed: int = 0):
        command = [sys.executable, __file__, "--upstream", upstream, "--seed", str(seed)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the fault proxy did not start: {self.process.wait()}")
        self.port, control = map(int, line.split())
        self.control = socket.create_connection(("127.0.0.1", control))
        self.lines = self.control.makefile("rw")

    @property
    def address(self) -> str:
        """host:port for the server's endpoint setting."""
        return f"127.0.0.1:{self.port}"

    def _order(self, what: str, **more) -> dict:
        self.lines.write(json.dumps({"do": what, **more}) + "\n")
        self.lines.flush()
        answer = json.loads(self.lines.readline())
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer

    def rates(self, only: str = "", **rates: float) -> None:
        """From now on these shares of the requests suffer these faults, and no others. `only` limits it to requests whose
        "KIND METHOD TARGET" it matches."""
        self._order("rates", rates=rates, only=only)

    def times(self, **times: float) -> None:
        """Ends of ranges: `late_s`, `slow_s`, `expired_s`."""
        self._order("times", times=times)

    def arm(self, fault: str, match: str = "", times: int = 1, skip: int = 0) -> None:
        """The next requests whose "KIND METHOD TARGET" matches suffer this."""
        self._order("arm", fault=fault, match=match, times=times, skip=skip)

    def disarm(self) -> None:
        """What was armed and has not happened will not."""
        self._order("disarm")

    def armed(self) -> int:
        """How many armed faults are still to come."""
        return self._order("counts")["armed"]

    def expire(self, seconds: float) -> None:
        """All credentials have expired, for so long."""
        self._order("expire", seconds=seconds)

    def cut(self, how: str = "hold") -> None:
        """The network breaks: `hold` (silence) or `reset`."""
        self._order("cut", how=how)

    def mend(self, deliver: bool = False) -> None:
        """The network is back; what was held is delivered now, or never."""
        self._order("mend", deliver=deliver)

    def settle(self) -> None:
        """Waits until all that is to be delivered late has been."""
        self._order("settle")

    def upstream(self, host: str, port: int) -> None:
        """The store has moved."""
        self._order("upstream", host=host, port=port)

    def counts(self) -> Counter[str]:
        """What was asked, forwarded and injured so far."""
        return Counter(self._order("counts")["counts"])

    def recent(self) -> list[str]:
        """The last faults, for messages of failed tests."""
        return self._order("counts")["recent"]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.control.close()
        self.process.stdin.close()
        self.process.stdout.close()

    def __enter__(self) -> "FaultProxy":
        return self

    def __exit__(self, *_) -> None:
        self.close()


if __name__ == "__main__":
    asyncio.run(main())
