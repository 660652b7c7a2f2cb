//! Databases: what is made in one is in it alone, comes back with it, and goes with it.

use super::world::*;
use logstead_engine::{Isolation, RowBuilder, ScanCursor};
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::classes::PG_AUTHID;
use logstead_sql_catalog::stored::{COMMENTS, OBJECT_TABLES, ObjectKey, ObjectRow};
use logstead_sql_types::DatabaseOid;
use logstead_types::TableId;
use std::sync::Arc;

/// Whatever a database can hold, of names that another has too.
const EVERYTHING: &str = "create schema s; create table s.t (id serial primary key, v text check (v <> '')); \
     create index on s.t (v); create type s.mood as enum ('a'); create domain s.d as int check (value > 0); \
     create view s.w as select v from s.t; create table t (a int references s.t); comment on table t is 'x'; \
     grant select on t to public; alter default privileges grant select on tables to public";

/// How many rows of the catalog's tables are of a database.
fn rows_of(world: &World, database: DatabaseOid) -> usize {
    let mut txn = world.worker.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    let mut count = 0;
    for id in OBJECT_TABLES {
        let table = world.store.table(id).unwrap();
        let mut cursor = ScanCursor::new(&table);
        let guard = txn.pin();
        while let Ok(Some(row)) = txn.scan_next(&mut cursor, &guard) {
            count += usize::from(ObjectRow::decode(row.bytes).unwrap().key.database == database);
        }
    }
    txn.abort();
    count
}

#[test]
fn equal_names_of_everything_come_back_and_go_apart() {
    let world = World::new();
    world.run(EVERYTHING).unwrap();
    let storages = world.store.engine().tables().len();
    let names = world.names();
    world
        .run("create database one; create database two; comment on database two is 'x'")
        .unwrap();
    for database in ["one", "two"] {
        world.run_on(database, EVERYTHING).unwrap();
        world.run_on(database, "analyze t").unwrap();
    }
    let world = world.reopen();
    let oid = |name: &str| world.store.current(name).map(|c| c.database);
    let (one, two) = (oid("one").unwrap(), oid("two").unwrap());
    for database in ["one", "two"] {
        let catalog = world.store.current(database).unwrap();
        assert_eq!(super::world::names(&catalog), names);
        assert!(!catalog.is_untouched());
        assert_eq!(catalog.notes.databases.all().count(), 6);
        assert_eq!(catalog.notes.comments.len(), 2);
        for relation in catalog.relations.keys().filter(|oid| oid.get() >= 16_384) {
            assert!(!world.catalog().relations.contains_key(relation));
        }
    }
    assert_eq!(rows_of(&world, one), rows_of(&world, two));
    assert!(rows_of(&world, one) > 10);

    // One is dropped, and that is undone: nothing has changed.
    let mut open = world.begin();
    world.run_in(&mut open, "drop database one").unwrap();
    open.txn.abort();
    assert_eq!(rows_of(&world, one), rows_of(&world, two));
    world.run_on("one", "insert into t values (1)").unwrap_err();
    world.run_on("one", "create table more ()").unwrap();

    world.run("drop database one; drop database two").unwrap();
    assert!(world.store.current("one").is_none());
    assert!(world.store.current_by_oid(two).is_none());
    let mut world = world;
    for _ in 0..2 {
        assert_eq!((rows_of(&world, one), rows_of(&world, two)), (0, 0));
        assert_eq!(world.names(), names);
        assert_eq!(world.store.engine().tables().len(), storages);
        assert_eq!(world.catalog().notes.comments.len(), 1);
        world = world.reopen();
    }
    world.run("create database one").unwrap();
    assert!(world.store.current("one").unwrap().is_untouched());
}

#[test]
fn nobody_enters_a_database_that_is_being_dropped() {
    let world = World::new();
    world.run("create database one").unwrap();
    let one = world.store.current("one").unwrap().database;
    for committed in [false, true] {
        let mut open = world.begin();
        world.run_in(&mut open, "drop database one").unwrap();
        assert!(world.store.in_use.enter(one).is_none());
        match committed {
            true => drop(block_on(open.txn.precommit()).unwrap()),
            false => open.txn.abort(),
        }
        assert_eq!(world.store.current("one").is_none(), committed);
        assert!(world.store.in_use.enter(one).is_some());
    }
}

#[test]
fn databases_share_roles_and_what_is_said_of_them() {
    let world = World::new();
    world
        .run("create database one; create role r; comment on role r is 'old'")
        .unwrap();
    let role = world.catalog().roles.by_name("r").unwrap().oid;
    // As older builds have stored it: with the database where it was said.
    let older = ObjectRow {
        key: ObjectKey {
            database: DatabaseOid::new(5),
            namespace: PG_AUTHID.get(),
            name: format!("{role}/0"),
        },
        oid: 16_999,
        definition: b"\x01older".to_vec(),
    };
    let mut txn = world.worker.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    let table = world.store.table(COMMENTS).unwrap();
    let bytes = older.encode(&mut RowBuilder::new());
    txn.insert(&table, &bytes).unwrap();
    block_on(txn.precommit()).unwrap();
    let said = |world: &World, database: &str| {
        let catalog = world.store.current(database).unwrap();
        let comments = &catalog.notes.comments;
        comments
            .get(&(PG_AUTHID, role.get(), 0))
            .map(|text| text.to_string())
    };
    let mut world = world.reopen();
    for text in ["old", "new"] {
        for database in ["postgres", "one", "template1"] {
            assert_eq!(said(&world, database).as_deref(), Some(text));
        }
        world.run_on("one", "comment on role r is 'new'").unwrap();
        world = world.reopen();
    }
    world.run("comment on role r is null").unwrap();
    for database in ["postgres", "one"] {
        assert_eq!(said(&world, database), None);
    }
    let world = world.reopen();
    assert_eq!(said(&world, "postgres"), None);
    assert!(CatalogChange::DropDatabase(DatabaseOid::new(1)).is_shared());
    world
        .run("alter role r in database one set work_mem = '1MB'")
        .unwrap();
    world.run("drop role r").unwrap();
    let one = Arc::clone(world.catalog().notes.databases.by_name("one").unwrap());
    assert!(one.settings.is_empty());
}

/// Rows that a copy wrote, of which nothing else is durable, stay in the log until a checkpoint: no other table gets
/// the number of their storage.
#[test]
fn storages_that_nothing_names_give_their_numbers_to_nobody() {
    let world = World::new();
    world.run("CREATE TABLE before (a int)").unwrap();
    let highest = |world: &World| {
        let tables = world.store.engine().tables();
        let numbers = tables.iter().map(|table| table.id().0);
        numbers.filter(|number| *number < 1 << 29).max().unwrap()
    };
    // Beyond what is reserved in the log.
    let orphan = TableId(highest(&world) + 5_000);
    let table = world.store.engine().create_table(orphan);
    let mut txn = world.worker.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    let mut row = RowBuilder::new();
    row.start(1, 1);
    row.push(Some(b"x"));
    txn.insert(&table, row.finish()).unwrap();
    block_on(txn.precommit()).unwrap();
    let mut world = world.reopen();
    for _ in 0..2 {
        let gone = world.store.engine().table(orphan).is_none();
        assert!(gone, "nothing names it");
        world.run("CREATE TABLE behind (a int)").unwrap();
        assert!(highest(&world) > orphan.0, "its number is somebody's");
        world.run("DROP TABLE behind").unwrap();
        world = world.reopen();
    }
}
