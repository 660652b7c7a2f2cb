"""What earlier formats have left opens, is the same, can be written, and is whole afterwards: see golden_database.py."""

import golden_database
import pytest
from harness import LogsteadServer
from test_branches import at_data, tool
from test_checkpoints import BY_HAND, assert_clean, one
from test_golden import assert_same

pytestmark = pytest.mark.logstead_only


@pytest.fixture(params=golden_database.names())
def found(request, tmp_path) -> tuple[str, LogsteadServer, str]:
    """Each golden database, unpacked and not yet opened; its name, a server for it, and what it holds."""
    server = LogsteadServer(tmp_path / "server")
    expected = golden_database.unpack(request.param, server)
    yield request.param, server, expected
    server.kill()


def test_there_are_some():
    assert {"format-1", "format-2", "format-3", "format-4"} <= set(golden_database.names())


def is_made_anew(name: str) -> bool:
    """Has it chunks of 1,024 rows, which a start makes smaller ones of? Later formats are read as they are."""
    return name in ("format-1", "format-2")


def test_opens_and_is_the_same(found):
    """With checkpoint, deltas, two lives' log and a side segment; after an end by force too; and its log is read only once a checkpoint replaces it."""
    name, server, expected = found
    assert_clean(server.home)
    server.start(BY_HAND)
    recovery = one(server, "logstead_recovery")
    assert recovery["chunks_with_tails_at_start"] > 0 and recovery["chunks"] > 0 and recovery["entries"] > 10 and recovery["large_entries"] == 1, recovery
    # What is made anew at the first start is kept.
    assert (recovery["upgraded_bytes"] > 0) == is_made_anew(name), recovery
    assert_same(golden_database.dump(server), expected, name)
    server.restart_after_kill(arguments=BY_HAND)
    assert one(server, "logstead_recovery")["upgraded_bytes"] == 0
    assert_same(golden_database.dump(server), expected, name)
    server.stop()
    assert_clean(server.home)


def test_can_be_written(found):
    """Every table of it, its sequences, indexes and constraints; then in the format of today, from a checkpoint alone."""
    name, server, expected = found
    server.start(BY_HAND)
    with server.connect(autocommit=True) as connection:
        # As after any crash: some values are passed over, none comes twice.
        assert connection.execute("SELECT nextval('counted'), nextval('downwards')").fetchone() == (324, -33)
        connection.execute("INSERT INTO child (parent, position) VALUES ('p3', 999999)")
        with pytest.raises(Exception, match="child_parent_fkey"):
            connection.execute("INSERT INTO child (parent, position) VALUES ('p9', 1)")
        with pytest.raises(Exception, match="child_position"):
            connection.execute("INSERT INTO child (parent, position) VALUES ('p3', 999999)")
        with pytest.raises(Exception, match="looked_up_lower"):
            connection.execute("INSERT INTO looked_up (name) VALUES ('NAME 5')")
        with pytest.raises(Exception, match="tags_once"):
            connection.execute("INSERT INTO tags VALUES (NULL, NULL)")
        with pytest.raises(Exception, match="young_v"):
            connection.execute("INSERT INTO young (v) VALUES ('bad')")
        assert connection.execute("INSERT INTO young (v) VALUES ('new') RETURNING id, more").fetchone() == (98, 5)
        connection.execute("SET enable_seqscan = off")
        assert connection.execute("SELECT name FROM looked_up WHERE lower(name) = 'renamed 710'").fetchone() == ("renamed 710",)
        assert connection.execute("SELECT count(*) FROM sparse WHERE id BETWEEN 901 AND 9000").fetchone() == (9,)
        # Rows of many chunks, so that pages that were made anew and deltas of them stand side by side in the next checkpoint.
        for statement in (
            "UPDATE sparse SET id = -id WHERE id % 1800 = 0",
            "DELETE FROM long WHERE id % 2 = 0",
            "UPDATE kinds SET i8 = 5 WHERE id = 4",
            "DELETE FROM parent WHERE code = 'renamed'",
            "ALTER TABLE altered ADD COLUMN fourth int DEFAULT 4",
            "DROP TABLE bare",
            "CREATE TABLE newer AS SELECT id, v FROM young",
        ):
            connection.execute(statement)
        connection.execute("CHECKPOINT")
    held = golden_database.dump(server, sequences=False)
    assert held != expected
    server.restart_after_kill(arguments=BY_HAND)
    assert one(server, "logstead_recovery")["entries"] == 0
    assert_same(golden_database.dump(server, sequences=False), held, name)
    server.execute("INSERT INTO newer VALUES (1000, 'behind the checkpoint')")
    held = golden_database.dump(server, sequences=False)
    server.stop()
    server.start(BY_HAND)
    assert_same(golden_database.dump(server, sequences=False), held, name)
    server.stop()
    assert_clean(server.home)


@pytest.mark.parametrize("found", list(filter(is_made_anew, golden_database.names())), indirect=True)
def test_copies_of_it_are_made_anew_where_they_are_opened(found, tmp_path):
    """A backup is the same, its log's tail included; a branch and what is restored are what the newest checkpoint was. None of them changes what it was made of."""
    name, server, expected = found
    data = server.home

    def opened(*arguments: str) -> str:
        root = tmp_path / "opened"
        root.mkdir(exist_ok=True)
        other = at_data(root, *arguments)
        try:
            other.start(BY_HAND)
            assert one(other, "logstead_recovery")["upgraded_bytes"] > 0
            held = golden_database.dump(other)
            other.restart_after_kill(arguments=BY_HAND)
            assert one(other, "logstead_recovery")["upgraded_bytes"] == 0
            assert_same(golden_database.dump(other, sequences=False), without_sequences(held), name)
            other.stop()
        finally:
            other.kill()
        return held

    tool("backup", data, str(tmp_path / "backup"))
    assert_clean(str(tmp_path / "backup"))
    assert_same(opened(tmp_path / "backup"), expected, name)
    tool("restore", "--at", "2100-01-01 00:00:00+00", data, str(tmp_path / "restored"))
    assert_clean(str(tmp_path / "restored"))
    restored = opened(tmp_path / "restored")
    assert restored != expected and "-- young" not in restored
    assert_clean(str(tmp_path / "restored"))
    tool("branch", "create", "old", data)
    assert_same(opened(server.data, "--branch", "old"), restored, name)
    assert_clean(data)
    server.start(BY_HAND)
    assert one(server, "logstead_recovery")["upgraded_bytes"] > 0
    assert_same(golden_database.dump(server), expected, name)
    # The pinned record is of the old format, and still leads to everything.
    server.execute("CHECKPOINT")
    server.stop()
    assert_clean(data)
    tool("branch", "drop", "old", data)


def without_sequences(dump: str) -> str:
    """What `golden_database.dump` says without them."""
    before, _, after = dump.partition("-- sequences\n")
    return before + after[after.index("-- ") :]
