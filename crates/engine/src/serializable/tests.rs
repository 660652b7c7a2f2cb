//! The certifier alone, against a graph: random transactions under snapshot isolation in a few rows and keys, with what
//! is kept being folded and forgotten as it goes. What it lets commit has no circle; what it refuses it could not have
//! let commit without leaving its rule.

use std::collections::BTreeMap;

use logstead_types::{IndexId, Rid, TableId};

use super::ranges::KeyRange;
use super::state::CertifierState;
use super::writes::TableWrites;
use super::*;

const TABLE: TableId = TableId(20_000);
const INDEX: IndexId = IndexId(20_001);
const ROWS: u64 = 6;

struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// What a transaction of the model has done. Row `n` has key `n` once it exists; rows exist from the start if even.
#[derive(Clone, Default)]
struct Done {
    /// The number of commits before its snapshot.
    snapshot: usize,
    reads: Vec<u64>,
    writes: Vec<u64>,
}

struct Open {
    begun: ActiveTxn,
    reads: ReadSet,
    done: Done,
}

fn write_set(rows: &[u64], inserted: &dyn Fn(u64) -> bool) -> WriteSet {
    if rows.is_empty() {
        return WriteSet::new();
    }
    vec![TableWrites {
        table: TABLE,
        whole: false,
        rows: rows.iter().map(|n| Rid(*n)).collect(),
        keys: rows
            .iter()
            .filter(|n| inserted(**n))
            .map(|n| (INDEX, Box::from([*n as u8])))
            .collect(),
    }]
}

/// Is there a circle among committed transactions, in the order of commit? Reads are of the newest version at the
/// snapshot, writes make versions in the order of commit.
fn has_circle(committed: &[Done]) -> bool {
    let n = committed.len();
    let mut edges = vec![Vec::new(); n];
    for row in 0..ROWS {
        let writers: Vec<usize> = (0..n)
            .filter(|t| committed[*t].writes.contains(&row))
            .collect();
        for pair in writers.windows(2) {
            edges[pair[0]].push(pair[1]);
        }
        for (reader, done) in committed.iter().enumerate() {
            if !done.reads.contains(&row) {
                continue;
            }
            // The writers in its snapshot are those committed before it was taken.
            if let Some(seen) = writers.iter().rfind(|w| **w < done.snapshot)
                && *seen != reader
            {
                edges[*seen].push(reader);
            }
            if let Some(next) = writers.iter().find(|w| **w >= done.snapshot)
                && *next != reader
            {
                edges[reader].push(*next);
            }
        }
    }
    // Take away who has no successor left, until nothing changes.
    let mut left: Vec<bool> = vec![true; n];
    loop {
        let gone: Vec<usize> = (0..n)
            .filter(|t| left[*t] && !edges[*t].iter().any(|to| left[*to]))
            .collect();
        if gone.is_empty() {
            return left.contains(&true);
        }
        for t in gone {
            left[t] = false;
        }
    }
}

fn run(seed: u64, certify: bool) -> (Vec<Done>, usize) {
    let mut dice = Dice(seed);
    let mut state = CertifierState::new();
    let mut committed: Vec<Done> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let mut refused = 0;
    let mut exists: BTreeMap<u64, usize> = (0..ROWS).step_by(2).map(|n| (n, 0)).collect();
    let fold = dice.roll(3) == 0;
    for _ in 0..60 {
        match dice.roll(8) {
            0 | 1 if open.len() < 4 => {
                let Some(begun) = state.begin(false) else {
                    panic!("not read-only")
                };
                open.push(Open {
                    begun,
                    reads: ReadSet::default(),
                    done: Done {
                        snapshot: committed.len(),
                        ..Done::default()
                    },
                });
            }
            2..6 if !open.is_empty() => {
                let at = dice.roll(open.len() as u64) as usize;
                let txn = &mut open[at];
                let from = txn.begun.begin;
                let row = dice.roll(ROWS);
                let visible = |row: u64| {
                    exists
                        .get(&row)
                        .is_some_and(|since| *since <= txn.done.snapshot)
                };
                match dice.roll(6) {
                    0 => {
                        txn.reads.whole_table(TABLE, from);
                        txn.done.reads.extend(0..ROWS);
                    }
                    1 => {
                        let end = row + dice.roll(3);
                        let range = KeyRange {
                            start: vec![row as u8],
                            end: Some(vec![end as u8 + 1]),
                        };
                        txn.reads.begin_range(TABLE, INDEX, range, false, from);
                        for row in (row..=end).filter(|row| *row < ROWS) {
                            txn.done.reads.push(row);
                            if visible(row) {
                                txn.reads.row(TABLE, Rid(row), from);
                            }
                        }
                    }
                    2 | 3 => {
                        txn.done.reads.push(row);
                        txn.reads.key(TABLE, INDEX, &[row as u8], from);
                        if visible(row) {
                            txn.reads.row(TABLE, Rid(row), from);
                        }
                    }
                    _ => {
                        // First updater wins.
                        let free = open.iter().all(|other| !other.done.writes.contains(&row));
                        let txn = &mut open[at];
                        let unchanged = committed[txn.done.snapshot..]
                            .iter()
                            .all(|other| !other.writes.contains(&row));
                        if free && unchanged {
                            txn.done.writes.push(row);
                        }
                    }
                }
            }
            6 | 7 if !open.is_empty() => {
                let at = dice.roll(open.len() as u64) as usize;
                let Open { begun, reads, done } = open.swap_remove(at);
                if dice.roll(10) == 0 {
                    state.end(begun.ticket, None);
                    continue;
                }
                let writes = write_set(&done.writes, &|n| !exists.contains_key(&n));
                let answer = if writes.is_empty() {
                    state.certify_reader(begun, &reads)
                } else {
                    state.certify(begun, &reads, &writes)
                };
                if answer.is_ok() || !certify {
                    for row in &done.writes {
                        exists.entry(*row).or_insert(committed.len() + 1);
                    }
                    committed.push(done);
                } else {
                    refused += 1;
                }
            }
            _ => {}
        }
        if fold && dice.roll(5) == 0 {
            state.fold();
        }
    }
    for txn in open {
        state.end(txn.begun.ticket, None);
    }
    assert!(state.kept().is_empty(), "nobody is active");
    (committed, refused)
}

