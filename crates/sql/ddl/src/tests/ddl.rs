//! DDL: bootstrap and reopening, rollback, two transactions on one name, messages.

use super::world::*;
use crate::pg_catalog::calls;
use logstead_engine::{ExpectPresent, Isolation, ScanCursor};
use logstead_sql_catalog::stored::SEQUENCES;
use logstead_sql_catalog::{ConstraintKind, RelationKind, deparse};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

#[test]
fn an_empty_log_has_two_databases_and_their_schemas() {
    let world = World::new().reopen();
    for database in ["postgres", "logstead"] {
        let catalog = world.store.current(database).unwrap();
        let mut schemas: Vec<_> = catalog.schemas.values().map(|s| s.name.as_str()).collect();
        schemas.sort_unstable();
        assert_eq!(
            schemas,
            ["information_schema", "pg_catalog", "pg_toast", "public"]
        );
    }
    assert!(world.store.current("nope").is_none());
}

#[test]
fn tables_come_back_after_a_crash() {
    let world = World::new();
    world.run("create table t (id serial primary key, a varchar(5) default 'x', b numeric(5,2), unique (a, b))").unwrap();
    world.run("create index on t (b desc); create schema s; create table s.u (a int) with (fillfactor=90)").unwrap();
    world.run("comment on column t.a is 'a text'").unwrap();
    let before = world.catalog();
    let world = world.reopen();
    let after = world.catalog();
    assert_eq!(world.names(), "t t_a_b_key t_b_idx t_id_seq t_pkey u");
    for relation in before
        .relations
        .values()
        .filter(|r| !matches!(r.kind, RelationKind::Virtual(_)))
    {
        let again = &after.relations[&relation.oid];
        assert_eq!(
            format!("{:?}", relation.columns),
            format!("{:?}", again.columns)
        );
        assert_eq!(
            format!("{:?}", relation.constraints),
            format!("{:?}", again.constraints)
        );
        assert_eq!(
            format!("{:?}", relation.indexes),
            format!("{:?}", again.indexes)
        );
        assert_eq!(relation.schema_name, again.schema_name);
        if matches!(relation.kind, RelationKind::Table) {
            let table = world.store.engine().table(relation.storage).unwrap();
            assert_eq!(table.indexes().len(), relation.indexes.len());
        }
    }
    let u = after.relation(Some("s"), "u", &[]).unwrap();
    assert_eq!(after.notes.options[&u.oid], ["fillfactor=90"]);
    assert_eq!(after.notes.comments.len(), 1);
    // OIDs go on above every one given out before.
    world.run("create table later ()").unwrap();
    let later = world
        .catalog()
        .relation(None, "later", &world.path)
        .unwrap()
        .oid;
    assert!(
        before
            .relations
            .keys()
            .filter(|o| o.get() < 1 << 30)
            .all(|o| *o < later)
    );
}

#[test]
fn rollback_restores_catalog_and_storage() {
    let world = World::new();
    world.run("create table kept (a int primary key)").unwrap();
    let storages = || {
        let mut ids: Vec<_> = world
            .store
            .engine()
            .tables()
            .iter()
            .map(|t| t.id())
            .collect();
        ids.sort();
        ids
    };
    let before = (world.names(), storages());
    let mut open = world.begin();
    world
        .run_in(&mut open, "create table gone (a serial primary key)")
        .unwrap();
    let mark = open.txn.savepoint();
    world
        .run_in(
            &mut open,
            "truncate kept; create index on kept (a); drop table gone; create table gone2 (a int)",
        )
        .unwrap();
    let inside = open
        .state
        .catalog(&world.store, "postgres", &mut open.txn)
        .unwrap();
    assert_eq!(names(&inside), "gone2 kept kept_a_idx kept_pkey");
    assert_eq!(world.names(), before.0, "nobody else sees it");
    open.txn.rollback_to(mark);
    let inside = open
        .state
        .catalog(&world.store, "postgres", &mut open.txn)
        .unwrap();
    assert_eq!(names(&inside), "gone gone_a_seq gone_pkey kept kept_pkey");
    open.txn.abort();
    assert_eq!((world.names(), storages()), before);
    let world = world.reopen();
    assert_eq!(world.names(), before.0);
    world.run("create table gone (a int)").unwrap();
}

