//! Is a recorded history of transactions what its isolation level allows?
//!
//! Transactions append unique elements to lists and read whole lists (as Elle does it). The list a key ends with tells
//! the order of all its versions; a read tells which of them it saw. From that follow the dependencies, without any
//! help of the system under test:
//!
//! - ww: of two appends that are neighbours in the list, from the first's transaction to the second's;
//! - wr: from the one whose append a read saw last to the reader;
//! - rw: from a reader to the one who appended what comes next.
//!
//! What each level forbids (Adya's phenomena):
//!
//! - all: an aborted transaction's element in a list (G1a), a list read that ends in the middle of somebody's appends
//!   (G1b), a read that is no beginning of the final list, an append that is lost, and a circle of ww and wr (G0, G1c);
//! - snapshot isolation: also a circle in which no two rw follow each other (G-single among them);
//! - serializable: any circle (G2).
//!
//! Circles are found as strongly connected components, in time linear in the history. A read is kept as length and hash
//! of its list, so a million transactions fit in memory.

use std::collections::HashMap;
use std::fmt;

/// A list's key.
pub type Key = u64;
/// An appended element; no two appends share one.
pub type Element = u64;

/// What is expected of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationLevel {
    /// READ COMMITTED.
    ReadCommitted,
    /// REPEATABLE READ as PostgreSQL has it.
    SnapshotIsolation,
    /// SERIALIZABLE.
    Serializable,
}

/// A list as somebody saw it: how long, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListRead {
    length: u32,
    hash: u64,
}

/// Appends to the hash of a list.
fn grow(hash: u64, element: Element) -> u64 {
    (hash ^ element.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .rotate_left(29)
        .wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

impl ListRead {
    /// A list that was read.
    pub fn of(list: impl IntoIterator<Item = Element>) -> ListRead {
        let mut seen = ListRead { length: 0, hash: 1 };
        for element in list {
            seen.length += 1;
            seen.hash = grow(seen.hash, element);
        }
        seen
    }
}

/// What a transaction did.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// It read a list; a key that is not there has an empty one.
    Read(Key, ListRead),
    /// It appended an element.
    Append(Key, Element),
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was told that it committed.
    Committed,
    /// It was rolled back.
    Aborted,
}

/// A transaction as its client saw it.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// In order.
    pub ops: Vec<Op>,
    /// How it ended.
    pub end: End,
}

/// What a history must not contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The final list of a key holds what an aborted transaction, or nobody, appended (G1a).
    Unwritten(Key, Element),
    /// The append of a committed transaction is not in the final list.
    Lost(Key, Element),
    /// The transaction read a list that no version order explains, or one with an aborted element (G1a).
    Impossible(usize, Key),
    /// The transaction read a list that ends among the appends of another (G1b).
    Intermediate(usize, Key),
    /// Transactions that depend on each other in a circle; some of them.
    Cycle(Vec<usize>),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Unwritten(key, e) => {
                write!(f, "list {key} holds {e}, which nobody committed")
            }
            Violation::Lost(key, e) => write!(f, "list {key} lacks {e}, which was committed"),
            Violation::Impossible(t, key) => {
                write!(f, "transaction {t} read a list {key} that never was")
            }
            Violation::Intermediate(t, key) => {
                write!(
                    f,
                    "transaction {t} read list {key} in the middle of a transaction"
                )
            }
            Violation::Cycle(some) => write!(f, "transactions depend on each other: {some:?}"),
        }
    }
}

/// What a check that found nothing looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Committed transactions.
    pub committed: usize,
    /// Aborted ones.
    pub aborted: usize,
    /// Reads of committed ones.
    pub reads: usize,
    /// Appends of committed ones.
    pub appends: usize,
    /// Dependencies between them.
    pub edges: usize,
    /// Of these, from a reader to who appended next.
    pub rw_edges: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    /// ww or wr.
    Dependency,
    /// rw.
    Anti,
}

