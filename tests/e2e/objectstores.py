"""Real object stores on loopback, each with a fresh bucket: what the server keeps its log in, in tests.

    with start("azurite", tmp_path) as store:
        server.start(["--home", store.url("log")], env=store.environment)

| name | server | URLs of homes |
|---|---|---|
| dev-bucket | `logstead dev-bucket`, S3 Express's wire format | s3express:// |
| dev-bucket-s3 | the same, a general bucket | s3:// |
| azurite | Azurite, Azure's append blobs | azure:// |
| versitygw | versitygw, S3 on a directory | s3:// |
| moto | moto, S3 in memory | s3:// |

`./test` installs the programs and names them in E2E_AZURITE, E2E_VERSITYGW and E2E_MOTO, and sets E2E_OBJECT_STORES, which makes a
missing one a failure. Without it a missing one skips its tests, and says why.

As a program (`objectstores.py NAME DIRECTORY`) it starts a store for tests in other languages: prints the URL of its bucket, the
environment that belongs to it, and an empty line, and kills the store when its standard input ends.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import hashlib
import hmac
import http.client
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from harness import TIMEOUT_S, LogsteadServer, ServerError, free_port, wait_until

# Azurite's well-known account, and keys of our own.
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
ACCESS_KEY, SECRET_KEY, REGION = "TESTACCESSKEY", "test-secret-key", "us-east-1"

# A busy machine takes half a minute to load Azurite alone.
START_TIMEOUT_S = 180.0

DIRECTORY_BUCKET = "logstead--test-az1--x-s3"
GENERAL_BUCKET = "logstead"

# Servers that can really append, and those that cannot.
APPENDABLE = ("dev-bucket", "azurite")
PLAIN = ("dev-bucket-s3", "versitygw", "moto")
ALL = APPENDABLE + PLAIN


@dataclass
class ObjectStore:
    """A running store with its bucket."""

    name: str
    scheme: str
    bucket: str
    host: str
    port: int
    process: subprocess.Popen
    # What `logstead serve` needs to reach it, without the endpoint.
    credentials: dict[str, str]
    output: list[str] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        """Its own endpoint; a proxy in between has another (see `environment_at`)."""
        return f"http://{self.host}:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of `logstead serve --home URL`."""
        return self.environment_at(self.host, self.port)

    def environment_at(self, host: str, port: int) -> dict[str, str]:
        """The same when it is reached at another address."""
        if self.scheme == "azure":
            endpoint = {"AZURE_STORAGE_ENDPOINT": f"http://{host}:{port}/{AZURE_ACCOUNT}"}
        else:
            endpoint = {"AWS_ENDPOINT_URL": f"http://{host}:{port}"}
        return {**self.credentials, **endpoint}

    def url(self, prefix: str, scheme: str | None = None) -> str:
        """The URL of a home in its bucket."""
        return f"{scheme or self.scheme}://{self.bucket}/{prefix}"

    def running(self) -> bool:
        """Whether the process is alive."""
        return self.process.poll() is None

    def request(self, method: str, path: str = "", query: str = "", body: bytes = b"", headers=None):
        """A signed request to the bucket (`path` below it); status and body."""
        if self.scheme == "azure":
            return _azure_request(self, method, path, query, body, headers or {})
        return _s3_request(self, method, path, query, body, headers or {})

    def keys(self, prefix: str = "") -> list[str]:
        """The names of all objects that begin with `prefix` (which ends with "/" or is empty), sorted."""
        names, more = [], ""
        while True:
            if self.scheme == "azure":
                query = f"comp=list&prefix={_quoted(prefix)}&restype=container" + (f"&marker={_quoted(more)}" if more else "")
                query = "&".join(sorted(query.split("&")))
                tag, next_tag = "Name", "NextMarker"
            else:
                query = f"list-type=2&prefix={_quoted(prefix)}"
                query = (f"continuation-token={_quoted(more)}&" if more else "") + query
                tag, next_tag = "Key", "NextContinuationToken"
            status, answer = self.request("GET", query=query)
            assert status == 200, (status, answer)
            text = answer.decode()
            names += re.findall(f"<{tag}>([^<]*)</{tag}>", text)
            found = re.search(f"<{next_tag}>([^<]+)</{next_tag}>", text)
            if not found:
                return sorted(names)
            more = found.group(1)

    def get(self, key: str) -> bytes:
        """An object's bytes."""
        status, body = self.request("GET", key)
        assert status == 200, (status, body)
        return body

    def put(self, key: str, body: bytes) -> None:
        """Writes an object, whatever was there."""
        headers = {"x-ms-blob-type": "BlockBlob"} if self.scheme == "azure" else {}
        status, answer = self.request("PUT", key, body=body, headers=headers)
        assert status in (200, 201), (status, answer)

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait(TIMEOUT_S)


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def _send(store: ObjectStore, method: str, path: str, query: str, body: bytes, headers: dict) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(store.host, store.port, timeout=TIMEOUT_S)
    try:
        connection.request(method, path + (f"?{query}" if query else ""), body=body, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _s3_request(store: ObjectStore, method: str, path: str, query: str, body: bytes, headers: dict) -> tuple[int, bytes]:
    """Signature version 4."""
    path = f"/{store.bucket}" + (f"/{urllib.parse.quote(path)}" if path else "")
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(body).hexdigest()
    headers = {**headers, "host": f"{store.host}:{store.port}", "x-amz-content-sha256": digest, "x-amz-date": now}
    names = sorted(headers)
    canonical = "\n".join(
        [method, path, query, *(f"{name}:{headers[name]}" for name in names), "", ";".join(names), digest]
    )
    scope = f"{now[:8]}/{REGION}/s3/aws4_request"
    to_sign = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{SECRET_KEY}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/{scope}, SignedHeaders={';'.join(names)}, Signature={signature}"
    )
    return _send(store, method, path, query, body, headers)


