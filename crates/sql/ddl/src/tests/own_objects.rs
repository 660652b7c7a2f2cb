//! Which statements are about a session's own objects alone.

use super::world::{World, block_on};
use crate::{DdlState, is_of_own_objects};
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::context::partial::ContextAdapter;
use logstead_sql_catalog::name_lookup::NameLookup;
use logstead_sql_catalog::{Catalog, RecordShapes, Relation, TempObjects};
use logstead_sql_parse::parse;
use logstead_sql_types::DatabaseOid;
use std::rc::Rc;
use std::sync::Arc;

const OWN: &[&str] = &[
    "CREATE TEMP TABLE x (a int)",
    "CREATE TABLE pg_temp.x (a int)",
    "CREATE TABLE pg_temp_7.x (a int)",
    "CREATE TEMP TABLE x AS SELECT * FROM lasts",
    "SELECT * INTO TEMP x FROM lasts",
    "CREATE TEMP VIEW x AS SELECT * FROM lasts",
    "CREATE TEMP SEQUENCE x",
    "CREATE FUNCTION pg_temp.x() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE AGGREGATE pg_temp.x (int) (SFUNC = int4pl, STYPE = int)",
    "CREATE INDEX ON own (a)",
    "CREATE POLICY p ON own USING (true)",
    "ALTER TABLE own ADD b int",
    "ALTER TABLE IF EXISTS nothing ADD b int",
    "ALTER SEQUENCE own_s RESTART",
    "ALTER INDEX own_i RENAME TO j",
    "ALTER TABLE own RENAME a TO b",
    "ALTER TABLE own RENAME CONSTRAINT c TO d",
    "ALTER FUNCTION pg_temp.x() IMMUTABLE",
    "DROP TABLE own",
    "DROP TABLE pg_temp.nothing",
    "DROP TABLE IF EXISTS own, nothing",
    "DROP INDEX own_i",
    "DROP FUNCTION pg_temp.x()",
    "DROP TRIGGER t ON own",
    "TRUNCATE own",
    "COMMENT ON TABLE own IS 'x'",
    "COMMENT ON COLUMN own.a IS 'x'",
    "COMMENT ON INDEX own_i IS 'x'",
    "COPY own FROM stdin",
    "ANALYZE own",
    "VACUUM own",
    "REINDEX INDEX own_i",
    "CLUSTER own USING own_i",
];

const OTHERS: &[&str] = &[
    "CREATE TABLE x (a int)",
    "CREATE TABLE public.x (a int)",
    "CREATE TABLE pg_temp_8.x (a int)",
    "CREATE MATERIALIZED VIEW pg_temp.x AS SELECT 1",
    "CREATE FUNCTION x() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE TYPE pg_temp.x AS (a int)",
    "CREATE INDEX ON lasts (a)",
    "CREATE TRIGGER t BEFORE INSERT ON lasts FOR EACH ROW EXECUTE FUNCTION f()",
    "ALTER TABLE lasts ADD b int",
    "ALTER TABLE nothing ADD b int",
    "ALTER TABLE own OWNER TO postgres",
    "ALTER TABLE own SET SCHEMA public",
    "ALTER TYPE own ADD ATTRIBUTE b int",
    "DROP TABLE own, lasts",
    "DROP TABLE IF EXISTS own, lasts",
    "DROP TABLE nothing",
    "DROP TABLE public.own",
    "DROP SCHEMA pg_temp",
    "DROP FUNCTION f()",
    "DROP TRIGGER t ON lasts",
    "TRUNCATE own, lasts",
    "COMMENT ON TABLE lasts IS 'x'",
    "COMMENT ON COLUMN lasts.a IS 'x'",
    "COMMENT ON DATABASE postgres IS 'x'",
    "GRANT SELECT ON own TO PUBLIC",
    "COPY lasts FROM stdin",
    "COPY own TO stdout",
    "ANALYZE",
    "ANALYZE own, lasts",
    "REINDEX TABLE lasts",
    "REINDEX SCHEMA pg_temp",
    "CLUSTER",
    "INSERT INTO own VALUES (1)",
];

