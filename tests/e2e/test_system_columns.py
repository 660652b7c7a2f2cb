"""xmin names the version of a row: in memory, on pages, and after a crash."""


def versions(connection) -> list[tuple]:
    return connection.execute("SELECT id, xmin::text, ctid::text FROM versioned ORDER BY id").fetchall()


def test_versions_stay_what_they_are(private_server):
    private_server.start()
    with private_server.connect(autocommit=True) as one:
        one.execute("CREATE TABLE versioned (id int PRIMARY KEY, v text)")
        for n in range(1, 6):
            one.execute("INSERT INTO versioned VALUES (%s, 'a')", [n])
        one.execute("UPDATE versioned SET v = 'b' WHERE id = 2")
        before = versions(one)
        assert len({xmin for _, xmin, _ in before}) == 5
        # Nobody has asked for these transactions' ids, so the log and the pages have all that tells them.
        one.execute("CHECKPOINT")
        one.execute("UPDATE versioned SET v = 'c' WHERE id = 3")
        changed = versions(one)
        assert [new == old for new, old in zip(changed, before, strict=True)] == [True, True, False, True, True]
        # Ids that somebody asks for take numbers of their own, which no crash makes somebody else's.
        told = one.execute("INSERT INTO versioned VALUES (6, 'a') RETURNING xmin::text").fetchone()[0]
        assert versions(one)[5][1] == told
        one.execute("BEGIN")
        lost = one.execute("SELECT txid_current()").fetchone()[0]
        one.execute("ROLLBACK")
        last = one.execute("INSERT INTO versioned VALUES (7, 'a') RETURNING xmin::text::bigint").fetchone()[0]
        assert int(told) < lost < last
    private_server.restart_after_kill()
    with private_server.connect(autocommit=True) as one:
        assert versions(one)[:5] == changed
        later = one.execute("SELECT txid_current()").fetchone()[0]
        assert later > last
        # An id that was told before is nobody's: the lock fails, and does not hold for another version.
        cursor = one.execute("UPDATE versioned SET v = 'd' WHERE id = 6 AND xmin::text = %s", [told])
        assert cursor.rowcount == 0
        known = versions(one)[3][1]
        assert one.execute("UPDATE versioned SET v = 'd' WHERE id = 4 AND xmin::text = %s", [known]).rowcount == 1
        assert one.execute("UPDATE versioned SET v = 'e' WHERE id = 4 AND xmin::text = %s", [known]).rowcount == 0
    private_server.restart_after_kill()
    with private_server.connect(autocommit=True) as one:
        assert one.execute("SELECT count(*), max(v) FROM versioned").fetchone() == (7, "d")


def test_the_next_version_is_told_to_who_changes_it(server):
    """What an ORM does with a row's version."""
    with server.connect(autocommit=True) as one:
        one.execute("CREATE TABLE tracked (id int PRIMARY KEY, n int)")
        version = one.execute("INSERT INTO tracked VALUES (1, 0) RETURNING xmin").fetchone()[0]
        for n in range(1, 20):
            sql = "UPDATE tracked SET n = %s WHERE id = 1 AND xmin = %s::text::xid RETURNING xmin"
            version, older = one.execute(sql, [n, version], prepare=True).fetchone()[0], version
            assert version != older
            assert one.execute(sql, [-1, older]).fetchone() is None
        assert one.execute("SELECT n FROM tracked WHERE xmin = %s::text::xid", [version]).fetchone() == (19,)
        one.execute("DROP TABLE tracked")
