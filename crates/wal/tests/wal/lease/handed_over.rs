//! A lease that a process hands over to another one, before it ends.

use super::{LEASE, World};
use logstead_env::{Clock, Env};
use logstead_home::LogHome;
use logstead_wal::lease::{Lease, LeaseOptions};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn a_lease_that_is_handed_over_is_its_successors_alone() {
    let world = World::new();
    let claim = |number: u32, predecessor: Option<u64>| {
        let process = world.process(number);
        let options = LeaseOptions {
            predecessor,
            machine_is_never_copied: false,
            ..process.options.lease
        };
        let env = Env {
            clock: Arc::clone(&world.clock) as _,
            ..Env::real()
        };
        let begun = world.clock.boot_time();
        let taken = Lease::claim(&LogHome::from(process.home), &env, &options);
        (taken, world.clock.boot_time() - begun)
    };
    let (first, _) = claim(1, None);
    let owner = first.unwrap().owner();
    // Nobody else has it before it runs out, whatever they say they succeed.
    let (other, waited) = claim(2, Some(owner + 1));
    assert!(waited >= LEASE, "{waited:?}");
    let second = other.unwrap();
    let (third, waited) = claim(3, Some(second.owner()));
    assert_eq!(waited, Duration::ZERO);
    assert!(third.unwrap().is_valid());
    // It was another's since.
    let (fourth, waited) = claim(4, Some(second.owner()));
    assert!(waited >= LEASE, "{waited:?}");
    drop(fourth);
}