def _azure_request(store: ObjectStore, method: str, path: str, query: str, body: bytes, headers: dict) -> tuple[int, bytes]:
    """Shared Key."""
    path = f"/{AZURE_ACCOUNT}/{store.bucket}" + (f"/{urllib.parse.quote(path)}" if path else "")
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT")
    headers = {**headers, "x-ms-date": now, "x-ms-version": "2023-11-03"}
    length = str(len(body)) if body else ""
    own = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers) if name.startswith("x-ms-"))
    resource = f"/{AZURE_ACCOUNT}{path}"
    for pair in sorted(filter(None, query.split("&"))):
        name, _, value = pair.partition("=")
        resource += f"\n{name}:{urllib.parse.unquote(value)}"
    # Everything but Content-Length is left out of the eleven standard headers.
    to_sign = f"{method}\n\n\n{length}\n\n\n\n\n\n\n\n\n{own}{resource}"
    signature = base64.b64encode(hmac.digest(base64.b64decode(AZURE_KEY), to_sign.encode(), "sha256")).decode()
    headers["authorization"] = f"SharedKey {AZURE_ACCOUNT}:{signature}"
    return _send(store, method, path, query, body, headers)


def program(variable: str) -> str:
    """The program of a store; skips, or fails inside ./test, if it is not there."""
    path = os.environ.get(variable)
    if path and shutil.which(path):
        return path
    reason = f"{variable} names no program" if path else f"{variable} is not set: ./test installs this store"
    if os.environ.get("E2E_OBJECT_STORES"):
        pytest.fail(reason)
    pytest.skip(reason)


def _spawn(store_name: str, command: list[str], env: dict[str, str], cwd: Path) -> tuple[subprocess.Popen, list[str]]:
    output: list[str] = []
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, **env},
        cwd=cwd,
        start_new_session=True,
    )

    def collect():
        for line in process.stdout:
            output.append(line)

    threading.Thread(target=collect, daemon=True, name=f"output of {store_name}").start()
    return process, output


def _answers(store: ObjectStore) -> bool:
    if not store.running():
        raise ServerError(f"{store.name} ended\n{''.join(store.output)}")
    try:
        _send(store, "GET", "/", "", b"", {})
        return True
    except (OSError, http.client.HTTPException):
        return False


