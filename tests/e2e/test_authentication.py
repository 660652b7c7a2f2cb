"""Who is let in, and how they prove who they are: passwords, rules, encryption, and what an attacker would try."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import struct
import subprocess
from pathlib import Path

import psycopg
import pytest
from harness import TIMEOUT_S, wait_until
from rawwire import Wire, error, kinds, message, query, rows, startup, text
from test_operation import refused

pytestmark = pytest.mark.logstead_only

SCRAM_EVERYWHERE = '[[hba]]\naddress = "all"\nmethod = "scram-sha-256"\n'
SSL_REQUEST = struct.pack("!ii", 8, 80877103)


def settings(server, content: str) -> list[str]:
    """The arguments for a settings file with this content."""
    server.root.mkdir(parents=True, exist_ok=True)
    file = server.root / "settings.toml"
    file.write_text(content)
    return ["--config", str(file)]


def protected(server, content: str = SCRAM_EVERYWHERE, *arguments: str):
    """A server whose superuser has the password "geheim"."""
    return server.start([*settings(server, content), *arguments], env={"LOGSTEAD_PASSWORD": "geheim"})


def psql(server, user: str, password: str | None, *arguments: str, sslmode: str = "disable", **more: str):
    environment = {"PGUSER": user, "PGSSLMODE": sslmode, "PGPASSFILE": "/nonexistent", **more}
    if password is not None:
        environment["PGPASSWORD"] = password
    return server.run("psql", "-X", "-w", "-At", *arguments, check=False, env=environment)


def encrypted(certificate: Path, content: str = SCRAM_EVERYWHERE) -> str:
    return (
        f'ssl = true\nssl_cert_file = "{certificate}/server.crt"\nssl_key_file = "{certificate}/server.key"\n{content}'
    )


# -- passwords --------------------------------------------------------------------------------------------------------


def test_a_password_is_asked_for_and_has_to_be_right(private_server):
    server = protected(private_server)
    assert psql(server, "postgres", "geheim", "-c", "SELECT current_user").stdout.strip() == "postgres"
    for user, password in [("postgres", "falsch"), ("nobody", "geheim"), ("postgres", "Geheim")]:
        result = psql(server, user, password, "-c", "SELECT 1")
        assert result.returncode != 0
        assert f'FATAL:  password authentication failed for user "{user}"' in result.stderr
    assert "no password supplied" in psql(server, "postgres", None, "-c", "SELECT 1").stderr
    said = server.output_text()
    assert "there is no such role" in said and "it is another one" in said
    assert "geheim" not in said and "falsch" not in said and "SCRAM-SHA-256$" not in said
    # psycopg, and a role with a password that is not ASCII.
    with psycopg.connect(host=server.host, port=server.port, user="postgres", password="geheim") as connection:
        connection.execute("CREATE ROLE app LOGIN PASSWORD 'schlüssel\u00a0x'")
        connection.execute("CREATE ROLE nologin PASSWORD 'x'")
        connection.execute("CREATE ROLE without LOGIN")
        connection.execute("CREATE ROLE late LOGIN PASSWORD 'x' VALID UNTIL '2001-01-01'")
        connection.execute("CREATE ROLE single LOGIN PASSWORD 'x' CONNECTION LIMIT 1")
        connection.execute("ALTER ROLE app SET work_mem = '3MB'")
    assert psql(server, "app", "schlüssel x", "-d", "postgres", "-c", "SHOW work_mem").stdout.strip() == "3MB"
    assert 'role "nologin" is not permitted to log in' in psql(server, "nologin", "x", "-d", "postgres").stderr
    for user in ["without", "late"]:
        assert f'password authentication failed for user "{user}"' in psql(server, user, "x", "-d", "postgres").stderr
    options = {"host": server.host, "port": server.port, "user": "single", "password": "x", "dbname": "postgres"}
    with psycopg.connect(**options):
        with pytest.raises(psycopg.OperationalError, match='too many connections for role "single"'):
            psycopg.connect(**options)

    def connects() -> bool:
        try:
            psycopg.connect(**options).close()
        except psycopg.OperationalError as error:
            assert 'too many connections for role "single"' in str(error)
            return False
        return True

    # The session that has ended counts until the server has seen its end.
    wait_until(connects, what="the place of the session that has ended")
    # The first password is for the first start.
    server.stop()
    server.start(settings(server, SCRAM_EVERYWHERE), env={"LOGSTEAD_PASSWORD": "another"})
    assert psql(server, "postgres", "another", "-c", "SELECT 1").returncode != 0
    assert psql(server, "app", "schlüssel x", "-d", "postgres", "-c", "SELECT 1").stdout.strip() == "1"


def test_roles_survive_a_crash(private_server):
    server = private_server.start()
    server.execute(
        "CREATE ROLE a LOGIN CREATEDB", "CREATE ROLE b", "GRANT b TO a WITH ADMIN OPTION", "ALTER ROLE b RENAME TO c",
        "CREATE ROLE gone", "DROP ROLE gone",
    )  # fmt: skip
    server.restart_after_kill()
    assert server.execute(
        "SELECT r.rolname, m.rolname, admin_option FROM pg_auth_members JOIN pg_roles r ON r.oid = roleid"
        " JOIN pg_roles m ON m.oid = member WHERE r.rolname !~ '^pg_'"
    ) == [("c", "a", True)]
    assert server.execute("SELECT count(*) FROM pg_roles WHERE rolname IN ('a', 'b', 'c', 'gone')") == [(2,)]
    # They are those of all databases.
    with server.connect("logstead", autocommit=True) as connection:
        connection.execute("DROP ROLE a")
    assert server.execute("SELECT count(*) FROM pg_auth_members WHERE roleid::regrole::text !~ '^pg_'") == [(0,)]


def test_psql_lists_roles(private_server):
    server = private_server.start()
    server.execute("CREATE ROLE app LOGIN CREATEDB", "CREATE ROLE team NOLOGIN", "GRANT team TO app")
    listed = server.psql("-c", r"\du")
    assert "app" in listed and "Create DB" in listed and "{team}" in listed and "Cannot login" in listed


def test_two_make_a_circle_of_memberships_at_once(private_server):
    server = private_server.start()
    server.execute("CREATE ROLE a", "CREATE ROLE b")
    with server.connect() as one, server.connect() as two:
        one.execute("GRANT a TO b")
        two.execute("SET statement_timeout = '500ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            two.execute("GRANT b TO a")
        two.rollback()
        one.commit()
        with pytest.raises(psycopg.Error, match="is a member of role"):
            two.execute("GRANT b TO a")


def test_plans_are_not_shared_with_who_may_not_run_them(private_server):
    server = private_server.start()
    server.execute("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a')", "CREATE ROLE app LOGIN")
    with server.connect(autocommit=True) as boss, psycopg.connect(
        host=server.host, port=server.port, user="app", dbname="postgres", autocommit=True
    ) as app:
        for prepare in [False, True]:
            for _ in range(4):
                assert boss.execute("SELECT v FROM t WHERE id = 1", prepare=prepare).fetchall() == [("a",)]
                assert boss.execute("SELECT v FROM t WHERE id = %s", [1], prepare=prepare).fetchall() == [("a",)]
                assert boss.execute("SELECT current_user").fetchone() == ("postgres",)
                assert app.execute("SELECT current_user").fetchone() == ("app",)
                for statement, values in [("SELECT v FROM t WHERE id = 1", None), ("SELECT v FROM t WHERE id = %s", [1])]:
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        app.execute(statement, values, prepare=prepare)
        boss.execute("GRANT pg_read_all_data TO app")
        for _ in range(3):
            assert app.execute("SELECT v FROM t WHERE id = 1").fetchall() == [("a",)]
        boss.execute("REVOKE pg_read_all_data FROM app")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            app.execute("SELECT v FROM t WHERE id = 1")
        # A session that was a superuser's is none when that is taken from it.
        boss.execute("ALTER ROLE app SUPERUSER")
        assert app.execute("SELECT v FROM t WHERE id = 1").fetchall() == [("a",)]
        boss.execute("ALTER ROLE app NOSUPERUSER")
        for statement in ["SELECT v FROM t WHERE id = 1", "DROP TABLE t", "CREATE ROLE mine", "TRUNCATE t", "CHECKPOINT",
                          "PREPARE p AS SELECT v FROM t; EXECUTE p", "EXPLAIN ANALYZE SELECT * FROM t",
                          "SELECT * FROM pg_authid", "LOCK TABLE t", "REINDEX TABLE t", "COMMENT ON TABLE t IS 'x'",
                          "GRANT SELECT ON t TO app", "CREATE TABLE u AS SELECT * FROM t",
                          "SELECT logstead_create_restore_point('mine')"]:  # fmt: skip
            with pytest.raises(psycopg.Error) as caught:
                app.execute(f"BEGIN; {statement}; COMMIT" if "LOCK" in statement else statement)
            assert caught.value.sqlstate == "42501", statement
            app.execute("ROLLBACK")


def test_a_grant_that_would_not_be_heeded_is_refused(private_server):
    server = private_server.start()
    server.execute("CREATE TABLE t (id int)", "CREATE ROLE app")
    for statement in ["GRANT EXECUTE ON FUNCTION now() TO app", "REVOKE EXECUTE ON FUNCTION now() FROM PUBLIC",
                      "REVOKE USAGE ON LANGUAGE sql FROM PUBLIC", "REVOKE USAGE ON TYPE int4 FROM PUBLIC",
                      "GRANT SELECT ON pg_class TO app", "GRANT CREATE ON TABLESPACE pg_default TO app"]:  # fmt: skip
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            server.execute(statement)
    with pytest.raises(psycopg.errors.UndefinedObject):
        server.execute("GRANT SELECT ON t TO nobody")


# -- before anybody is known ------------------------------------------------------------------------------------------


def sasl(server) -> Wire:
    """A connection that has been asked for a password."""
    wire = Wire(server, start=False).send(startup(user="postgres", database="postgres"))
    asked = wire.receive()
    assert asked.kind == "R" and asked.payload == struct.pack("!i", 10) + b"SCRAM-SHA-256\0\0"
    return wire


@pytest.mark.parametrize(
    "sent",
    [
        query("SELECT 1"),
        query("DROP TABLE t"),
        message("P", text("") + text("SELECT 1") + b"\0\0"),
        message("X"),
        message("p", b"geheim\0"),
        message("p", text("PLAIN") + struct.pack("!i", 3) + b"abc"),
        message("p", text("SCRAM-SHA-256") + struct.pack("!i", 99) + b"abc"),
        message("p", text("SCRAM-SHA-256") + struct.pack("!i", -1)),
        message("p", text("SCRAM-SHA-256-PLUS") + struct.pack("!i", 18) + b"p=tls-unique,,n=,r"),
        message("p", b""),
        b"p" + struct.pack("!i", 2),
        b"p" + struct.pack("!i", 1 << 30),
        b"Q" + struct.pack("!i", 1 << 29) + b"x" * 100,
        b"\xff" * 32,
    ],
    ids=lambda sent: repr(sent[:12]),
)
def test_nothing_but_the_exchange_is_heard(private_server, sent):
    server = protected(private_server)
    with sasl(server) as wire:
        told = wire.send(sent).closed()
        assert kinds(told) == "E", told
        assert error(told)["S"] == "FATAL" and error(told)["C"] in ("08P01", "28000", "28P01", "0A000")
    assert psql(server, "postgres", "geheim", "-c", "SELECT 1").stdout.strip() == "1"


def test_who_is_not_there_is_asked_as_others_are(private_server):
    """Twice, and after a restart, with the same salt."""
    server = protected(private_server)

    def challenge(user: str) -> list[bytes]:
        with Wire(server, start=False) as wire:
            wire.send(startup(user=user, database="postgres")).receive()
            first = b"n,,n=,r=abc"
            wire.send(message("p", text("SCRAM-SHA-256") + struct.pack("!i", len(first)) + first))
            return wire.receive().payload[4:].split(b",")[1:]

    before = {user: challenge(user) for user in ["postgres", "nobody", "somebody"]}
    assert before["nobody"] != before["somebody"]
    assert {len(salt) for salt, _ in before.values()} == {26} and {rounds for _, rounds in before.values()} == {b"i=4096"}
    server.restart_after_kill(arguments=settings(server, SCRAM_EVERYWHERE))
    assert {user: challenge(user) for user in before} == before


def test_who_takes_too_long_is_cut_off(private_server):
    server = protected(private_server, SCRAM_EVERYWHERE, "--authentication-timeout", "1s")
    with sasl(server) as wire:
        assert wire.closed() == []


# -- rules ------------------------------------------------------------------------------------------------------------


def test_the_first_rule_that_fits_counts(private_server):
    rules = """
