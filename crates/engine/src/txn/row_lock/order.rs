//! The order of a hand-over: who gives a lock back notes first, who takes one looks last. So whatever comes between two
//! steps of the one, the other is told.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use logstead_commit::IsCommitted;
use logstead_env::Env;
use logstead_home::{LogHome, MemoryHome};
use logstead_types::{Csn, Rid, TableId, WorkerId};

use crate::row_lock::RowLock;
use crate::tree::interleave::set_hook;
use crate::txn::VersionId;
use crate::{
    Engine, EngineOptions, ExpectPresent, Guard, Isolation, RowBuilder, Table, TableLock, Txn,
    Worker,
};

thread_local! {
    static MEANWHILE: RefCell<Option<Box<dyn FnMut()>>> = const { RefCell::new(None) };
}

/// Calls `meanwhile` wherever somebody else may have the turn in `what`.
fn interleaved<T>(meanwhile: impl FnMut() + 'static, what: impl FnOnce() -> T) -> T {
    fn hook() {
        // It comes to such places itself.
        if let Some(mut meanwhile) = MEANWHILE.take() {
            meanwhile();
            MEANWHILE.set(Some(meanwhile));
        }
    }
    MEANWHILE.set(Some(Box::new(meanwhile)));
    set_hook(Some(hook));
    let done = what();
    set_hook(None);
    MEANWHILE.set(None);
    done
}

/// What is locked, by the former holder and by the next one.
#[derive(Clone, Copy, Debug)]
enum Lock {
    Row(RowLock, RowLock),
    Table(TableLock, TableLock),
}

/// A table with two rows that are durable, or Committed as far as anybody asks.
#[derive(Clone)]
struct Scene {
    engine: Engine,
    table: Arc<Table>,
    /// Nobody writes to it.
    other: Arc<Table>,
    rids: [Rid; 2],
    base: VersionId,
}

fn row() -> Vec<u8> {
    let mut builder = RowBuilder::new();
    builder.start(1, 1);
    builder.push(Some(&[1]));
    builder.finish().to_vec()
}

impl Scene {
    /// With the workers of the former holder and of the next one.
    fn new() -> (Scene, Worker, Worker) {
        let home = Arc::new(MemoryHome::new(4 << 20));
        let env = Env::simulated(1).0;
        let options = EngineOptions {
            workers: 2,
            ..EngineOptions::default()
        };
        let (engine, _) = Engine::open(options, LogHome::from(home), env).expect("opens");
        let table = engine.create_table(TableId(20_000));
        let worker = engine.worker(WorkerId(0));
        let mut txn = worker.begin(Isolation::ReadCommitted);
        let rids = [(); 2].map(|()| txn.insert(&table, &row()).expect("inserts"));
        txn.try_precommit().expect("room");
        worker.flush(crate::FlushMode::Inline);
        let mut txn = worker.begin(Isolation::ReadCommitted);
        let guard = Guard::pin();
        let found = txn.read(&table, rids[0], &guard).expect_present();
        let base = found.expect("is there").version;
        drop(guard);
        drop(txn);
        let scene = Scene {
            other: engine.create_table(TableId(20_001)),
            base,
            table,
            rids,
            engine: engine.clone(),
        };
        (scene, worker, engine.worker(WorkerId(1)))
    }

    fn lock(&self, txn: &mut Txn, of_row: RowLock, of_table: TableLock, is_row: bool) -> bool {
        match is_row {
            true => txn
                .lock_row(&self.table, self.rids[0], self.base, of_row)
                .is_ok(),
            false => txn.lock_table(&self.other, of_table).is_ok(),
        }
    }

    fn lock_as(&self, txn: &mut Txn, lock: Lock, is_next: bool) -> bool {
        let anything = (RowLock::Update, TableLock::AccessExclusive);
        match (lock, is_next) {
            (Lock::Row(of, _), false) | (Lock::Row(_, of), true) => {
                self.lock(txn, of, anything.1, true)
            }
            (Lock::Table(of, _), false) | (Lock::Table(_, of), true) => {
                self.lock(txn, anything.0, of, false)
            }
        }
    }

