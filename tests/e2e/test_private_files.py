"""Nobody but the server's account can read what it, its copies, branches and buckets write, whatever the umask; and what a start does where others can."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from harness import LogsteadServer
from objectstores import start as start_store
from test_backup import copy, server_in
from test_branches import at_data, tool

pytestmark = pytest.mark.logstead_only


@pytest.fixture(params=(0o000, 0o022))
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(root: Path) -> dict[str, int]:
    """Of everything at and below `root`."""
    found = {str(root): root.lstat().st_mode & 0o777}
    for directory, directories, files in os.walk(root):
        for name in (*directories, *files):
            path = Path(directory) / name
            found[str(path)] = path.lstat().st_mode & 0o777
    return found


def assert_private(root: Path, directory: int = 0o700, file: int = 0o600) -> None:
    found = modes(root)
    assert len(found) > 3, found
    open_ones = {path: oct(mode) for path, mode in found.items() if mode != (directory if Path(path).is_dir() else file)}
    assert not open_ones


def fill(server) -> None:
    server.execute(
        "CREATE TABLE a (id int PRIMARY KEY, v text)",
        "INSERT INTO a SELECT g, repeat(md5(g::text), 20) FROM generate_series(1, 5000) AS g",
        "CHECKPOINT",
        "UPDATE a SET v = 'tail' WHERE id = 1",
    )
    # Temporary files of a large statement.
    server.execute("SET work_mem = '64kB'", "SELECT count(*) FROM (SELECT v FROM a ORDER BY v) AS sorted")


def test_all_that_is_written_is_private(umask, private_server, tmp_path):
    private_server.start()
    fill(private_server)
    assert private_server.execute("SHOW data_directory_mode") == [("0700",)]
    copied = tmp_path / "made" / "copied"
    copied.mkdir(parents=True)
    copy("backup", private_server.home, str(copied / "data"))
    private_server.stop()
    copy("restore", str(copied / "data"), str(copied / "restored"))
    tool("branch", "create", "b", private_server.home)
    branch = at_data(private_server.root, private_server.data, "--branch", "b")
    branch.start()
    fill_branch = branch.execute("SELECT count(*) FROM a")
    branch.stop()
    assert fill_branch == [(5000,)]
    # Opened again, by what is there.
    copy_server = server_in(copied)
    copy_server.start()
    assert copy_server.execute("SELECT count(*) FROM a") == [(5000,)]
    copy_server.stop()
    for root in (private_server.data, copied / "data", copied / "restored"):
        assert_private(root)


def test_a_development_bucket_is_private(umask, tmp_path):
    with start_store("dev-bucket", tmp_path) as store:
        server = LogsteadServer(tmp_path / "server")
        server.root.mkdir()
        server.arguments = ("--home", f"{store.url('log')}?endpoint=http://{store.host}:{store.port}")
        server.start(env=store.environment)
        server.execute("CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1)", "CHECKPOINT")
        server.stop()
        found = [path for path in tmp_path.rglob("buckets")]
        assert found
        assert_private(found[0].parent)


def refused(data: Path, root: Path) -> str:
    server = at_data(root, data)
    done = subprocess.run(server.command(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def test_a_directory_that_others_can_read_is_refused_and_an_older_versions_is_closed(private_server, tmp_path):
    private_server.start()
    private_server.execute("CREATE TABLE a (id int PRIMARY KEY)")
    private_server.stop()
    data = private_server.data
    for mode in (0o755, 0o770, 0o777):
        data.chmod(mode)
        said = refused(data, tmp_path)
        assert f'data directory "{data}" has invalid permissions' in said
        assert "Permissions should be u=rwx (0700) or u=rwx,g=rx (0750)." in said
    # As an older version made it: its lock file, too, is for all to read.
    for path, mode in modes(data).items():
        os.chmod(path, 0o755 if Path(path).is_dir() else 0o644)
    private_server.start()
    assert private_server.execute("SELECT count(*) FROM a") == [(0,)]
    private_server.stop()
    assert "was made by a version that let other accounts read it" in private_server.output_text()
    assert_private(data)


def test_the_group_may_read_a_directory_made_for_it(private_server, tmp_path):
    before = os.umask(0o077)
    try:
        private_server.start(("--allow-group-access", "on"))
        assert private_server.execute("SHOW data_directory_mode") == [("0750",)]
        private_server.execute("CREATE TABLE a (id int PRIMARY KEY)", "CHECKPOINT")
        copy("backup", private_server.home, str(tmp_path / "copied"))
        private_server.stop()
        # Its mode says so from now on.
        private_server.start()
        private_server.execute("INSERT INTO a VALUES (1)", "CHECKPOINT")
        private_server.stop()
        tool("branch", "create", "b", private_server.home)
    finally:
        os.umask(before)
    found = modes(private_server.data)
    assert {mode for path, mode in found.items() if Path(path).is_dir()} <= {0o750, 0o700}
    assert_private(tmp_path / "copied", 0o750, 0o640)
    temporary = str(private_server.data / "temp")
    rest = {path: mode for path, mode in found.items() if not path.startswith(temporary)}
    assert {mode for path, mode in rest.items() if Path(path).is_dir()} == {0o750}
    assert {mode for path, mode in rest.items() if not Path(path).is_dir()} == {0o640}


def test_where_temporary_files_are_is_for_whom_data_directory_is(private_server):
    private_server.start()
    private_server.execute("CREATE ROLE stranger LOGIN")
    with private_server.connect(autocommit=True) as connection:
        connection.execute("SET ROLE stranger")
        for setting in ("temp_directory", "data_directory"):
            with pytest.raises(Exception, match="pg_read_all_settings"):
                connection.execute(f"SHOW {setting}")
        connection.execute("RESET ROLE")
        assert connection.execute("SHOW temp_directory").fetchone()[0].endswith("/temp")