#[test]
fn two_transactions_that_make_one_name_meet() {
    let world = World::new();
    let mut first = world.begin();
    world.run_in(&mut first, "create table t (a int)").unwrap();
    let mut second = world.begin();
    {
        let mut waiting = pin!(world.execute(&mut second, "create table t (b int)"));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        block_on(first.txn.precommit()).unwrap();
        let Poll::Ready(Err(error)) = waiting.as_mut().poll(&mut cx) else {
            panic!("still waiting, or made twice")
        };
        assert_eq!(error.to_string(), "42P07: relation \"t\" already exists");
    }
    second.txn.abort();
    let t = world
        .catalog()
        .relation(None, "t", &world.path)
        .unwrap()
        .clone();
    assert_eq!(t.columns[0].name, "a");
    // When the first rolls back, the second goes on.
    let mut first = world.begin();
    world.run_in(&mut first, "create table u (a int)").unwrap();
    let mut second = world.begin();
    {
        let mut waiting = pin!(world.execute(&mut second, "create table u (b int)"));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut cx).is_pending());
        first.txn.abort();
        assert!(matches!(waiting.as_mut().poll(&mut cx), Poll::Ready(Ok(_))));
    }
    block_on(second.txn.precommit()).unwrap();
    assert_eq!(
        world
            .catalog()
            .relation(None, "u", &world.path)
            .unwrap()
            .columns[0]
            .name,
        "b"
    );
}

#[test]
fn messages_are_postgresqls() {
    let world = World::new();
    world
        .run("create table t (a int primary key, b text); create sequence s")
        .unwrap();
    for (sql, expected) in [
        (
            "create table t (a int)",
            "42P07: relation \"t\" already exists",
        ),
        (
            "create table e (a int, a int)",
            "42701: column \"a\" specified more than once",
        ),
        (
            "create table e (a int primary key, b int primary key)",
            "42P16: multiple primary keys for table \"e\" are not allowed",
        ),
        (
            "create table e (a int, primary key (zz))",
            "42703: column \"zz\" named in key does not exist",
        ),
        (
            "create table e (a int null not null)",
            "42601: conflicting NULL/NOT NULL declarations for column \"a\" of table \"e\"",
        ),
        (
            "create table e (a int references t match partial)",
            "0A000: MATCH PARTIAL not yet implemented",
        ),
        (
            "create table nope.e (a int)",
            "3F000: schema \"nope\" does not exist",
        ),
        (
            "create table e (a int) with (foo=1)",
            "22023: unrecognized parameter \"foo\"",
        ),
        ("drop table nope", "42P01: table \"nope\" does not exist"),
        ("drop table s", "42809: \"s\" is not a table"),
        (
            "drop index t_pkey",
            "2BP01: cannot drop index t_pkey because constraint t_pkey on table t requires it",
        ),
        (
            "drop table pg_class",
            "42501: permission denied: \"pg_class\" is a system catalog",
        ),
        (
            "create index on t (zz)",
            "42703: column \"zz\" does not exist",
        ),
        (
            "alter table t drop column zz",
            "42703: column \"zz\" of relation \"t\" does not exist",
        ),
        (
            "alter table t drop constraint zz",
            "42704: constraint \"zz\" of relation \"t\" does not exist",
        ),
        (
            "alter table t alter a drop not null",
            "42P16: column \"a\" is in a primary key",
        ),
        (
            "create sequence s2 increment 0",
            "22023: INCREMENT must not be zero",
        ),
        (
            "create schema pg_x",
            "42939: unacceptable schema name \"pg_x\"",
        ),
        ("drop schema nope", "3F000: schema \"nope\" does not exist"),
        ("truncate s", "42809: \"s\" is not a table"),
    ] {
        assert_eq!(world.error(sql), expected, "{sql}");
    }
    for (sql, expected) in [
        (
            "create table if not exists t (a int)",
            "relation \"t\" already exists, skipping",
        ),
        (
            "drop table if exists nope",
            "table \"nope\" does not exist, skipping",
        ),
        (
            "drop view if exists nope",
            "view \"nope\" does not exist, skipping",
        ),
        (
            "alter table if exists nope add column a int",
            "relation \"nope\" does not exist, skipping",
        ),
        (
            "alter table t drop column if exists zz",
            "column \"zz\" of relation \"t\" does not exist, skipping",
        ),
        (
            "create schema if not exists public",
            "schema \"public\" already exists, skipping",
        ),
    ] {
        let (_, notices) = world.run(sql).unwrap();
        assert_eq!(notices[0].message, expected, "{sql}");
    }
}

