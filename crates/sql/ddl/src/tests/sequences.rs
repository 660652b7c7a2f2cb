//! Sequences: limits, errors, and that no value comes twice, whatever crashes.

use super::world::*;
use logstead_sql_catalog::{Catalog, RelationKind, SequenceSession};
use logstead_sql_types::RelationId;

fn oid(catalog: &Catalog, name: &str) -> RelationId {
    catalog
        .object_by_name(None, name, &["public".to_owned()])
        .unwrap()
}

fn next(world: &World, session: &mut SequenceSession, name: &str) -> Result<i64, String> {
    let catalog = world.catalog();
    let oid = oid(&catalog, name);
    session
        .nextval(&world.store, &world.worker, &catalog, oid, |_| ())
        .map_err(|e| e.to_string())
}

#[test]
fn a_crash_repeats_no_value() {
    let mut world = World::new();
    world.run("create sequence s").unwrap();
    let mut last = 0;
    for _ in 0..3 {
        let mut session = SequenceSession::default();
        for _ in 0..40 {
            let value = next(&world, &mut session, "s").unwrap();
            assert!(value > last && value <= last + 33, "{value} after {last}");
            last = value;
        }
        world = world.reopen();
    }
}

#[test]
fn limits_and_cycles() {
    let world = World::new();
    world
        .run("create sequence up minvalue 1 maxvalue 3")
        .unwrap();
    world
        .run(
            "create sequence round maxvalue 2 cycle; create sequence down increment -2 minvalue -3",
        )
        .unwrap();
    let mut session = SequenceSession::default();
    let mut values = |name: &str, n: usize| -> Vec<_> {
        (0..n).map(|_| next(&world, &mut session, name)).collect()
    };
    let end = "2200H: nextval: reached maximum value of sequence \"up\" (3)".to_owned();
    assert_eq!(values("up", 4), [Ok(1), Ok(2), Ok(3), Err(end)]);
    assert_eq!(values("round", 4), [Ok(1), Ok(2), Ok(1), Ok(2)]);
    let end = "2200H: nextval: reached minimum value of sequence \"down\" (-3)".to_owned();
    assert_eq!(values("down", 3), [Ok(-1), Ok(-3), Err(end)]);
}

#[test]
fn sessions_see_their_own_values() {
    let world = World::new();
    world.run("create sequence s").unwrap();
    let catalog = world.catalog();
    let s = oid(&catalog, "s");
    let (mut a, b) = (SequenceSession::default(), SequenceSession::default());
    let fresh = b.currval(&catalog, s).unwrap_err().to_string();
    assert_eq!(
        fresh,
        "55000: currval of sequence \"s\" is not yet defined in this session"
    );
    assert_eq!(
        b.lastval(&catalog).unwrap_err().to_string(),
        "55000: lastval is not yet defined in this session"
    );
    a.setval(&world.store, &world.worker, &catalog, s, 41, true)
        .unwrap();
    assert_eq!(next(&world, &mut a, "s"), Ok(42));
    assert_eq!(a.currval(&catalog, s).unwrap(), 42);
    assert_eq!(a.lastval(&catalog).unwrap(), 42);
    let error = a
        .setval(&world.store, &world.worker, &catalog, s, 0, true)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "22003: setval: value 0 is out of bounds for sequence \"s\" (1..9223372036854775807)"
    );
}

#[test]
fn restart_rolls_back_and_values_do_not() {
    let world = World::new();
    world.run("create sequence s").unwrap();
    let mut session = SequenceSession::default();
    assert_eq!(next(&world, &mut session, "s"), Ok(1));
    let mut open = world.begin();
    world
        .run_in(&mut open, "alter sequence s restart with 100")
        .unwrap();
    let inside = open
        .state
        .catalog(&world.store, "postgres", &mut open.txn)
        .unwrap();
    let s = oid(&inside, "s");
    assert_eq!(
        session
            .nextval(&world.store, &world.worker, &inside, s, |_| ())
            .unwrap(),
        100
    );
    open.txn.abort();
    assert_eq!(next(&world, &mut session, "s"), Ok(2));
    world.run("alter sequence s restart").unwrap();
    assert_eq!(next(&world, &mut session, "s"), Ok(1));
    // A sequence of a transaction that is still open.
    let mut open = world.begin();
    world
        .run_in(&mut open, "create sequence fresh start 7")
        .unwrap();
    let inside = open
        .state
        .catalog(&world.store, "postgres", &mut open.txn)
        .unwrap();
    let fresh = oid(&inside, "fresh");
    assert_eq!(
        session
            .nextval(&world.store, &world.worker, &inside, fresh, |_| ())
            .unwrap(),
        7
    );
}

