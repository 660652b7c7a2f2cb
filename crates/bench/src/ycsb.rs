//! YCSB: reads and updates by key of rows with ten 8-byte fields.
//!
//! Departure: an update adds one to a field instead of overwriting it with random bytes. It costs the same, and a lost
//! update shows: after the run the fields' sum must have grown by the number of committed updates.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use logstead_engine::{Csn, Engine, RowBuilder, RowRef, Txn};

use crate::access::{KeyPart, Store, TxnError, number, present, rewrite};
use crate::driver::{ConsistencyCheck, Loader, TransactionEnd, WorkShare, Workload};
use crate::needless::{Trace, Tracer};
use crate::options::Ycsb as Parameters;
use crate::placement::{Placement, WantedKey};
use crate::random::{KeyGenerator, Rng};

/// Apart from the tables of TPC-C, beside which it may run.
const TABLE: u32 = 30_000;
const FIELDS: usize = 10;
/// In a traced run: who wrote the row last.
const TOKEN: usize = FIELDS + 1;

/// See the module's documentation.
pub(crate) struct Ycsb {
    parameters: Parameters,
    keys: KeyGenerator,
    store: Store,
    /// Where keys lie, if there are several instances.
    placement: Option<Placement>,
    /// Sum of all fields as loaded; sums wrap.
    loaded: AtomicU64,
    /// Committed updates.
    updates: AtomicU64,
    /// Who read whose rows, if that is wanted.
    trace: Option<Arc<Trace>>,
}

#[derive(Clone, Copy)]
struct Operation {
    key: u64,
    /// The field to change; `None` reads.
    field: Option<usize>,
}

pub(crate) struct Client {
    rng: Rng,
    worker: usize,
    operations: Vec<Operation>,
    builder: RowBuilder,
    /// What was read: kept, so that reading is not optimised away.
    seen: i64,
    tracer: Option<Tracer>,
}

/// The sum of a row's fields.
fn sum(row: RowRef<'_>) -> i64 {
    (1..=FIELDS).fold(0, |sum, field| sum.wrapping_add(number(row, field)))
}

impl Ycsb {
    pub(crate) fn new(engine: &Engine, parameters: &Parameters) -> Ycsb {
        Ycsb {
            keys: KeyGenerator::new(parameters.distribution, parameters.table_size),
            parameters: parameters.clone(),
            store: Store::divided(engine, TABLE, &[KeyPart::Fixed(0)], 8),
            placement: None,
            loaded: AtomicU64::new(0),
            updates: AtomicU64::new(0),
            trace: None,
        }
    }

    /// The same, with sessions that keep to keys of their instances, but for a share of their transactions.
    pub(crate) fn placed(self, engine: &Engine, cross: f64) -> Ycsb {
        Ycsb {
            placement: Placement::of(engine, cross),
            ..self
        }
    }

    /// The same, with the writer's token in every row that was updated.
    pub(crate) fn traced(engine: &Engine, parameters: &Parameters, trace: &Arc<Trace>) -> Ycsb {
        Ycsb {
            trace: Some(Arc::clone(trace)),
            ..Ycsb::new(engine, parameters)
        }
    }
}

/// What the checks expect.
pub(crate) struct ExpectedCounts {
    loaded: u64,
    updates: u64,
}

impl Ycsb {
    /// What the checks expect, for who looks at the same rows after a crash.
    pub(crate) fn counted(&self) -> ExpectedCounts {
        ExpectedCounts {
            loaded: self.loaded.load(Ordering::Relaxed),
            updates: self.updates.load(Ordering::Relaxed),
        }
    }

    /// The rows are there already.
    pub(crate) fn expect(&self, counted: ExpectedCounts) {
        self.loaded.store(counted.loaded, Ordering::Relaxed);
        self.updates.store(counted.updates, Ordering::Relaxed);
    }

    /// Fills the index from the rows.
    pub(crate) fn build_index(&self, txn: &mut Txn) -> Result<(), String> {
        txn.build_index(&self.store.table, &self.store.primary)
            .map_err(|error| error.to_string())
    }

    /// Reads the first row.
    pub(crate) fn read_one(&self, txn: &mut Txn) -> Result<(), String> {
        txn.begin_statement();
        let key = 0_u64.to_be_bytes();
        present(txn, |txn, guard| {
            let row = txn.get(&self.store.primary, &key, guard)?;
            Ok(row.map(|_| ()))
        })
        .ok_or_else(|| "the first row is missing".to_owned())
    }
}

impl Workload for Ycsb {
    type Client = Client;