#[test]
fn what_commits_has_no_circle() {
    let (mut circles, mut refused, mut commits) = (0, 0, 0);
    for seed in 0..4000 {
        let (committed, no) = run(seed, true);
        assert!(!has_circle(&committed), "seed {seed}");
        refused += no;
        commits += committed.len();
        circles += usize::from(has_circle(&run(seed, false).0));
    }
    assert!(circles > 400, "the model has anomalies to find: {circles}");
    assert!(refused < commits, "{refused} of {commits} refused");
}

fn keys(keys: &[&[u8]]) -> WriteSet {
    vec![TableWrites {
        table: TABLE,
        whole: false,
        rows: Vec::new(),
        keys: keys.iter().map(|key| (INDEX, Box::from(*key))).collect(),
    }]
}

fn rows(rows: &[u64]) -> WriteSet {
    write_set(rows, &|_| false)
}

fn begin(state: &mut CertifierState) -> Open {
    Open {
        begun: state.begin(false).expect("not read-only"),
        reads: ReadSet::default(),
        done: Done::default(),
    }
}

impl Open {
    fn row(&mut self, row: u64) {
        self.reads.row(TABLE, Rid(row), self.begun.begin);
    }

    fn commit(
        self,
        state: &mut CertifierState,
        writes: &WriteSet,
    ) -> Result<(), SerializationFailure> {
        state.certify(self.begun, &self.reads, writes)
    }
}

/// Read stamps may go only when no active transaction can have an sstamp at or below them.
#[test]
fn t6_stamps_stay_as_long_as_somebody_may_need_them() {
    let mut state = CertifierState::new();
    let mut a = begin(&mut state);
    a.row(1);
    let b = begin(&mut state);
    assert_eq!(b.commit(&mut state, &rows(&[1])), Ok(()));
    // c reads what a will write, and is gone before many others come and go.
    let mut c = begin(&mut state);
    c.row(1);
    c.row(2);
    assert_eq!(state.certify_reader(c.begun, &c.reads), Ok(()));
    for n in 0..100 {
        let other = begin(&mut state);
        assert_eq!(other.commit(&mut state, &rows(&[100 + n])), Ok(()));
    }
    assert_eq!(a.commit(&mut state, &rows(&[2])), Err(SerializationFailure));
    assert!(state.kept().is_empty());
}

/// Long after: while one transaction stays, others come and go; what is kept stays below its limit, and still decides.
#[test]
fn what_is_kept_is_bounded() {
    let mut state = CertifierState::new();
    let mut old = begin(&mut state);
    old.row(0);
    let long = vec![7; 4096];
    for n in 0..40_000_u32 {
        let mut other = begin(&mut state);
        let mut key = n.to_be_bytes().to_vec();
        key.extend_from_slice(&long);
        let from = other.begun.begin;
        other.reads.key(TABLE, INDEX, &key, from);
        assert_eq!(other.commit(&mut state, &keys(&[&key])), Ok(()));
        assert!(state.kept().bytes() <= 34 << 20);
    }
    let mut overwriter = begin(&mut state);
    overwriter.row(1);
    assert_eq!(overwriter.commit(&mut state, &rows(&[0])), Ok(()));
    assert_eq!(
        old.commit(&mut state, &rows(&[1])),
        Err(SerializationFailure)
    );
    assert!(state.kept().is_empty());
}

/// Short overlapping transactions: what they leave behind goes as they go, though somebody is active at every moment.
#[test]
fn what_nobody_needs_is_forgotten() {
    let mut state = CertifierState::new();
    let mut open = std::collections::VecDeque::new();
    for n in 0..10_000 {
        let mut txn = begin(&mut state);
        txn.row(n);
        open.push_back((n, txn));
        if open.len() > 4
            && let Some((n, txn)) = open.pop_front()
        {
            assert_eq!(txn.commit(&mut state, &rows(&[n])), Ok(()));
        }
        assert!(state.kept().bytes() < 10_000, "{}", state.kept().bytes());
    }
}