#[test]
fn schemas_are_dropped_with_what_is_in_them() {
    let world = World::new();
    world
        .run("create schema s; create table s.a (i serial); create sequence s.q")
        .unwrap();
    let error = world.run("drop schema s").unwrap_err();
    assert_eq!(
        error.to_string(),
        "2BP01: cannot drop schema s because other objects depend on it"
    );
    assert_eq!(
        error.fields().detail.as_deref(),
        Some("table s.a depends on schema s\nsequence s.q depends on schema s")
    );
    let (tag, notices) = world.run("drop schema s cascade").unwrap();
    assert_eq!(
        (tag.as_str(), notices[0].message.as_str()),
        ("DROP SCHEMA", "drop cascades to 2 other objects")
    );
    assert_eq!(world.names(), "");
    let world = world.reopen();
    assert!(world.catalog().schema("s").is_none());
}

/// What `\d` shows of the table's columns and conditions.
fn shown(world: &World, table: &str) -> Vec<String> {
    let catalog = world.catalog();
    let relation = catalog.relation(None, table, &world.path).unwrap();
    let defaults = relation.columns.iter().filter_map(|c| c.default.as_deref());
    let checks = relation.constraints.iter().filter_map(|c| match &c.kind {
        ConstraintKind::Check(text) => Some(text.as_str()),
        _ => None,
    });
    defaults
        .map(|d| calls::default_shown(&catalog, d, &world.path))
        .chain(checks.map(|check| deparse::pretty(check, catalog.types.lookup(&world.path))))
        .collect()
}

#[test]
fn expressions_are_stored_with_their_types() {
    let world = World::new();
    world
        .run(
            "create table t (a int default -1, b numeric check (b > 0), c varchar(3) default 'x' check (c in ('x', 'y')),
             d date check (d > '2020-01-01'), e int check (e between 1 and 5 or e = 9), f serial,
             g text check (length(g) > 3 and g ~ '^a'))",
        )
        .unwrap();
    assert_eq!(
        shown(&world, "t"),
        [
            "'-1'::integer",
            "'x'::character varying",
            "nextval('t_f_seq'::regclass)",
            "b > 0::numeric",
            "c::text = ANY (ARRAY['x'::character varying, 'y'::character varying]::text[])",
            "d > '2020-01-01'::date",
            "e >= 1 AND e <= 5 OR e = 9",
            "length(g) > 3 AND g ~ '^a'::text",
        ]
    );
    world
        .run("alter table t rename column e to \"E e\"; alter sequence t_f_seq rename to numbers")
        .unwrap();
    let after = shown(&world, "t");
    assert_eq!(after[2], "nextval('numbers'::regclass)");
    assert_eq!(after[6], "\"E e\" >= 1 AND \"E e\" <= 5 OR \"E e\" = 9");
}

#[test]
fn dropped_sequences_and_columns_take_what_depends_on_them() {
    let world = World::new();
    world.run("create sequence s; create table t (a serial, b int default nextval('s'), c int unique check (c > a))").unwrap();
    assert_eq!(
        world.error("drop sequence s"),
        "2BP01: cannot drop sequence s because other objects depend on it"
    );
    let (_, notices) = world.run("drop sequence s cascade").unwrap();
    assert_eq!(
        notices[0].message,
        "drop cascades to default value for column b of table t"
    );
    assert_eq!(world.names(), "t t_a_seq t_c_key");
    world.run("alter table t drop column c").unwrap();
    assert_eq!(world.names(), "t t_a_seq");
    assert!(shown(&world, "t").iter().all(|s| !s.contains('>')));
    world
        .run("comment on table t is 'x'; alter table t drop column a")
        .unwrap();
    assert_eq!(world.names(), "t");
    // What nothing refers to is deleted at the next start: the states of both sequences.
    let rows = |world: &World| {
        let table = world.store.engine().table(SEQUENCES).unwrap();
        let mut txn = world.worker.begin(Isolation::ReadCommitted);
        let (guard, mut cursor) = (txn.pin(), ScanCursor::new(&table));
        std::iter::from_fn(|| {
            txn.scan_next(&mut cursor, &guard)
                .expect_present()
                .map(|row| row.rid)
        })
        .count()
    };
    assert_eq!(rows(&world), 2);
    let world = world.reopen();
    assert_eq!(world.names(), "t");
    assert_eq!((rows(&world), world.catalog().notes.comments.len()), (0, 1));
}

