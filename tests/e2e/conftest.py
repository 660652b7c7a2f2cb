"""Fixtures: a shared server for most tests, a private one for those that stop, kill or starve it."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fleet import ServerOnFleet  # noqa: E402
from harness import KINDS as LOCAL  # noqa: E402
from harness import Server  # noqa: E402

KINDS = {**LOCAL, "fleet": ServerOnFleet}


def pytest_addoption(parser):
    parser.addoption("--server", default="logstead", choices=sorted(KINDS), help="what to run the tests against")
    parser.addoption("--fast", action="store_true", help="leave out what takes more than a few seconds")
    parser.addoption("--long", action="store_true", help="also what takes minutes, and faults on every object store")
    parser.addoption("--seed", type=int, default=None, help="seed of the random tests (printed by each)")
    parser.addoption("--crash-rounds", type=int, default=None, help="rounds of the crash test: 60, 200 with --long")
    parser.addoption("--fault-rounds", type=int, default=12, help="kills in the long test of transfers through faults, per store")


def param(item, name):
    """What a test is parametrized with."""
    callspec = getattr(item, "callspec", None)
    return callspec and callspec.params.get(name)


def pytest_collection_modifyitems(config, items):
    for item in items:
        if config.getoption("--fast") and item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="--fast"))
        if not config.getoption("--long"):
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="takes minutes: --long"))
            elif item.get_closest_marker("two_stores") and param(item, "store") in ("versitygw", "moto"):
                item.add_marker(pytest.mark.skip(reason="on two kinds of stores; the others with --long"))
            elif item.get_closest_marker("one_store") and param(item, "store") == "azurite":
                item.add_marker(pytest.mark.skip(reason="on the development bucket; the others with --long"))
        if config.getoption("--server") == "postgres" and item.get_closest_marker("logstead_only"):
            item.add_marker(pytest.mark.skip(reason="about Logstead only"))


@pytest.fixture(scope="session")
def server_kind(request):
    """The class of the server under test."""
    return KINDS[request.config.getoption("--server")]


@pytest.fixture(scope="session")
def is_postgres(server_kind) -> bool:
    """Whether the tests run against PostgreSQL itself, to check the tests."""
    return server_kind.name == "postgres"


@pytest.fixture(scope="session")
def _shared(server_kind, tmp_path_factory):
    server = server_kind(tmp_path_factory.mktemp("shared"))
    server.start()
    yield server
    if server.running():
        server.stop()


@pytest.fixture
def server(_shared) -> Server:
    """A running server shared by many tests; one that a test brought down is started again, and that test fails."""
    if not _shared.running():
        _shared.start()
    yield _shared
    if not _shared.running():
        pytest.fail(f"the server ended during this test\n{_shared.output_text()[-4000:]}")
    if "panicked at" in _shared.output_text():
        said = _shared.output_text()
        _shared.output.clear()
        pytest.fail(f"the server panicked during this test\n{said[-4000:]}")


@pytest.fixture
def private_server(server_kind, tmp_path) -> Server:
    """A server of the test's own, not yet started."""
    server = server_kind(tmp_path / "server")
    yield server
    server.kill()


@pytest.fixture
def seed(request) -> int:
    """One number that reproduces a random test."""
    given = request.config.getoption("--seed")
    value = given if given is not None else random.SystemRandom().randrange(1 << 32)
    print(f"seed {value}: repeat with --seed {value}")
    return value


@pytest.fixture
def certificate(tmp_path) -> Path:
    """A directory with an authority (ca.crt), and a certificate of it for localhost (server.crt, server.key)."""

    def openssl(*arguments: str):
        subprocess.run(["openssl", *arguments], cwd=tmp_path, check=True, capture_output=True)

    def signed(name: str):
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", "request", "-subj", "/CN=localhost")
        (tmp_path / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        openssl("x509", "-req", "-in", "request", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                "-sha384", "-extfile", "names", "-out", f"{name}.crt")  # fmt: skip
        (tmp_path / f"{name}.key").chmod(0o600)

    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.crt", "-days", "2",
            "-subj", "/CN=test")  # fmt: skip
    signed("server")
    signed("other")
    return tmp_path
