//! Sequences: limits, errors, and that no value comes twice, whatever crashes.

use super::world::*;
use logstead_sql_catalog::{Catalog, SequenceSession};

fn oid(catalog: &Catalog, name: &str) -> u32 {
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
    let inside = open.state.catalog(&world.store, "postgres").unwrap();
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
    let inside = open.state.catalog(&world.store, "postgres").unwrap();
    let fresh = oid(&inside, "fresh");
    assert_eq!(
        session
            .nextval(&world.store, &world.worker, &inside, fresh, |_| ())
            .unwrap(),
        7
    );
}