/// By name alone, and where one object is another's the statement is not.
#[test]
fn a_statement_is_about_own_objects_if_all_of_it_is() {
    let world = World::new();
    world.run("CREATE TABLE lasts (a int)").unwrap();
    let temporary = Rc::new(TempObjects::new(&world.store, 7));
    let mut open = world.begin();
    open.state = DdlState::of(&temporary, DatabaseOid::new(0));
    let own = "CREATE TEMP TABLE own (a int CONSTRAINT c CHECK (a > 0)); CREATE INDEX own_i ON own (a); \
               CREATE TEMP SEQUENCE own_s; CREATE TABLE own2 (a int)";
    world.run_in(&mut open, own).unwrap();
    let catalog = open.state.catalog(&world.store, "postgres", &mut open.txn);
    let catalog = catalog.unwrap();
    let judged = |sql: &str, path: &[String]| {
        let lookup = NameLookup {
            catalog: &catalog,
            search_path: path,
            session: &ContextAdapter(&world.session),
        };
        let parsed = parse(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        parsed
            .iter()
            .all(|parsed| is_of_own_objects(&parsed.statement, lookup))
    };
    for sql in OWN {
        assert!(judged(sql, &world.path), "{sql}");
    }
    for sql in OTHERS {
        assert!(!judged(sql, &world.path), "{sql}");
    }
    // As the path says where things are made, and which of two is meant.
    let path = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    for (names, is_own) in [
        (&["pg_temp", "public"][..], true),
        (&["nowhere", "pg_catalog", "pg_temp_7", "public"], true),
        (&["public", "pg_temp"], false),
        (&["nowhere"], false),
    ] {
        assert_eq!(
            judged("CREATE TABLE x (a int)", &path(names)),
            is_own,
            "{names:?}"
        );
    }
    assert!(!judged("DROP TABLE own2", &world.path));
    block_on(open.txn.precommit()).unwrap();
}

/// What keeps values of a type knows it again by the fields of its records, however deep, and by nothing else.
#[test]
fn a_type_that_was_changed_beneath_a_temporary_table_is_told() {
    let world = World::new();
    let types = "CREATE TYPE mood AS ENUM ('a'); CREATE DOMAIN d AS int; CREATE TYPE inner_type AS (x int, y text); \
                 CREATE TYPE outer_type AS (i inner_type[], n int)";
    let table = "CREATE TABLE kept (a int, m mood, d d, o outer_type, e inner_type[])";
    world.run(&format!("{types}; {table}")).unwrap();
    let before = world.catalog();
    let kept = before.relations.values().find(|r| r.name == "kept");
    let mut own = Relation::clone(kept.unwrap());
    own.schema_name = "pg_temp_7".to_owned();
    let shapes = RecordShapes::of(&own, &before, None);
    let over = |base: &Catalog, own: &Relation, shapes: &RecordShapes| {
        let mut catalog = base.clone();
        CatalogChange::PutRelation(Arc::new(own.clone())).apply(&mut catalog);
        CatalogChange::RecordShapes(own.oid, Arc::new(shapes.clone())).apply(&mut catalog);
        let told = catalog.check_types_of_own(own);
        told.err()
            .map(|error| (error.code().to_string(), error.fields().message.to_string()))
    };
    assert_eq!(over(&before, &own, &shapes), None);
    world.run("DROP TABLE kept").unwrap();
    assert_eq!(over(&world.catalog(), &own, &shapes), None);
    let told = |sql: &str, own: &Relation, shapes: &RecordShapes| {
        world.run(sql).unwrap();
        let (code, message) = over(&world.catalog(), own, shapes)?;
        let column = message.split('"').nth(1).unwrap().to_owned();
        Some(format!("{column} {code}"))
    };
    // What rows do not hold may change.
    for sql in [
        "ALTER TYPE mood ADD VALUE 'b'",
        "ALTER TYPE mood RENAME TO temper",
        "ALTER TYPE inner_type RENAME ATTRIBUTE x TO z",
        "ALTER DOMAIN d SET NOT NULL",
    ] {
        assert_eq!(told(sql, &own, &shapes), None, "{sql}");
    }
    let changed = "ALTER TYPE inner_type ALTER ATTRIBUTE y TYPE int";
    assert_eq!(told(changed, &own, &shapes), Some("o 55000".to_owned()));
    // A column that has come since holds what is now; the others hold what they held.
    let mut altered = own.clone();
    altered.columns[3].dropped = true;
    let mut added = own.columns[4].clone();
    added.name = "later".to_owned();
    altered.columns.push(added);
    let now = RecordShapes::of(&altered, &world.catalog(), Some((&own, &shapes)));
    assert_eq!(over(&world.catalog(), &altered, &now).unwrap().0, "55000");
    altered.columns[4].dropped = true;
    let now = RecordShapes::of(&altered, &world.catalog(), Some((&own, &shapes)));
    assert_eq!(over(&world.catalog(), &altered, &now), None);
    assert_eq!(
        told("DROP DOMAIN d", &altered, &now),
        Some("d 42704".to_owned())
    );
    assert_eq!(
        told("DROP TYPE temper", &altered, &now),
        Some("m 42704".to_owned())
    );
    // Nobody asks for those of others.
    own.schema_name = "public".to_owned();
    assert_eq!(over(&world.catalog(), &own, &shapes), None);
}