/// Whatever the table's size: only rows of the catalog are written, and old rows are read as they are.
#[test]
fn changes_of_the_catalog_alone_write_no_row_of_the_table() {
    const ROWS: u64 = 3_000;
    let world = World::new();
    let rows =
        "select g as id, 'abc'::varchar(5) as v, 1.5::numeric(5,2) as n, 'x'::text as t, g as gone";
    world
        .run(&format!(
            "create table t as {rows} from generate_series(1, {ROWS}) g"
        ))
        .unwrap();
    world
        .run("create index t_v on t (v); create index t_lower on t (lower(v)) where n > 1; create index t_n on t (n)")
        .unwrap();
    let written = |world: &World, sql: &str| {
        let before = world.store.engine().stats().versions_installed;
        world.run(sql).unwrap();
        world.store.engine().stats().versions_installed - before
    };
    for sql in [
        "alter table t add column a int",
        "alter table t add column b int not null default 7",
        "alter table t add column c text default 'dflt' not null, add column d timestamptz default now()",
        "alter table t drop column gone",
        "alter table t rename column id to number",
        "alter table t alter column a set default 5",
        "alter table t alter column a drop default",
        "alter table t alter column number set not null",
        "alter table t alter column number drop not null",
        "alter table t alter column v type varchar(9)",
        "alter table t alter column v type varchar",
        "alter table t alter column v type text",
        "alter table t alter column v type varchar",
        "alter table t alter column n type numeric(8,2)",
        "alter table t alter column n type numeric",
        "create index t_b on t (b)",
        "alter index t_b set (fillfactor = 50)",
        "reindex table t",
        "alter table t rename to u",
        "alter table u rename to t",
    ] {
        let count = written(&world, sql);
        assert!(count < 20, "{sql} wrote {count} versions");
    }
    for sql in [
        "alter table t alter column n type numeric(8,1)",
        "alter table t alter column v type varchar(3)",
        "alter table t add column r float8 default random()",
    ] {
        let count = written(&world, sql);
        assert!(count >= ROWS, "{sql} wrote {count} versions");
    }
    let world = world.reopen();
    // Reads every row through its own version: a column that were NULL would be found.
    for column in ["b", "c", "d", "v", "n", "r"] {
        world
            .run(&format!("alter table t alter column {column} set not null"))
            .unwrap();
    }
    assert_eq!(
        world.error("alter table t alter column a set not null"),
        "23502: column \"a\" of relation \"t\" contains null values"
    );
}

/// What the checkpoint has as it is now is taken from there; what came, changed or went since is not.
#[test]
fn indexes_come_from_the_checkpoint_or_from_rows() {
    let world = World::new();
    world
        .run("create table t (a int primary key, b text, c int, unique (b) deferrable)")
        .unwrap();
    world
        .run("create index e on t (lower(b)); create index p on t (c desc) where c > 3; create index r on t (c); create index d on t (a, c)")
        .unwrap();
    world.store.engine().checkpoint().unwrap();
    let world = world.reopen();
    let started = world.store.started_indexes();
    assert_eq!((started.restored, started.built), (6, 0), "{started:?}");
    // After the checkpoint: a new one, one that goes, one that is made anew, one whose expression is spelled
    // differently.
    world.run("create index n on t (b, a)").unwrap();
    world.run("drop index d").unwrap();
    world.run("reindex index r").unwrap();
    world.run("alter table t rename column b to bb").unwrap();
    let world = world.reopen();
    let started = world.store.started_indexes();
    assert_eq!((started.restored, started.built), (3, 3), "{started:?}");
    // The number of an index that the checkpoint still has and nobody claims is not taken for a new one's.
    world.run("create index again on t (a, c)").unwrap();
    let world = world.reopen();
    assert_eq!(world.store.started_indexes().restored, 3);
    world.store.engine().checkpoint().unwrap();
    let world = world.reopen();
    let started = world.store.started_indexes();
    assert_eq!((started.restored, started.built), (7, 0), "{started:?}");
    // Another storage, other indexes.
    world.run("truncate t").unwrap();
    let world = world.reopen();
    let started = world.store.started_indexes();
    assert_eq!((started.restored, started.built), (0, 7), "{started:?}");
}
