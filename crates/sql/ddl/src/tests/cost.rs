//! What a DDL statement looks at: as much among a thousand tables as among ten. Counted are the entries of maps that
//! are walked and the relations that are copied; what is found by its key counts nothing.

use super::world::*;
use crate::DdlState;
use logstead_sql_catalog::dependents_index::{self, Dependent};
use logstead_sql_catalog::{Catalog, RelationKind, TempObjects};
use logstead_sql_types::DatabaseOid;
use logstead_sql_types::persistent::visited;
use logstead_sql_types::value::user;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Statements of all kinds; at the end nothing of them is left.
const STATEMENTS: &[&str] = &[
    "create role joe",
    "create schema s",
    "create table parent (id int primary key, v text)",
    "create table t (id serial primary key, v text default 'x', p int references parent, check (id > 0))",
    "create table u as select * from t with no data",
    "create table w (like t including all)",
    "create index t_v on t (v)",
    "create unique index on t (lower(v))",
    "alter index t_v rename to t_w",
    "alter table t add column n int not null default 1",
    "alter table t alter column n type bigint",
    "alter table t alter column n drop default",
    "alter table t add constraint c check (n > 0)",
    "alter table t add foreign key (n) references t",
    "alter table t drop constraint c",
    "alter table t rename column n to m",
    "alter table t rename constraint t_p_fkey to k",
    "alter table t rename to tt",
    "alter table tt owner to joe",
    "alter table tt set schema s",
    "alter table s.tt drop column m cascade",
    "comment on table s.tt is 'text'",
    "comment on column s.tt.v is 'text'",
    "comment on constraint k on s.tt is 'text'",
    "grant select, insert on s.tt to joe",
    "grant update (v) on s.tt to public",
    "revoke insert on s.tt from joe",
    "grant usage on schema s to joe",
    "grant select on all tables in schema s to joe",
    "alter default privileges in schema s grant select on tables to joe",
    "alter default privileges in schema s revoke select on tables from joe",
    "create view view1 as select id, v from s.tt",
    "create or replace view view1 as select id, v, p from s.tt",
    "create view view2 as select * from view1",
    "create materialized view m as select v from view2 with no data",
    "comment on view view2 is 'text'",
    "create function f(a int) returns int language sql immutable as 'select a + 1'",
    "create or replace function f(a int) returns int language sql immutable as 'select a + 2'",
    "alter table u add check (f(id) > 0)",
    "grant execute on function f(int) to joe",
    "create function g() returns trigger language plpgsql as 'begin return new; end'",
    "create trigger g before update of v on u for each row when (old.v is distinct from new.v) execute function g()",
    "alter table u alter column p type bigint",
    "create policy p on u using (id > 0)",
    "alter table u enable row level security",
    "create type mood as enum ('a', 'b')",
    "alter type mood add value 'c'",
    "create type pair as (x int, y mood)",
    "create domain d as int check (value > 0)",
    "alter table u add column d d, add column mood mood default 'a', add column pair pair",
    "alter domain d set default 1",
    "alter domain d add check (value > 1)",
    "create sequence q",
    "alter sequence q owned by u.id",
    "alter table u alter column id set default nextval('q')",
    "truncate u",
    "drop policy p on u",
    "drop trigger g on u",
    "drop function g()",
    "drop index s.t_w",
    "drop materialized view m",
    "drop view view1 cascade",
    "drop domain d cascade",
    "alter table u drop column pair",
    "drop type mood cascade",
    "drop table u",
    "drop type pair",
    "drop function f(int)",
    "drop table parent cascade",
    "drop table w, s.tt",
    "drop schema s",
    "drop role joe",
];

/// Walks all relations, as documented: who owns what is not kept by role.
const WALKS: &[&str] = &["drop role joe"];

const TEMPORARY: &[&str] = &[
    "create temporary table x (id serial primary key, v text)",
    "create index on x (v)",
    "alter table x add column n int default 1",
    "comment on table x is 'text'",
    "comment on constraint x_pkey on x is 'text'",
    "create temporary view xx as select * from x",
    "drop table x cascade",
];

/// Types are found by their bare names, as in a session.
fn search() {
    user::search(&Rc::from(["public".to_owned()]));
}

fn tables(world: &World, from: usize, to: usize) {
    for n in from..to {
        let sql = format!(
            "create table other{n} (id int primary key, v text, check (id > 0)); comment on table other{n} is 'one'; \
             create view look{n} as select * from other{n}"
        );
        world.run(&sql).unwrap();
    }
}