def _make_bucket(store: ObjectStore) -> None:
    query = "restype=container" if store.scheme == "azure" else ""
    status, answer = store.request("PUT", query=query)
    # Somebody started it again on its directory.
    if status not in (200, 201, 409):
        raise ServerError(f"{store.name} makes no bucket: {status} {answer!r}")


def launch(name: str, root: Path, port: int = 0, arguments: tuple[str, ...] = ()) -> ObjectStore:
    """Starts a store that keeps its data below `root` (moto: in memory), waits until it answers, and makes its bucket.

    `arguments` go to dev-bucket (`--latency`, `--parts-max`).
    """
    root = Path(root)
    data = root / name
    data.mkdir(parents=True, exist_ok=True)
    aws = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "AWS_REGION": REGION}
    if name in ("dev-bucket", "dev-bucket-s3"):
        express = name == "dev-bucket"
        bucket = DIRECTORY_BUCKET if express else GENERAL_BUCKET
        command = [LogsteadServer.binary(), "dev-bucket", "--listen", f"127.0.0.1:{port}", "--dir", str(data)]
        command += ["--bucket", bucket, "--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY, *arguments]
        process, output = _spawn(name, command, {}, root)
        store = ObjectStore(name, "s3express" if express else "s3", bucket, "127.0.0.1", 0, process, aws, output)

        def listening():
            if not store.running():
                raise ServerError(f"dev-bucket ended\n{''.join(output)}")
            return re.search(r"listening on \S+:(\d+)", "".join(output))

        store.port = int(wait_until(listening, what="dev-bucket's address").group(1))
        return store
    # The others cannot choose a port themselves: one that was free may be taken meanwhile, so a few are tried.
    for attempt in range(5):
        chosen = port or free_port()
        try:
            return _launch_at(name, root, data, chosen, aws)
        except ServerError:
            if port or attempt == 4:
                raise
    raise AssertionError("not reached")


def _launch_at(name: str, root: Path, data: Path, port: int, aws: dict[str, str]) -> ObjectStore:
    env, credentials, scheme = {}, aws, "s3"
    if name == "azurite":
        command = [program("E2E_AZURITE"), "--silent", "--location", str(data), "--blobHost", "127.0.0.1"]
        command += ["--blobPort", str(port), "--skipApiVersionCheck", "--disableTelemetry"]
        scheme = "azure"
        credentials = {"AZURE_STORAGE_ACCOUNT": AZURE_ACCOUNT, "AZURE_STORAGE_KEY": AZURE_KEY}
    elif name == "versitygw":
        # ETags beside the files: not every file system has extended attributes to keep them in.
        files, beside = data / "files", data / "metadata"
        files.mkdir(exist_ok=True)
        beside.mkdir(exist_ok=True)
        command = [program("E2E_VERSITYGW"), "--port", f"127.0.0.1:{port}", "--region", REGION, "--quiet"]
        command += ["posix", "--sidecar", str(beside), str(files)]
        env = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
    elif name == "moto":
        command = [program("E2E_MOTO"), "-H", "127.0.0.1", "-p", str(port)]
    else:
        raise ValueError(f"there is no store {name}; there are {', '.join(ALL)}")
    process, output = _spawn(name, command, env, root)
    store = ObjectStore(name, scheme, GENERAL_BUCKET, "127.0.0.1", port, process, credentials, output)
    try:
        wait_until(lambda: _answers(store), START_TIMEOUT_S, what=f"{name} on port {port}")
        _make_bucket(store)
    except Exception:
        store.kill()
        raise
    return store


@contextlib.contextmanager
def start(name: str, root: Path, port: int = 0, arguments: tuple[str, ...] = ()):
    """The same for a `with` statement; the store is killed at its end."""
    store = launch(name, root, port, arguments)
    try:
        yield store
    finally:
        store.kill()


if __name__ == "__main__":
    with start(sys.argv[1], Path(sys.argv[2])) as started:
        print(started.url("").rstrip("/"))
        for variable, value in started.environment.items():
            print(f"{variable}={value}")
        print(flush=True)
        sys.stdin.read()