/// The versions of one key.
struct Versions {
    /// Who appended each element.
    writers: Vec<u32>,
    /// The hash of each beginning, the empty one first.
    hashes: Vec<u64>,
}

impl Versions {
    /// The first version from `at` on that is not by `who`.
    fn next_not_by(&self, mut at: usize, who: u32) -> Option<u32> {
        while self.writers.get(at) == Some(&who) {
            at += 1;
        }
        self.writers.get(at).copied()
    }
}

/// Checks a history against the lists that all keys end with.
pub fn check(
    history: &[Transaction],
    lists: &HashMap<Key, Vec<Element>>,
    level: IsolationLevel,
) -> Result<Report, Violation> {
    let mut report = Report::default();
    // Who appended what, in committed transactions.
    let mut appended: HashMap<Element, (u32, Key)> = HashMap::new();
    for (t, transaction) in history.iter().enumerate() {
        if transaction.end == End::Aborted {
            report.aborted += 1;
            continue;
        }
        report.committed += 1;
        for op in &transaction.ops {
            match op {
                Op::Append(key, element) => {
                    report.appends += 1;
                    appended.insert(*element, (t as u32, *key));
                }
                Op::Read(..) => report.reads += 1,
            }
        }
    }
    let mut versions: HashMap<Key, Versions> = HashMap::new();
    for (key, list) in lists {
        let mut of = Versions {
            writers: Vec::with_capacity(list.len()),
            hashes: vec![ListRead::of([]).hash],
        };
        let mut hash = of.hashes[0];
        for element in list {
            // Taken out: nobody appended it a second time.
            match appended.remove(element) {
                Some((writer, k)) if k == *key => of.writers.push(writer),
                _ => return Err(Violation::Unwritten(*key, *element)),
            }
            hash = grow(hash, *element);
            of.hashes.push(hash);
        }
        versions.insert(*key, of);
    }
    if let Some((element, (_, key))) = appended.iter().next() {
        return Err(Violation::Lost(*key, *element));
    }
    let mut edges: Vec<(u32, u32, Edge)> = Vec::new();
    for of in versions.values() {
        for pair in of.writers.windows(2) {
            if pair[0] != pair[1] {
                edges.push((pair[0], pair[1], Edge::Dependency));
            }
        }
    }
    let nothing = Versions {
        writers: Vec::new(),
        hashes: vec![ListRead::of([]).hash],
    };
    for (t, transaction) in history.iter().enumerate() {
        if transaction.end == End::Aborted {
            continue;
        }
        let me = t as u32;
        for op in &transaction.ops {
            let Op::Read(key, seen) = op else { continue };
            let of = versions.get(key).unwrap_or(&nothing);
            let length = seen.length as usize;
            if of.hashes.get(length) != Some(&seen.hash) {
                return Err(Violation::Impossible(t, *key));
            }
            // Its own appends are at the end of what it saw.
            let mut from_others = length;
            while from_others > 0 && of.writers[from_others - 1] == me {
                from_others -= 1;
            }
            if let Some(source) = from_others.checked_sub(1).map(|at| of.writers[at]) {
                if of.writers.get(from_others) == Some(&source) {
                    return Err(Violation::Intermediate(t, *key));
                }
                edges.push((source, me, Edge::Dependency));
            }
            if let Some(next) = of.next_not_by(length, me) {
                edges.push((me, next, Edge::Anti));
            }
        }
    }
    report.edges = edges.len();
    report.rw_edges = edges.iter().filter(|e| e.2 == Edge::Anti).count();
    let n = history.len() as u32;
    let circle = match level {
        IsolationLevel::ReadCommitted => find_circle(
            n,
            edges
                .iter()
                .filter(|e| e.2 == Edge::Dependency)
                .map(|e| (e.0, e.1)),
        ),
        IsolationLevel::Serializable => find_circle(n, edges.iter().map(|e| (e.0, e.1))),
        // Two nodes per transaction, reached by a dependency or by an rw; from the latter no rw goes on.
        IsolationLevel::SnapshotIsolation => find_circle(
            2 * n,
            edges
                .iter()
                .flat_map(|(from, to, edge)| match edge {
                    Edge::Dependency => [Some((*from, *to)), Some((n + *from, *to))],
                    Edge::Anti => [Some((*from, n + *to)), None],
                })
                .flatten(),
        )
        .map(|circle| circle.into_iter().map(|t| t % n as usize).collect()),
    };
    match circle {
        Some(circle) => Err(Violation::Cycle(circle)),
        None => Ok(report),
    }
}