#[test]
fn a_statement_looks_at_no_other_table() {
    search();
    let world = World::new();
    let temporary = Rc::new(TempObjects::new(&world.store, 7));
    let run = |sql: &str| {
        let before = visited();
        let mut open = world.begin();
        if TEMPORARY.contains(&sql) {
            open.state = DdlState::of(&temporary, DatabaseOid::new(0));
        }
        world
            .run_in(&mut open, sql)
            .unwrap_or_else(|e| panic!("{sql}: {e}"));
        block_on(open.txn.precommit()).unwrap();
        visited() - before
    };
    let mut at = 0;
    let mut seen: Vec<Vec<u64>> = Vec::new();
    // Twice at first: what is made once and kept is there.
    for size in [10, 10, 100, 1_000] {
        tables(&world, at, size);
        at = size;
        let all = STATEMENTS.iter().chain(TEMPORARY);
        seen.push(all.map(|sql| run(sql)).collect());
    }
    let all = STATEMENTS.iter().chain(TEMPORARY).enumerate();
    let mut growing = Vec::new();
    for (at, sql) in all.filter(|(_, sql)| !WALKS.contains(sql)) {
        let costs: Vec<u64> = seen.iter().skip(1).map(|costs| costs[at]).collect();
        if costs.iter().any(|cost| *cost != costs[0]) {
            growing.push(format!("{costs:?} {sql}"));
        }
    }
    assert_eq!(growing, Vec::<String>::new());
}

/// What refers to what, from the definitions alone.
fn expected(catalog: &Catalog) -> BTreeSet<(u32, Dependent)> {
    let mut all = BTreeSet::new();
    let mut add = |dependent: Dependent, refers: BTreeSet<u32>| {
        all.extend(refers.into_iter().map(|object| (object, dependent)));
    };
    for relation in catalog.relations.values() {
        let refers = dependents_index::of_relation(relation);
        add(Dependent::Relation(relation.oid), refers);
    }
    for ty in catalog.types.all() {
        add(Dependent::Type(ty.oid), dependents_index::of_user_type(ty));
    }
    for routine in catalog.routines.all() {
        add(
            Dependent::Routine(routine.oid),
            dependents_index::of_routine(routine),
        );
    }
    for trigger in catalog.triggers.all() {
        let dependent = Dependent::Trigger(trigger.table, trigger.oid);
        add(dependent, dependents_index::of_trigger(trigger));
    }
    all
}

fn check(catalog: &Catalog, after: &str) {
    assert_eq!(catalog.dependents.all(), expected(catalog), "{after}");
    let constraints = |r: &logstead_sql_catalog::Relation| {
        let all = r.constraints.iter();
        all.map(|c| (c.oid, r.oid)).collect::<Vec<_>>()
    };
    let expected: BTreeSet<_> = catalog
        .relations
        .values()
        .flat_map(|r| constraints(r))
        .collect();
    let kept = catalog.constraint_tables.iter();
    let kept: BTreeSet<_> = kept.map(|(oid, table)| (*oid, *table)).collect();
    assert_eq!(kept, expected, "{after}");
    let names: usize = catalog.constraint_names.iter().map(|(_, n)| *n).sum();
    assert_eq!(names, expected.len(), "{after}");
    for (oid, schema) in &catalog.schemas {
        assert_eq!(catalog.schema(&schema.name).map(|s| s.oid), Some(*oid));
    }
    let comments: BTreeSet<_> = catalog
        .notes
        .comments
        .iter()
        .map(|(key, _)| key.1)
        .collect();
    assert_eq!(catalog.notes.comments.objects(), comments, "{after}");
}

#[test]
fn what_refers_to_what_follows_from_the_definitions() {
    search();
    let world = World::new();
    tables(&world, 0, 3);
    let at_first = world.catalog().dependents.all();
    for sql in STATEMENTS {
        world.run(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        check(&world.catalog(), sql);
        if sql.starts_with("drop policy") {
            // All kinds of objects are there.
            let kinds = |kind: fn(&Dependent) -> bool| {
                let all = world.catalog().dependents.all();
                all.iter().filter(|(_, dependent)| kind(dependent)).count()
            };
            assert!(kinds(|d| matches!(d, Dependent::Type(_))) > 0);
            assert!(kinds(|d| matches!(d, Dependent::Routine(_))) > 0);
            assert!(kinds(|d| matches!(d, Dependent::Trigger(..))) > 0);
            let reopened = World::open({
                world.worker.flush(logstead_engine::FlushMode::Inline);
                let home = world.home.clone();
                home.crash();
                home
            });
            check(&reopened.catalog(), "a start");
            return check_rest(reopened, &at_first);
        }
    }
}

/// The statements after the start, to the end.
fn check_rest(world: World, at_first: &BTreeSet<(u32, Dependent)>) {
    let rest = STATEMENTS.iter();
    let rest = rest.skip_while(|sql| !sql.starts_with("drop trigger"));
    for sql in rest {
        world.run(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        check(&world.catalog(), sql);
    }
    assert_eq!(world.catalog().dependents.all(), *at_first);
    let is_user = |r: &&std::sync::Arc<logstead_sql_catalog::Relation>| {
        !matches!(r.kind, RelationKind::Virtual(_))
    };
    assert_eq!(
        world.catalog().relations.values().filter(is_user).count(),
        6
    );
}
