"""Texts in the client's encoding: queries, names, parameters, results, COPY and errors, in both directions."""

from __future__ import annotations

import psycopg
import pytest
from harness import Server

# By PostgreSQL's name: Python's, and a text that is in it.
ENCODINGS = {
    "LATIN1": ("iso8859-1", "Grüße ÿ"),
    "LATIN2": ("iso8859-2", "łąka žluťoučký"),
    "LATIN9": ("iso8859-15", "5 € œuvre"),
    "WIN1250": ("cp1250", "Łódź €"),
    "WIN1251": ("cp1251", "Съешь ещё"),
    "WIN1252": ("cp1252", "“5 €” š"),
    "KOI8R": ("koi8-r", "Съешь ещё ┼"),
    "WIN866": ("cp866", "Съешь ░"),
    "ISO_8859_7": ("iso8859-7", "αβγ"),
    "EUC_JP": ("euc_jp", "日本語表ﾊﾝ"),
    # Their second bytes may be letters, a backslash among them.
    "SJIS": ("shift_jis", "表ソ能ﾊﾝ"),
    "BIG5": ("big5", "功許蓋"),
    "GBK": ("gbk", "汉字躙俓"),
    "GB18030": ("gb18030", "汉字ü𝄞"),
    "EUC_KR": ("euc_kr", "한국어"),
    "UHC": ("cp949", "한국어갂"),
    "EUC_CN": ("gb2312", "汉字"),
    "SQL_ASCII": ("utf-8", "Grüße 日本"),
    "UTF8": ("utf-8", "Grüße 日本"),
}


def raw(connection: psycopg.Connection, query: bytes) -> bytes:
    """The one value of a query, as its bytes came."""
    result = connection.pgconn.exec_(query)
    assert result.status in (psycopg.pq.ExecStatus.TUPLES_OK, psycopg.pq.ExecStatus.COMMAND_OK), result.error_message
    return result.get_value(0, 0) if result.ntuples else b""


@pytest.mark.parametrize("name", ENCODINGS)
def test_texts_go_both_ways(server: Server, name: str):
    python, text = ENCODINGS[name]
    encoded = text.encode(python)
    with server.connect(client_encoding=name, autocommit=True) as connection:
        assert raw(connection, b"SHOW client_encoding") == name.encode()
        assert connection.pgconn.parameter_status(b"client_encoding") == name.encode()
        # A literal, what the server makes of it, a column's name.
        assert raw(connection, b"SELECT '" + encoded + b"'") == encoded
        assert raw(connection, b"SELECT length('" + encoded + b"')") == str(len(text)).encode()
        assert raw(connection, b"SELECT convert_to('" + encoded + b"', 'UTF8')") == b"\\x" + text.encode().hex().encode()
        described = connection.pgconn.exec_(b'SELECT 1 AS "' + encoded + b'"')
        assert described.fname(0) == encoded
        # Parameters and results in both forms.
        for sent, asked in ((0, 0), (0, 1), (1, 0), (1, 1)):
            result = connection.pgconn.exec_params(
                b"SELECT $1::text, convert_to($1, 'UTF8'), ARRAY[$1, NULL], $2::int",
                [encoded, b"7"], param_types=[25, 0], param_formats=[sent, 0], result_format=asked,
            )  # fmt: skip
            assert result.status == psycopg.pq.ExecStatus.TUPLES_OK, result.error_message
            assert result.get_value(0, 0) == encoded
            assert encoded in result.get_value(0, 2)
            assert result.get_value(0, 3) == (b"\0\0\0\x07" if asked else b"7")
            assert result.get_value(0, 1).endswith(text.encode() if asked else text.encode().hex().encode())
        # Errors and notices.
        failed = connection.pgconn.exec_(b'SELECT "' + encoded + b'"')
        told = failed.error_field(psycopg.pq.DiagnosticField.MESSAGE_PRIMARY)
        assert told == b'column "' + encoded + b'" does not exist'
        told = []
        connection.add_notice_handler(lambda notice: told.append(notice.message_primary))
        if name != "SQL_ASCII":
            connection.execute(f"DO $$ BEGIN RAISE NOTICE '{text}'; END $$")
            assert told == [text]
        # COPY, both ways, with a character cut in two.
        connection.execute("CREATE TEMP TABLE copied (n int, t text)")
        lines = b"1\t" + encoded + b"\n2\t\\N\n"
        with connection.cursor().copy("COPY copied FROM STDIN") as copy:
            for byte in lines:
                copy.write(bytes([byte]))
        assert raw(connection, b"SELECT count(*) FROM copied WHERE t = '" + encoded + b"'") == b"1"
        with connection.cursor().copy("COPY copied TO STDOUT") as copy:
            assert b"".join(bytes(part) for part in copy) == lines
        with connection.cursor().copy("COPY copied TO STDOUT (FORMAT csv, ENCODING 'UTF8')") as copy:
            assert b"".join(bytes(part) for part in copy) == f"1,{text}\n2,\n".encode()