[[hba]]
user = "evil"
address = "all"
method = "reject"
[[hba]]
database = "logstead"
user = ["+team", "boss"]
address = "127.0.0.1/32"
method = "trust"
[[hba]]
user = "postgres"
address = "127.0.0.0/8"
method = "trust"
"""
    server = private_server.start(settings(private_server, rules))
    server.execute("CREATE ROLE evil LOGIN", "CREATE ROLE team", "CREATE ROLE app LOGIN IN ROLE team", "CREATE ROLE boss LOGIN")
    with pytest.raises(psycopg.OperationalError, match='pg_hba.conf rejects connection for host "127.0.0.1", user "evil"'):
        psycopg.connect(host=server.host, port=server.port, user="evil", dbname="logstead")
    for user in ["app", "boss"]:
        psycopg.connect(host=server.host, port=server.port, user=user, dbname="logstead").close()
        with pytest.raises(psycopg.OperationalError, match=f'no pg_hba.conf entry for host "127.0.0.1", user "{user}", database "postgres", no encryption'):
            psycopg.connect(host=server.host, port=server.port, user=user, dbname="postgres")


def test_by_itself_a_server_trusts_its_machine_until_there_is_a_password(private_server):
    server = private_server.start()
    assert psql(server, "postgres", None, "-c", "SELECT 1").stdout.strip() == "1"
    server.execute("ALTER ROLE postgres PASSWORD 'geheim'")
    assert psql(server, "postgres", None, "-c", "SELECT 1").returncode != 0
    assert psql(server, "postgres", "geheim", "-c", "SELECT 1").stdout.strip() == "1"


def test_listening_to_others_needs_a_password_and_no_trust(private_server):
    server = private_server
    said = refused(server, "--listen", "0.0.0.0:0")
    assert "LOGSTEAD_PASSWORD" in said
    said = refused(server, "--listen", "0.0.0.0:0", *settings(server, '[[hba]]\naddress = "all"\nmethod = "trust"\n'))
    assert "trusts others" in said
    server.start(["--listen", "0.0.0.0:0"], env={"LOGSTEAD_PASSWORD": "geheim"})
    assert psql(server, "postgres", "geheim", "-c", "SELECT 1").stdout.strip() == "1"
    assert "LOGSTEAD_PASSWORD" not in psql(server, "postgres", "geheim", "-c", "SHOW ALL").stdout


# -- encryption -------------------------------------------------------------------------------------------------------


def test_connections_are_encrypted_and_the_server_proves_who_it_is(private_server, certificate):
    server = protected(private_server, encrypted(certificate))
    root = {"PGSSLROOTCERT": f"{certificate}/ca.crt", "PGHOST": "localhost"}
    for mode in ["require", "verify-full"]:
        shown = psql(server, "postgres", "geheim", "-c", r"\conninfo", "-c", "SELECT 1", sslmode=mode, **root).stdout
        assert "SSL connection" in shown and shown.strip().endswith("1")
    # With channel binding, which both sides then prove.
    bound = psql(server, "postgres", "geheim", "-c", "SELECT 1", sslmode="require", PGCHANNELBINDING="require")
    assert bound.stdout.strip() == "1", bound.stderr
    # Large answers and large questions come through.
    with psycopg.connect(
        host="localhost", port=server.port, user="postgres", password="geheim", sslmode="verify-full",
        sslrootcert=f"{certificate}/ca.crt",
    ) as connection:  # fmt: skip
        assert connection.execute("SELECT length(%s)", ["x" * 300_000]).fetchone() == (300_000,)
        assert len(connection.execute("SELECT i, repeat('y', 100) FROM generate_series(1, 20000) i").fetchall()) == 20_000
        connection.cancel()
    # Not encrypted is still allowed where no rule says otherwise.
    assert psql(server, "postgres", "geheim", "-c", "SELECT 1").stdout.strip() == "1"


def test_rules_for_encrypted_connections(private_server, certificate):
    rules = '[[hba]]\ntype = "hostssl"\naddress = "all"\nmethod = "scram-sha-256"\n'
    server = protected(private_server, encrypted(certificate, rules))
    assert psql(server, "postgres", "geheim", "-c", "SELECT 1", sslmode="require").stdout.strip() == "1"
    assert "no pg_hba.conf entry" in psql(server, "postgres", "geheim", "-c", "SELECT 1").stderr


def test_what_came_before_the_handshake_is_no_part_of_what_is_encrypted(private_server, certificate):
    """CVE-2021-23214: who sits between client and server puts a query behind the request for encryption."""
    server = protected(private_server, encrypted(certificate, '[[hba]]\naddress = "127.0.0.1"\nmethod = "trust"\n'))
    for behind in [startup(user="postgres"), query("DROP TABLE t"), b"\0"]:
        with Wire(server, start=False) as wire:
            told = wire.send(SSL_REQUEST + behind).closed()
            assert kinds(told) == "E" and "unencrypted data after SSL request" in error(told)["M"]
    # A second request, encrypted or not, is none.
    with socket.create_connection((server.host, server.port), timeout=TIMEOUT_S) as plain:
        plain.sendall(SSL_REQUEST)
        assert plain.recv(1) == b"S"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(plain) as stream:
            stream.sendall(SSL_REQUEST)
            assert stream.recv(10) == b""
    # What is no handshake ends the connection, and the server goes on.
    with Wire(server, start=False) as wire:
        wire.send(SSL_REQUEST)
        assert wire.exactly(1) == b"S"
        wire.send(startup(user="postgres", database="postgres"))
        wire.socket.settimeout(TIMEOUT_S)
        while wire.socket.recv(1000):
            pass
    assert psql(server, "postgres", None, "-c", "SELECT 1", sslmode="require").stdout.strip() == "1"


def test_the_key_is_nobody_elses_and_fits(private_server, certificate):
    server = private_server
    (certificate / "server.key").chmod(0o644)
    assert "may be read by others" in refused(server, *settings(server, encrypted(certificate)))
    (certificate / "server.key").write_bytes((certificate / "other.key").read_bytes())
    (certificate / "server.key").chmod(0o600)
    assert "ssl_key_file" in refused(server, *settings(server, encrypted(certificate)))
    (certificate / "server.crt").write_text("nonsense")
    assert "ssl_cert_file" in refused(server, *settings(server, encrypted(certificate)))
    (certificate / "server.crt").unlink()
    assert "ssl_cert_file" in refused(server, *settings(server, encrypted(certificate)))


def test_a_certificate_is_read_again(private_server, certificate):
    server = protected(private_server, encrypted(certificate))

    def shown() -> str:
        with socket.create_connection((server.host, server.port), timeout=TIMEOUT_S) as plain:
            plain.sendall(SSL_REQUEST)
            assert plain.recv(1) == b"S"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with context.wrap_socket(plain) as stream:
                return ssl.DER_cert_to_PEM_cert(stream.getpeercert(binary_form=True)).replace("\n", "")

    old, new = [(certificate / f"{name}.crt").read_text().replace("\n", "") for name in ["server", "other"]]
    assert shown() == old
    # One that does not fit its key is not taken.
    for suffix in ["crt", "key"]:
        (certificate / f"server.{suffix}").write_bytes((certificate / f"other.{suffix}").read_bytes())
        os.kill(server.process.pid, signal.SIGHUP)
        if suffix == "crt":
            wait_until(lambda: "stay what they were" in server.output_text(), what="the refusal")
            assert shown() == old
    wait_until(lambda: shown() == new, what="the new certificate")
