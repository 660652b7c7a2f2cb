//! The engine without SQL: accounts on a disk, transfers by several tasks on two workers, and everything there again
//! after the log is opened once more.
//!
//! `cargo run -p logstead-engine --example embedded -- DIRECTORY`; each further run goes on with what is there.

use logstead_home::LogHome;
use std::error::Error;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use logstead_engine::{
    CommitError, Engine, EngineOptions, Env, ExpectPresent, Guard, Index, IndexId, Isolation,
    KeyExtractor, KeyKind, LocalHome, LocalOptions, RowBuilder, RowRef, ScanCursor, Table, TableId,
    Txn, WorkerId, WorkerLoop, WriteError, yield_now,
};

const WORKERS: u16 = 2;
const TASKS_PER_WORKER: u32 = 8;
const TRANSFERS_PER_TASK: u32 = 50;
const ACCOUNTS: u32 = 20;
const OPENING_BALANCE: i64 = 100;

struct ById;

impl KeyExtractor for ById {
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        match row.column(0) {
            Some(bytes) => {
                out.extend_from_slice(bytes);
                KeyKind::Unique
            }
            None => KeyKind::Absent,
        }
    }

    fn keys(&self) -> u64 {
        1
    }
}

struct Bank {
    engine: Engine,
    accounts: Arc<Table>,
    by_id: Arc<Index>,
}

fn account(id: u32, balance: i64) -> Vec<u8> {
    let mut row = RowBuilder::new();
    row.start(1, 2);
    row.push(Some(&id.to_be_bytes()));
    row.push(Some(&balance.to_be_bytes()));
    row.finish().to_vec()
}

fn balance(row: RowRef<'_>) -> i64 {
    row.column(1)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, i64::from_be_bytes)
}

impl Bank {
    /// Opens the log, which brings back the rows, and builds the index over them.
    fn open(directory: &Path) -> Result<Bank, Box<dyn Error>> {
        let env = Env::real();
        let home = LocalHome::open(directory, &env, LocalOptions::default())?;
        let options = EngineOptions {
            workers: usize::from(WORKERS),
            ..EngineOptions::default()
        };
        let (engine, _) = Engine::open(options, LogHome::from(home), env)?;
        let accounts = engine.create_table(TableId(20_000));
        let by_id = engine.create_index(&accounts, IndexId(20_001), true, Arc::new(ById));
        let worker_loop = WorkerLoop::new(&engine, WorkerId(0));
        let mut txn = worker_loop.worker().begin(Isolation::ReadCommitted);
        txn.build_index(&accounts, &by_id)?;
        if accounts.row_count_estimate() == 0 {
            for id in 0..ACCOUNTS {
                txn.insert(&accounts, &account(id, OPENING_BALANCE))?;
            }
        }
        worker_loop.block_on(txn.commit())?;
        Ok(Bank {
            engine,
            accounts,
            by_id,
        })
    }

    /// Adds to an account as an UPDATE does in READ COMMITTED: who holds the row is waited for, then its newest version
    /// is changed.
    async fn add(&self, txn: &mut Txn, id: u32, amount: i64) -> Result<(), WriteError> {
        txn.begin_statement();
        loop {
            match self.try_to_add(txn, id, amount) {
                // A part of the table or the index is not in memory: it is brought in, then all is as it was.
                Err(WriteError::Absent(absent)) => absent.wait(txn).await?,
                Err(WriteError::Blocked(blocker)) => {
                    if blocker.wait(txn).await.is_err() {
                        return Err(WriteError::Deadlock);
                    }
                }
                Err(WriteError::Changed) => {}
                other => return other,
            }
        }
    }

    /// One attempt. A guard is never held across an await.
    fn try_to_add(&self, txn: &mut Txn, id: u32, amount: i64) -> Result<(), WriteError> {
        let guard = Guard::pin();
        let found = txn.get(&self.by_id, &id.to_be_bytes(), &guard)?;
        let rid = found.ok_or(WriteError::Gone)?.rid;
        let newest = txn.read_newest(&self.accounts, rid, &guard)?;
        let newest = newest.ok_or(WriteError::Gone)?;
        let new = account(id, balance(newest.bytes) + amount);
        txn.update(&self.accounts, rid, newest.version, &new)
    }

    /// Moves one coin; a victim of a deadlock tries again.
    async fn transfer(
        &self,
        worker_loop: &WorkerLoop,
        from: u32,
        to: u32,
    ) -> Result<(), CommitError> {
        loop {
            let mut txn = worker_loop.worker().begin(Isolation::ReadCommitted);
            if self.add(&mut txn, from, -1).await.is_ok() && self.add(&mut txn, to, 1).await.is_ok()
            {
                // Ready when it is on the disk.
                txn.commit().await?;
                return Ok(());
            }
            txn.abort();
            yield_now().await;
        }
    }

    fn total(&self) -> (usize, i64) {
        let worker_loop = WorkerLoop::new(&self.engine, WorkerId(0));
        let mut txn = worker_loop.worker().begin(Isolation::RepeatableRead);
        let guard = Guard::pin();
        let mut cursor = ScanCursor::new(&self.accounts);
        let (mut count, mut sum) = (0, 0);
        while let Some(row) = txn.scan_next(&mut cursor, &guard).expect_present() {
            count += 1;
            sum += balance(row.bytes);
        }
        (count, sum)
    }
}

/// One worker's thread: a loop with some tasks.
fn run_worker(bank: &Arc<Bank>, id: WorkerId) {
    let worker_loop = Rc::new(WorkerLoop::new(&bank.engine, id));
    for task in 0..TASKS_PER_WORKER {
        let (bank, own) = (Arc::clone(bank), Rc::clone(&worker_loop));
        worker_loop.spawn(async move {
            for step in 0..TRANSFERS_PER_TASK {
                let from = (task * 7 + step) % ACCOUNTS;
                let to = (from + 1 + step % (ACCOUNTS - 1)) % ACCOUNTS;
                if let Err(error) = bank.transfer(&own, from, to).await {
                    eprintln!("a transfer failed: {error}");
                    return;
                }
            }
        });
    }
    worker_loop.run();
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args_os()
        .nth(1)
        .ok_or("usage: embedded DIRECTORY")?;
    let directory = Path::new(&directory);
    let bank = Arc::new(Bank::open(directory)?);
    let env = Env::real();
    let mut threads = Vec::new();
    for id in 0..WORKERS {
        let bank = Arc::clone(&bank);
        threads.push(env.spawn("worker", Some(usize::from(id)), move || {
            run_worker(&bank, WorkerId(id));
        })?);
    }
    for thread in threads {
        thread.join()?;
    }
    let before = bank.total();
    drop(bank);

    let bank = Bank::open(directory)?;
    assert_eq!(bank.total(), before, "what was acknowledged is there");
    println!(
        "{} accounts hold {} after {} transfers",
        before.0,
        before.1,
        u32::from(WORKERS) * TASKS_PER_WORKER * TRANSFERS_PER_TASK
    );
    Ok(())
}