/// Some nodes of a strongly connected component of more than one node, if there is one: Tarjan's algorithm, without
/// recursion.
fn find_circle(n: u32, edges: impl Iterator<Item = (u32, u32)> + Clone) -> Option<Vec<usize>> {
    let n = n as usize;
    // All edges in one array, by source.
    let mut starts = vec![0_u32; n + 1];
    for (from, _) in edges.clone() {
        starts[from as usize + 1] += 1;
    }
    for at in 0..n {
        starts[at + 1] += starts[at];
    }
    let mut targets = vec![0_u32; starts[n] as usize];
    let mut next = starts.clone();
    for (from, to) in edges {
        let slot = &mut next[from as usize];
        targets[*slot as usize] = to;
        *slot += 1;
    }
    const UNSEEN: u32 = u32::MAX;
    let mut number = vec![UNSEEN; n];
    let mut low = vec![0_u32; n];
    let mut on_stack = vec![false; n];
    let mut stack: Vec<u32> = Vec::new();
    let mut path: Vec<(u32, u32)> = Vec::new();
    let mut counter = 0;
    for root in 0..n as u32 {
        if number[root as usize] != UNSEEN {
            continue;
        }
        path.push((root, starts[root as usize]));
        while let Some((node, edge)) = path.pop() {
            let v = node as usize;
            if number[v] == UNSEEN {
                number[v] = counter;
                low[v] = counter;
                counter += 1;
                stack.push(node);
                on_stack[v] = true;
            }
            if edge < starts[v + 1] {
                path.push((node, edge + 1));
                let to = targets[edge as usize];
                let w = to as usize;
                if number[w] == UNSEEN {
                    path.push((to, starts[w]));
                } else if on_stack[w] {
                    low[v] = low[v].min(number[w]);
                }
                continue;
            }
            if low[v] == number[v] {
                let at = stack.iter().rposition(|x| *x == node)?;
                if stack.len() - at > 1 {
                    return Some(stack[at..].iter().take(20).map(|x| *x as usize).collect());
                }
                stack.truncate(at);
                on_stack[v] = false;
            }
            if let Some((parent, _)) = path.last() {
                let p = *parent as usize;
                low[p] = low[p].min(low[v]);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: Key, list: &[Element]) -> Op {
        Op::Read(key, ListRead::of(list.iter().copied()))
    }

    fn committed(ops: Vec<Op>) -> Transaction {
        Transaction {
            ops,
            end: End::Committed,
        }
    }

    fn judge(
        history: &[Transaction],
        lists: &[(Key, &[Element])],
        level: IsolationLevel,
    ) -> Result<(), Violation> {
        let lists = lists.iter().map(|(k, l)| (*k, l.to_vec())).collect();
        check(history, &lists, level).map(|_| ())
    }

    const LEVELS: [IsolationLevel; 3] = [
        IsolationLevel::ReadCommitted,
        IsolationLevel::SnapshotIsolation,
        IsolationLevel::Serializable,
    ];

    /// Which levels forbid a history.
    fn forbidden(history: &[Transaction], lists: &[(Key, &[Element])]) -> Vec<IsolationLevel> {
        LEVELS
            .into_iter()
            .filter(|level| judge(history, lists, *level).is_err())
            .collect()
    }

    #[test]
    fn a_serial_history_is_fine_everywhere() {
        let history = [
            committed(vec![read(1, &[]), Op::Append(1, 10), read(1, &[10])]),
            committed(vec![read(1, &[10]), Op::Append(2, 20), Op::Append(1, 11)]),
            committed(vec![read(1, &[10, 11]), read(2, &[20]), read(3, &[])]),
        ];
        assert_eq!(forbidden(&history, &[(1, &[10, 11]), (2, &[20])]), []);
    }

    #[test]
    fn write_skew_is_a_circle_of_two_rw() {
        let history = [
            committed(vec![read(1, &[]), Op::Append(2, 20)]),
            committed(vec![read(2, &[]), Op::Append(1, 10)]),
        ];
        assert_eq!(
            forbidden(&history, &[(1, &[10]), (2, &[20])]),
            [IsolationLevel::Serializable]
        );
    }

    #[test]
    fn the_read_only_anomaly_is_found() {
        let history = [
            committed(vec![read(1, &[]), Op::Append(2, 20)]),
            committed(vec![Op::Append(1, 10)]),
            committed(vec![read(1, &[10]), read(2, &[])]),
        ];
        assert_eq!(
            forbidden(&history, &[(1, &[10]), (2, &[20])]),
            [IsolationLevel::Serializable]
        );
    }

    #[test]
    fn read_skew_and_lost_updates_have_one_rw() {
        let skew = [
            committed(vec![Op::Append(1, 10), Op::Append(2, 20)]),
            committed(vec![read(1, &[]), read(2, &[20])]),
        ];
        assert_eq!(
            forbidden(&skew, &[(1, &[10]), (2, &[20])]),
            [
                IsolationLevel::SnapshotIsolation,
                IsolationLevel::Serializable
            ]
        );
        let lost = [
            committed(vec![read(1, &[]), Op::Append(1, 10)]),
            committed(vec![read(1, &[]), Op::Append(1, 11)]),
        ];
        assert_eq!(
            forbidden(&lost, &[(1, &[10, 11])]),
            [
                IsolationLevel::SnapshotIsolation,
                IsolationLevel::Serializable
            ]
        );
    }

    #[test]
    fn circles_of_writes_are_forbidden_everywhere() {
        let dirty_write = [
            committed(vec![Op::Append(1, 10), Op::Append(2, 20)]),
            committed(vec![Op::Append(1, 11), Op::Append(2, 21)]),
        ];
        assert_eq!(
            forbidden(&dirty_write, &[(1, &[10, 11]), (2, &[21, 20])]),
            LEVELS
        );
        let circular = [
            committed(vec![Op::Append(1, 10), read(2, &[20])]),
            committed(vec![Op::Append(2, 20), read(1, &[10])]),
        ];
        assert_eq!(forbidden(&circular, &[(1, &[10]), (2, &[20])]), LEVELS);
    }

    #[test]
    fn what_was_never_committed_is_not_seen() {
        let aborted = Transaction {
            ops: vec![Op::Append(1, 10)],
            end: End::Aborted,
        };
        let all = |history: &[Transaction], lists: &[(Key, &[Element])]| {
            judge(history, lists, IsolationLevel::ReadCommitted)
        };
        assert_eq!(
            all(std::slice::from_ref(&aborted), &[(1, &[10])]),
            Err(Violation::Unwritten(1, 10))
        );
        assert_eq!(
            all(&[aborted, committed(vec![read(1, &[10])])], &[]),
            Err(Violation::Impossible(1, 1))
        );
        let twice = committed(vec![Op::Append(1, 10), Op::Append(1, 11)]);
        assert_eq!(
            all(
                &[twice.clone(), committed(vec![read(1, &[10])])],
                &[(1, &[10, 11])]
            ),
            Err(Violation::Intermediate(1, 1))
        );
        assert_eq!(all(&[twice], &[(1, &[10])]), Err(Violation::Lost(1, 11)));
    }
}