#[test]
fn options_come_in_any_order_and_once() {
    let world = World::new();
    world
        .run("create sequence s as int no cycle start with -5 cache 1 increment by -2 no maxvalue minvalue -9")
        .unwrap();
    let definition = |name: &str| {
        let catalog = world.catalog();
        let oid = oid(&catalog, name);
        match &catalog.relations[&oid].kind {
            RelationKind::Sequence(def) => def.clone(),
            _ => panic!("{name}"),
        }
    };
    let s = definition("s");
    assert_eq!((s.start, s.cache, s.increment), (-5, 1, -2));
    assert_eq!((s.min, s.max, s.cycle), (-9, -1, false));
    let twice = "conflicting or redundant options";
    for (text, message, at) in [
        ("CREATE SEQUENCE q START 1 CACHE 2 START 3", twice, Some(35)),
        (
            "CREATE SEQUENCE q SEQUENCE NAME q",
            "invalid sequence option SEQUENCE NAME",
            Some(19),
        ),
        (
            "CREATE TABLE t (a int GENERATED ALWAYS AS IDENTITY (AS int))",
            twice,
            Some(53),
        ),
        (
            "CREATE SEQUENCE q START 99999999999999999999",
            "value \"99999999999999999999\" is out of range for type bigint",
            None,
        ),
    ] {
        let error = world.run(text).unwrap_err();
        assert_eq!(error.fields().message, message, "{text}");
        assert_eq!(error.fields().position, at, "{text}");
    }
}

#[test]
fn the_sequence_of_an_identity_column_is_changed() {
    let world = World::new();
    world
        .run("create table t (a int generated by default as identity (start -3 minvalue -9))")
        .unwrap();
    world
        .run("ALTER TABLE t ALTER a RESTART SET GENERATED ALWAYS SET NO MINVALUE SET START 5")
        .unwrap();
    let catalog = world.catalog();
    let table = catalog.relation(None, "t", &world.path).unwrap();
    assert_eq!(table.columns[0].identity, Some(true));
    let sequence = &catalog.relations[&table.columns[0].sequence.unwrap()];
    let RelationKind::Sequence(def) = &sequence.kind else {
        panic!("{}", sequence.name);
    };
    assert_eq!((def.start, def.min), (5, 1));
    let mut session = SequenceSession::default();
    assert_eq!(next(&world, &mut session, "t_a_seq"), Ok(5));
    for (text, at) in [
        (
            "ALTER TABLE t ALTER a SET START 1 SET CACHE 2 SET START 3",
            51,
        ),
        (
            "ALTER TABLE t ALTER a SET GENERATED ALWAYS SET GENERATED BY DEFAULT",
            44,
        ),
    ] {
        let error = world.run(text).unwrap_err();
        assert_eq!(error.fields().message, "conflicting or redundant options");
        assert_eq!(error.fields().position, Some(at), "{text}");
    }
}

#[test]
fn reset_of_parameters_has_no_values() {
    let world = World::new();
    world
        .run("create table t (a int primary key) with (fillfactor = 70, autovacuum_enabled = off)")
        .unwrap();
    let options = |world: &World, name: &str| {
        let catalog = world.catalog();
        let oid = oid(&catalog, name);
        catalog.options_of(oid).to_vec()
    };
    world
        .run("ALTER TABLE t RESET (fillfactor, toast.autovacuum_enabled)")
        .unwrap();
    assert_eq!(options(&world, "t"), ["autovacuum_enabled=off"]);
    world
        .run("ALTER INDEX t_pkey SET (fillfactor = 70)")
        .unwrap();
    assert_eq!(options(&world, "t_pkey"), ["fillfactor=70"]);
    world
        .run("ALTER INDEX t_pkey RESET (fillfactor, x.y)")
        .unwrap();
    assert!(options(&world, "t_pkey").is_empty());
    for text in [
        "ALTER TABLE t RESET (fillfactor = 1)",
        "ALTER INDEX t_pkey RESET (fillfactor = 1)",
    ] {
        let error = world.run(text).unwrap_err();
        assert_eq!(error.code().as_str(), "42601");
        let message = "RESET must not include values for parameters";
        assert_eq!(error.fields().message, message);
    }
}