def test_copy_says_the_encoding_itself(server: Server):
    with server.connect(autocommit=True) as connection:
        connection.execute("CREATE TEMP TABLE copied (t text)")
        with connection.cursor().copy("COPY copied FROM STDIN (ENCODING 'SJIS')") as copy:
            copy.write("表ソ\nb\n".encode("shift_jis"))
        assert connection.execute("SELECT array_agg(t) FROM copied").fetchone() == (["表ソ", "b"],)
        with connection.cursor().copy("COPY copied TO STDOUT (ENCODING 'EUC_JP')") as copy:
            assert b"".join(bytes(part) for part in copy) == "表ソ\nb\n".encode("euc_jp")
        with pytest.raises(psycopg.errors.CharacterNotInRepertoire) as failed:
            with connection.cursor().copy("COPY copied FROM STDIN (ENCODING 'SJIS')") as copy:
                copy.write(b"a\nb\n\x95 \nc\n")
        assert 'invalid byte sequence for encoding "SJIS": 0x95 0x20' in str(failed.value)
        assert "COPY copied, line 3" in failed.value.diag.context
        with pytest.raises(psycopg.errors.UntranslatableCharacter):
            with connection.cursor().copy("COPY copied TO STDOUT (ENCODING 'LATIN1')") as copy:
                list(copy)
        assert connection.execute("SELECT count(*) FROM copied").fetchone() == (2,)


def test_what_is_no_character_or_has_none_is_an_error(server: Server):
    with server.connect(client_encoding="WIN1252", autocommit=True) as connection:
        # No character of the encoding: in a query, a parameter, a name.
        for query in (b"SELECT '\x81'", b'SELECT "\x81"'):
            result = connection.pgconn.exec_(query)
            assert result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"22P05"
        for form in (0, 1):
            result = connection.pgconn.exec_params(b"SELECT $1::text", [b"\x81"], param_types=[25], param_formats=[form])
            assert result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"22P05"
        # None in it: a value, a name, an error's text.
        for query in ("SELECT chr(26085)", "SELECT 'x' FROM generate_series(1, 1000) g WHERE chr(26085) = U&'\\65E5' AND g > 999 UNION ALL SELECT chr(26085)"):
            with pytest.raises(psycopg.errors.UntranslatableCharacter):
                connection.execute(query)
        with pytest.raises(psycopg.errors.UntranslatableCharacter) as failed:
            connection.execute("SELECT U&\"\\65E5\"")
        assert 'has no equivalent in encoding "WIN1252"' in str(failed.value)
        # The connection goes on, in an encoding that has it too.
        connection.execute("SET client_encoding = 'UTF8'")
        assert connection.execute("SELECT chr(26085)").fetchone() == ("日",)
        connection.execute("BEGIN; SET LOCAL client_encoding = 'SJIS'; COMMIT")
        assert connection.execute("SHOW client_encoding").fetchone() == ("UTF8",)


def test_the_environment_says_it_at_the_start(server: Server):
    printed = server.run("psql", "-X", "-At", "-c", "SHOW client_encoding", env={"PGCLIENTENCODING": "latin1"}).stdout
    assert printed == "LATIN1\n"
    refused = server.run("psql", "-X", "-At", "-c", "SELECT 1", env={"PGCLIENTENCODING": "nonsense"}, check=False)
    assert refused.returncode == 2 and 'invalid value for parameter "client_encoding"' in refused.stderr