    /// Holds the lock, and has changed something elsewhere.
    fn former(&self, worker: &Worker, lock: Lock) -> Txn {
        let mut txn = worker.begin(Isolation::ReadCommitted);
        assert!(self.lock_as(&mut txn, lock, false));
        txn.update(&self.table, self.rids[1], self.base, &row())
            .expect("free");
        txn
    }

    /// Whom the transaction was told of, if it got the lock.
    fn next(&self, worker: &Worker, lock: Lock) -> Option<Csn> {
        let mut txn = worker.begin(Isolation::ReadCommitted);
        let has_it = self.lock_as(&mut txn, lock, true);
        has_it.then(|| txn.take_handed_over().newest())
    }
}

#[test]
fn whoever_takes_a_lock_while_it_is_given_back_is_told() {
    for lock in [
        Lock::Row(RowLock::Update, RowLock::Update),
        Lock::Row(RowLock::NoKeyUpdate, RowLock::Share),
        Lock::Row(RowLock::Share, RowLock::Update),
        Lock::Row(RowLock::KeyShare, RowLock::Update),
        Lock::Table(TableLock::AccessExclusive, TableLock::AccessShare),
        Lock::Table(TableLock::Share, TableLock::Exclusive),
        Lock::Table(TableLock::RowExclusive, TableLock::Share),
    ] {
        let (scene, worker, others) = Scene::new();
        let former = scene.former(&worker, lock);
        let told = Rc::new(RefCell::new(Vec::new()));
        let meanwhile = {
            let (scene, told) = (scene.clone(), told.clone());
            move || told.borrow_mut().extend(scene.next(&others, lock))
        };
        let receipt = interleaved(meanwhile, || former.try_precommit().expect("room"));
        let csn = receipt.csn.expect("changed something");
        assert!(!scene.engine.inner().path.is_committed(csn));
        let told = told.borrow();
        assert!(!told.is_empty(), "{lock:?}: nobody got it in between");
        assert!(told.iter().all(|of| *of == csn), "{lock:?}: {told:?}");
    }
}

#[test]
fn whoever_takes_a_lock_is_told_of_who_gives_it_back_meanwhile() {
    for lock in [
        Lock::Row(RowLock::Update, RowLock::Update),
        Lock::Row(RowLock::Update, RowLock::Share),
        Lock::Row(RowLock::Share, RowLock::Update),
        Lock::Row(RowLock::KeyShare, RowLock::Update),
        Lock::Table(TableLock::AccessExclusive, TableLock::AccessShare),
        Lock::Table(TableLock::Share, TableLock::Exclusive),
        Lock::Table(TableLock::RowExclusive, TableLock::Share),
    ] {
        let mut got = 0;
        // It is given back at every place in turn, until there are no more.
        for place in 0.. {
            let (scene, worker, others) = Scene::new();
            let former = Cell::new(Some(scene.former(&worker, lock)));
            let committed = Rc::new(Cell::new(None));
            let seen = Rc::new(Cell::new(0));
            let meanwhile = {
                let (committed, seen) = (committed.clone(), seen.clone());
                let scene = scene.clone();
                move || {
                    seen.set(seen.get() + 1);
                    if seen.get() > place
                        && !scene.table.row_locks.is_busy(scene.rids[0])
                        && let Some(former) = former.take()
                    {
                        committed.set(former.try_precommit().expect("room").csn);
                    }
                }
            };
            let told = interleaved(meanwhile, || scene.next(&others, lock));
            if let Some(told) = told {
                assert_eq!(Some(told), committed.get(), "{lock:?} at {place}");
                got += 1;
            }
            if seen.get() <= place {
                break;
            }
        }
        assert!(got > 0, "{lock:?}");
    }
}
