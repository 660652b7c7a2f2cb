//! For tests: a workload after a short run, and what its checks say when somebody has broken something.

use std::sync::Arc;

use logstead_engine::{
    CommitOptions, Engine, Env, Isolation, RowBuilder, Txn, WorkerId, WorkerLoop,
};

use crate::access::{Store, number, rewrite};
use crate::driver::{BenchEngine, ConsistencyCheck, Workload};
use crate::options::{CommonOptions, Home, Label, RunConfig, RunLimit, WorkloadKind};
use crate::progress::NoProgress;

fn cell() -> RunConfig {
    RunConfig {
        label: Label {
            section: "test".into(),
            series: "test".into(),
            x: None,
        },
        kind: WorkloadKind::Load { rows: 0 },
        common: CommonOptions {
            workers: 1,
            instances: 1,
            cross_instance: 0.0,
            until: RunLimit::Transactions(300),
            isolation: Isolation::ReadCommitted,
            home: Home::Memory,
            open_loop: None,
            in_flight: 4,
            commit: CommitOptions {
                flush_unit_bytes: 4096,
                ..CommitOptions::default()
            },
            delta_records: true,
            seed: 1,
        },
    }
}

/// Names of the conditions that do not hold.
fn broken_of(checks: &[ConsistencyCheck]) -> Vec<String> {
    checks
        .iter()
        .filter(|check| check.result.is_err())
        .map(|check| check.name.clone())
        .collect()
}

/// Loads, runs, then lets `break_it` change something, and gives the conditions that do not hold any more.
pub(crate) fn broken<W: Workload>(
    make: impl FnOnce(&Engine) -> W,
    break_it: impl AsyncFnOnce(&W, &mut Txn, &mut RowBuilder),
) -> Vec<String> {
    let stop = Arc::default();
    let stage = BenchEngine::open(&cell().common, None, &Env::real(), &stop).expect("opens");
    let workload = Arc::new(make(&stage.engine));
    stage.load(&workload, 1, &mut NoProgress).expect("loads");
    let outcome = stage
        .run(&workload, &cell(), &mut NoProgress)
        .expect("runs");
    assert_eq!(broken_of(&outcome.checks), Vec::<String>::new());
    let worker_loop = WorkerLoop::new(&stage.engine, WorkerId(0));
    let mut txn = worker_loop.worker().begin(Isolation::ReadCommitted);
    worker_loop.block_on(async {
        break_it(&workload, &mut txn, &mut RowBuilder::new()).await;
        txn.commit().await.expect("commits");
    });
    let mut txn = worker_loop.worker().begin(Isolation::RepeatableRead);
    broken_of(&workload.check(&mut txn))
}

/// Adds one to a column of a row.
pub(crate) async fn add(
    store: &Store,
    txn: &mut Txn,
    builder: &mut RowBuilder,
    key: &[u8],
    column: usize,
) {
    store
        .must_update(txn, key, builder, |row, builder| {
            let value = number(row, column).wrapping_add(1);
            rewrite(row, builder, &[(column, &value.to_be_bytes())]);
        })
        .await
        .expect("updates");
}
