//! Indexes whose text cannot be read when the server starts: they are not kept, and the server starts all the same.

use super::world::*;
use logstead_engine::{Isolation, RowBuilder, RowRef, WriteError};
use logstead_sql_catalog::stored::{self, ObjectKey, ObjectRow, RELATIONS};
use logstead_sql_catalog::{IndexDef, Relation};
use logstead_sql_exec::index_keys;
use logstead_sql_types::DatabaseOid;
use logstead_sql_types::value::{Datum, stored as values};
use std::sync::Arc;

fn table(world: &World) -> Arc<Relation> {
    let catalog = world.catalog();
    let mut all = catalog.relations.values();
    Arc::clone(all.find(|relation| relation.name == "t").unwrap())
}

fn index(world: &World, name: &str) -> Arc<IndexDef> {
    let table = table(world);
    Arc::clone(table.indexes.iter().find(|i| i.name == name).unwrap())
}

/// Stores the text of an index anew, past all that DDL asks.
fn store_text(world: &World, name: &str, text: &str) {
    let mut index = IndexDef::clone(&index(world, name));
    index.each_text(|_| Ok(text.to_owned())).unwrap();
    let row = ObjectRow {
        key: ObjectKey {
            database: DatabaseOid::new(5),
            namespace: table(world).schema.get(),
            name: index.name.clone(),
        },
        oid: index.oid.get(),
        definition: stored::encode_index(&index, &[]),
    };
    let rid = world
        .store
        .rid(RELATIONS, DatabaseOid::new(5), index.oid.get())
        .unwrap();
    let relations = world.store.table(RELATIONS).unwrap();
    let mut txn = world.worker.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    let guard = txn.pin();
    let newest = txn.read_newest(&relations, rid, &guard).unwrap();
    let version = newest.unwrap().version;
    drop(guard);
    let bytes = row.encode(&mut RowBuilder::new());
    txn.update(&relations, rid, version, &bytes).unwrap();
    block_on(txn.precommit()).unwrap();
}

/// The error of an INSERT.
fn insert(world: &World, number: i32) -> Option<String> {
    let storage = world.store.engine().table(table(world).storage).unwrap();
    let mut txn = world.worker.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    let mut bytes = Vec::new();
    values::encode(&Datum::Int4(number), &mut bytes);
    let mut row = RowBuilder::new();
    row.start(1, 2);
    row.push(Some(&bytes));
    row.push(Some(&bytes));
    let row = row.finish().to_vec();
    let inserted = loop {
        match txn.insert(&storage, &row) {
            Err(WriteError::Absent(absent)) => absent.load_here(&txn).unwrap(),
            other => break other,
        }
    };
    match inserted {
        Ok(_) => {
            block_on(txn.precommit()).unwrap();
            None
        }
        Err(WriteError::NoKey { index }) => {
            let index = storage.index(index).unwrap();
            let values = index_keys::of(&index).unwrap().values(RowRef::new(&row));
            Some(values.unwrap_err().to_string())
        }
        Err(WriteError::Unique { .. }) => Some("it is there".to_owned()),
        Err(error) => panic!("{error}"),
    }
}

fn invalid(world: &World) -> Vec<String> {
    let table = table(world);
    let invalid = table.indexes.iter().filter(|i| i.invalid.is_some());
    let mut names: Vec<_> = invalid.map(|i| i.name.clone()).collect();
    names.sort_unstable();
    names
}

#[test]
fn an_index_whose_text_cannot_be_read_does_not_keep_the_server_from_starting() {
    let world = World::new();
    world
        .run("create table t (a int, b int); create index plain on t ((a + 1)); create unique index once on t ((b + 1)); create index good on t (a)")
        .unwrap();
    assert_eq!(insert(&world, 1), None);
    world.store.engine().checkpoint().unwrap();
    store_text(&world, "plain", "gone + 1");
    store_text(&world, "once", "gone + 1");
    let world = world.reopen();
    assert_eq!(invalid(&world), ["once", "plain"]);
    let mut told = world.store.started_indexes().invalid;
    told.sort_unstable();
    assert_eq!(
        told,
        [
            "index \"once\" of table \"public.t\" in database \"postgres\": column \"gone\" does not exist",
            "index \"plain\" of table \"public.t\" in database \"postgres\": column \"gone\" does not exist",
        ]
    );
    // A UNIQUE index is not passed over.
    let refused = "55000: index \"once\" cannot be kept: column \"gone\" does not exist";
    assert_eq!(insert(&world, 2).as_deref(), Some(refused));
    assert_eq!(
        world.error("reindex index once"),
        "42703: column \"gone\" does not exist"
    );
    // It stays so, whatever checkpoints have of it.
    world.store.engine().checkpoint().unwrap();
    let world = world.reopen();
    assert_eq!(invalid(&world), ["once", "plain"]);
    // Other DDL leaves it as it is.
    world.run("alter index plain rename to other").unwrap();
    assert_eq!(invalid(&world), ["once", "other"]);
    world.run("drop index once").unwrap();
    assert_eq!(insert(&world, 2), None);
    // What it speaks of is there again, but its entries are not until it is made anew.
    world.run("alter table t rename a to gone").unwrap();
    assert_eq!(invalid(&world), ["other"]);
    world.run("reindex index other").unwrap();
    assert_eq!(invalid(&world), [""; 0]);
    let world = world.reopen();
    assert_eq!(invalid(&world), [""; 0]);
    assert_eq!(world.store.started_indexes().invalid, [""; 0]);
    world.run("drop table t").unwrap();
}

/// What is read, but computed otherwise than when the rows were written, is the same.
#[test]
fn an_index_whose_expression_fails_or_repeats_does_not_keep_the_server_from_starting() {
    let world = World::new();
    world
        .run("create table t (a int, b int); create index fails on t ((a + 1)); create unique index twice on t ((b + 1))")
        .unwrap();
    assert_eq!(insert(&world, 1), None);
    assert_eq!(insert(&world, 2), None);
    store_text(&world, "fails", "1 / (a - 1)");
    store_text(&world, "twice", "b * 0");
    let world = world.reopen();
    assert_eq!(invalid(&world), ["fails", "twice"]);
    assert_eq!(
        insert(&world, 3).as_deref(),
        Some("55000: index \"twice\" cannot be kept: it has a key twice")
    );
    assert_eq!(
        world.error("reindex index twice"),
        "23505: could not create unique index \"twice\""
    );
    world.run("drop index twice").unwrap();
    assert_eq!(insert(&world, 3), None);
}
