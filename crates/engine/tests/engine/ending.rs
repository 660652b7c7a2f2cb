//! What must not go on after a panic.

use std::os::unix::process::ExitStatusExt;

use logstead_engine::{Isolation, Outcome};

use crate::world::*;

const CHILD: &str = "LOGSTEAD_TEST_PANICS";

/// The test `name`, run in a process of its own, commits a transaction whose hook panics, and ends it.
fn ends_the_process(name: &str, writes: bool) {
    if std::env::var_os(CHILD).is_some() {
        let (world, worker) = World::with_accounts(1, 1);
        let mut txn = worker.begin(Isolation::ReadCommitted);
        if writes {
            world.update(&mut txn, 1, |b| b + 1).expect("update");
        }
        txn.on_end(Box::new(|outcome| {
            assert!(matches!(outcome, Outcome::Aborted), "as the test wants it");
        }));
        let _caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| commit(txn)));
        return;
    }
    let output = std::process::Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", name])
        .arg("--nocapture")
        .env(CHILD, "1")
        .output()
        .expect("runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(6), "aborted: {said}");
    assert!(
        said.contains("panicked while committing a transaction"),
        "{said}"
    );
}

/// A panic between the draw of a CSN and the end of the commit would leave readers spinning, or half of what the
/// transaction publishes: the process ends, and says why.
#[test]
fn a_panic_while_committing_ends_the_process() {
    ends_the_process("ending::a_panic_while_committing_ends_the_process", true);
}

/// One that has changed temporary tables only, or nothing, publishes what its hooks do all the same.
#[test]
fn a_panic_while_committing_without_log_ends_the_process() {
    ends_the_process(
        "ending::a_panic_while_committing_without_log_ends_the_process",
        false,
    );
}