    const KINDS: &'static [&'static str] = &["read only", "with updates"];

    async fn load(&self, seat: WorkShare, mut rng: Rng, into: &mut Loader) -> Result<(), TxnError> {
        let mut builder = RowBuilder::new();
        let mut loaded = 0_u64;
        for key in seat.part(self.parameters.table_size) {
            builder.start(1, FIELDS + 1 + usize::from(self.trace.is_some()));
            builder.push(Some(&key.to_be_bytes()));
            for _ in 0..FIELDS {
                let value = rng.bits();
                loaded = loaded.wrapping_add(value);
                builder.push(Some(&value.to_be_bytes()));
            }
            if self.trace.is_some() {
                builder.push(Some(&0_u64.to_be_bytes()));
            }
            into.insert(&self.store.table, builder.finish()).await?;
        }
        self.loaded.fetch_add(loaded, Ordering::Relaxed);
        Ok(())
    }

    fn client(&self, seat: WorkShare, rng: Rng) -> Client {
        Client {
            tracer: self.trace.as_ref().map(|trace| Tracer::new(trace, seat)),
            rng,
            worker: seat.worker,
            operations: Vec::with_capacity(self.parameters.operations as usize),
            builder: RowBuilder::new(),
            seen: 0,
        }
    }

    fn draw(&self, client: &mut Client) -> usize {
        client.operations.clear();
        let placement = self.placement.as_ref();
        let crosses = placement.is_some_and(|placement| placement.crosses(&mut client.rng));
        for n in 0..self.parameters.operations {
            let reads = client.rng.unit() < self.parameters.read_ratio;
            let mut key = self.keys.draw(&mut client.rng);
            if let Some(placement) = placement {
                let wanted = match (crosses, n) {
                    (false, _) => WantedKey::Own,
                    (true, 0) => WantedKey::Foreign,
                    (true, _) => WantedKey::Any,
                };
                let count = self.parameters.table_size;
                key = placement.choose(client.worker, key, count, wanted);
            }
            client.operations.push(Operation {
                key,
                field: (!reads).then(|| 1 + client.rng.below(FIELDS as u64) as usize),
            });
        }
        usize::from(client.operations.iter().any(|o| o.field.is_some()))
    }

    async fn execute(
        &self,
        client: &mut Client,
        txn: &mut Txn,
    ) -> Result<TransactionEnd, TxnError> {
        let Client {
            operations,
            builder,
            seen,
            tracer,
            ..
        } = client;
        let token = tracer.as_mut().map(Tracer::begin);
        for operation in operations.iter() {
            let key = operation.key.to_be_bytes();
            let mut read = |row: RowRef<'_>| {
                if let Some(tracer) = tracer.as_mut() {
                    tracer.read(number(row, TOKEN) as u64);
                }
            };
            if operation.field.is_none() || self.parameters.read_modify_write {
                *seen ^= self
                    .store
                    .must_read(txn, &key, |row| {
                        read(row);
                        sum(row)
                    })
                    .await?;
            }
            if let Some(field) = operation.field {
                self.store
                    .must_update(txn, &key, builder, |row, builder| {
                        read(row);
                        let value = number(row, field).wrapping_add(1).to_be_bytes();
                        match token {
                            None => rewrite(row, builder, &[(field, &value)]),
                            Some(token) => {
                                let changes: [(usize, &[u8]); 2] =
                                    [(field, &value), (TOKEN, &token.to_be_bytes())];
                                rewrite(row, builder, &changes);
                            }
                        }
                    })
                    .await?;
            }
        }
        Ok(TransactionEnd::Commit)
    }

    fn committed(&self, client: &mut Client, csn: Option<Csn>) {
        if let (Some(tracer), Some(csn)) = (&mut client.tracer, csn) {
            tracer.committed(csn);
        }
        let updates = client
            .operations
            .iter()
            .filter(|o| o.field.is_some())
            .count();
        if updates > 0 {
            self.updates.fetch_add(updates as u64, Ordering::Relaxed);
        }
    }

    fn check(&self, txn: &mut Txn) -> Vec<ConsistencyCheck> {
        let (mut rows, mut found) = (0_u64, 0_i64);
        self.store.scan(txn, |row| {
            rows += 1;
            found = found.wrapping_add(sum(row));
        });
        let size = self.parameters.table_size;
        let (loaded, updates) = (
            self.loaded.load(Ordering::Relaxed),
            self.updates.load(Ordering::Relaxed),
        );
        let gained = (found as u64).wrapping_sub(loaded);
        vec![
            ConsistencyCheck::new(
                "every row is there",
                (rows == size)
                    .then_some(())
                    .ok_or_else(|| format!("{rows} rows of {size}")),
            ),
            ConsistencyCheck::new(
                "every committed update is there once",
                (gained == updates)
                    .then_some(())
                    .ok_or_else(|| format!("{updates} committed, {gained} found")),
            ),
            ConsistencyCheck::new("index and table agree", self.store.check_indexes(txn)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Distribution;
    use crate::testing::{add, broken};

    fn make(engine: &Engine) -> Ycsb {
        let parameters = Parameters {
            table_size: 100,
            read_ratio: 0.5,
            read_modify_write: false,
            operations: 3,
            distribution: Distribution::Uniform,
            traced: false,
        };
        Ycsb::new(engine, &parameters)
    }

    #[test]
    fn an_update_that_nobody_committed_is_found() {
        let found = broken(make, async |ycsb, txn, builder| {
            add(&ycsb.store, txn, builder, &7_u64.to_be_bytes(), 3).await;
        });
        assert_eq!(found, ["every committed update is there once"]);
    }

    #[test]
    fn a_lost_row_is_found() {
        let found = broken(make, async |ycsb, txn, _| {
            let key = 7_u64.to_be_bytes();
            assert!(ycsb.store.delete(txn, &key).await.expect("deletes"));
        });
        assert_eq!(
            found,
            ["every row is there", "every committed update is there once"]
        );
    }
}
