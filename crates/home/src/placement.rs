//! The placement record: which protection groups a volume has, and from which epoch on each takes part. Pure.
//!
//! It is a named value of group 0's register ([`RECORD`]), lines of text:
//!
//! ```text
//! logstead groups 1
//! term 7                                          how often a server has taken the groups; grows
//! group 0 home 8c1f2a90d3b45e67 nodes             group 0 is found by the volume's URL
//! group 1 home 1d77c0de5a3b9f02 nodes node://h4:7001/v node://h5:7001/v node://h6:7001/v
//! era 0 groups 0                                  epochs from 0 on are in group 0
//! era 5 groups 0 1                                those from 5 on are divided
//! wanted 0 1                                      what the next epoch is to be divided among
//! ```
//!
//! **Placement.** What belongs to an epoch lies in one of the groups of its era, the last that begins at that epoch or
//! before: what has number `n` in the one at `n % groups`. A lane's number says where its segments and side segments
//! are, an object's counter where that is. The groups of an era never change once its epoch has begun, so whoever knows
//! the record of an epoch finds everything of that epoch and of all before.
//!
//! Invariants: eras begin at 0 and later ones follow; each names groups that are listed, none twice; a group keeps its
//! number.
//!
//! Does not: say who the members of a group are. The nodes here are where its register is looked for.

use logstead_types::Epoch;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Its name in the register of group 0.
pub(crate) const RECORD: &str = "groups";
/// The group that holds the named values.
pub(crate) const FIRST: u32 = 0;

const MAGIC: &str = "logstead groups 1";
/// The same, of any version.
const MAGIC_PREFIX: &str = "logstead groups ";
/// Groups of one volume, at most.
const GROUPS_MAX: usize = 64;
/// Changes of the groups in the life of a volume, at most.
const ERAS_MAX: usize = 1024;
/// Nodes that are listed of one group, at most.
const NODES_MAX: usize = 64;
/// Bytes of a record, at most: about what the other limits allow.
const BYTES_MAX: usize = 1 << 20;

/// A group, as the record lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedGroup {
    /// Drawn when its register began.
    pub(crate) home: u64,
    /// Some of its members, or of those that were.
    pub(crate) nodes: Vec<String>,
}

/// Epochs that are divided among the same groups.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Era {
    from: Epoch,
    groups: Vec<u32>,
}

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    pub(crate) term: u64,
    pub(crate) groups: BTreeMap<u32, ListedGroup>,
    eras: Vec<Era>,
    pub(crate) wanted: Vec<u32>,
}

impl Placement {
    /// Of a volume that was never divided; `home` is its register's number.
    pub(crate) fn undivided(home: u64) -> Placement {
        let nodes = Vec::new();
        Placement {
            term: 0,
            groups: BTreeMap::from([(FIRST, ListedGroup { home, nodes })]),
            eras: vec![Era {
                from: Epoch(0),
                groups: vec![FIRST],
            }],
            wanted: vec![FIRST],
        }
    }

    /// The groups that an epoch is divided among.
    pub(crate) fn groups_of(&self, epoch: Epoch) -> &[u32] {
        let begun = self.eras.iter().rev().find(|era| era.from <= epoch);
        begun.map_or(&[FIRST], |era| &era.groups)
    }

    /// The group of what has this number in its epoch.
    pub(crate) fn group_of(&self, epoch: Epoch, number: u32) -> u32 {
        let groups = self.groups_of(epoch);
        groups[number as usize % groups.len()]
    }

    /// The groups that some epoch is divided among: in which something may lie.
    pub(crate) fn in_force(&self) -> BTreeSet<u32> {
        let groups = self.eras.iter().flat_map(|era| &era.groups);
        groups.copied().collect()
    }

    /// The groups in which a lane may have something.
    pub(crate) fn groups_of_lane(&self, lane: u32) -> BTreeSet<u32> {
        let of_era = |era: &Era| era.groups[lane as usize % era.groups.len()];
        self.eras.iter().map(of_era).collect()
    }

    /// Has nothing ever been placed outside of group 0?
    pub(crate) fn is_undivided(&self) -> bool {
        self.eras.iter().all(|era| era.groups == [FIRST])
    }

    /// Adds a group, for epochs to come. Back comes its number.
    pub(crate) fn add(&mut self, home: u64, nodes: Vec<String>) -> Result<u32, &'static str> {
        if self.groups.len() >= GROUPS_MAX {
            return Err("the volume has as many groups as one can have");
        }
        let last = self.groups.keys().last().copied().unwrap_or(FIRST);
        let group = last.checked_add(1).ok_or("groups have no numbers left")?;
        let listed = ListedGroup {
            home,
            nodes: Vec::new(),
        };
        self.groups.insert(group, listed);
        self.replace_nodes(group, nodes);
        self.wanted.push(group);
        Ok(group)
    }

    /// Forgets a group that no epoch was ever divided among.
    pub(crate) fn forget(&mut self, group: u32) -> Result<(), &'static str> {
        if !self.groups.contains_key(&group) {
            return Err("the volume has no such group");
        }
        if self.in_force().contains(&group) {
            return Err(
                "a server has begun to use it, and what lies there stays there: its nodes can be replaced, one by one \
                 (fleet drain)",
            );
        }
        self.groups.remove(&group);
        self.wanted.retain(|wanted| *wanted != group);
        Ok(())
    }

    /// Adds to where a group is looked for; what was added last comes first, and stays.
    pub(crate) fn note_nodes(&mut self, group: u32, nodes: &[String]) {
        if let Some(listed) = self.groups.get_mut(&group) {
            let others = listed.nodes.iter().filter(|node| !nodes.contains(node));
            let all = nodes.iter().chain(others).cloned().collect();
            listed.nodes = fit(all);
        }
    }

    /// Where a group is to be looked for from now on.
    pub(crate) fn replace_nodes(&mut self, group: u32, nodes: Vec<String>) {
        if let Some(listed) = self.groups.get_mut(&group) {
            listed.nodes = fit(nodes);
        }
    }

    /// Divides the epochs from `epoch` on among these groups. No epoch that has begun is later: what was said of those
    /// was said by starts that did not come to their mark.
    pub(crate) fn begin(&mut self, epoch: Epoch, groups: &[u32]) {
        self.eras.retain(|era| era.from < epoch);
        let as_before = self.eras.last().is_some_and(|era| era.groups == groups);
        if !as_before && !groups.is_empty() && self.eras.len() < ERAS_MAX {
            self.eras.push(Era {
                from: epoch,
                groups: groups.to_vec(),
            });
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut text = format!("{MAGIC}\nterm {}\n", self.term);
        let numbers = |text: &mut String, numbers: &[u32]| {
            for number in numbers {
                // A String takes everything.
                let _written = write!(text, " {number}");
            }
            text.push('\n');
        };
        for (group, ListedGroup { home, nodes }) in &self.groups {
            let _written = write!(text, "group {group} home {home:016x} nodes");
            for node in nodes {
                let _written = write!(text, " {node}");
            }
            text.push('\n');
        }
        for era in &self.eras {
            let _written = write!(text, "era {} groups", era.from);
            numbers(&mut text, &era.groups);
        }
        text.push_str("wanted");
        numbers(&mut text, &self.wanted);
        text.into_bytes()
    }

    /// `Err` says what is wrong with it, of "it".
    pub(crate) fn decode(bytes: &[u8]) -> Result<Placement, &'static str> {
        if bytes.len() > BYTES_MAX {
            return Err("it is too long");
        }
        let text = std::str::from_utf8(bytes).map_err(|_| "it is no text")?;
        let mut lines = text.lines();
        match lines.next() {
            Some(MAGIC) => {}
            Some(other) if other.starts_with(MAGIC_PREFIX) => {
                return Err("a newer version of Logstead has written it");
            }
            _ => return Err("it is something else"),
        }
        let mut placement = Placement {
            term: 0,
            groups: BTreeMap::new(),
            eras: Vec::new(),
            wanted: Vec::new(),
        };
        let mut has_wanted = false;
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let taken = match words[..] {
                ["term", term] => decimal(term).map(|term| placement.term = term),
                ["group", group, "home", home, "nodes", ref nodes @ ..] => {
                    placement.read_group(group, home, nodes)
                }
                ["era", from, "groups", ref groups @ ..] => placement.read_era(from, groups),
                ["wanted", ref groups @ ..] => {
                    has_wanted = true;
                    numbers(groups).map(|groups| placement.wanted = groups)
                }
                _ => None,
            };
            taken.ok_or("it is malformed")?;
        }
        let first = placement.eras.first();
        if !has_wanted || first.is_none_or(|era| era.from != Epoch(0)) {
            return Err("it is cut");
        }
        let is_listed = |group: &u32| placement.groups.contains_key(group);
        let named = placement.eras.iter().flat_map(|era| &era.groups);
        match is_listed(&FIRST) && named.chain(&placement.wanted).all(is_listed) {
            true => Ok(placement),
            false => Err("it names a group that it does not list"),
        }
    }

    fn read_group(&mut self, group: &str, home: &str, nodes: &[&str]) -> Option<()> {
        let group = u32::try_from(decimal(group)?).ok()?;
        let is_plain = home.len() == 16 && !home.starts_with('+');
        let home = is_plain.then(|| u64::from_str_radix(home, 16).ok())??;
        if nodes.len() > NODES_MAX || self.groups.len() >= GROUPS_MAX {
            return None;
        }
        let nodes = nodes.iter().map(|node| (*node).to_owned()).collect();
        let before = self.groups.insert(group, ListedGroup { home, nodes });
        before.is_none().then_some(())
    }

    fn read_era(&mut self, from: &str, groups: &[&str]) -> Option<()> {
        let from = Epoch(u32::try_from(decimal(from)?).ok()?);
        let groups = numbers(groups).filter(|groups| !groups.is_empty())?;
        let follows = self.eras.last().is_none_or(|era| era.from < from);
        if !follows || self.eras.len() >= ERAS_MAX {
            return None;
        }
        self.eras.push(Era { from, groups });
        Some(())
    }
}

/// What of these URLs the record can hold: they stand in one line, with spaces between them.
fn fit(mut nodes: Vec<String>) -> Vec<String> {
    nodes.retain(|node| !node.is_empty() && !node.contains(char::is_whitespace));
    nodes.truncate(NODES_MAX);
    nodes
}

/// A number as this record writes it: no sign.
fn decimal(text: &str) -> Option<u64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Numbers of groups, none twice.
fn numbers(words: &[&str]) -> Option<Vec<u32>> {
    let number = |word: &&str| u32::try_from(decimal(word)?).ok();
    let all: Option<Vec<u32>> = words.iter().map(number).collect();
    let all = all.filter(|all| all.len() <= GROUPS_MAX)?;
    let distinct: BTreeSet<u32> = all.iter().copied().collect();
    (distinct.len() == all.len()).then_some(all)
}

/// Is this the record of a volume of which something may lie outside of group 0? Also if it cannot be read: who does
/// not know groups must not take the volume for one that has none.
pub(crate) fn is_divided(record: &[u8]) -> bool {
    Placement::decode(record).map_or(true, |placement| !placement.is_undivided())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided() -> Placement {
        let mut placement = Placement::undivided(7);
        let nodes = vec!["node://h4:1/v".to_owned(), "node://h5:1/v".to_owned()];
        assert_eq!(placement.add(9, nodes), Ok(1));
        placement.begin(Epoch(5), &[0, 1]);
        placement
    }

    #[test]
    fn an_epoch_lies_in_the_groups_of_its_era() {
        let mut placement = divided();
        assert_eq!(placement.add(11, Vec::new()), Ok(2));
        placement.begin(Epoch(9), &[0, 1, 2]);
        for (epoch, number, group) in [
            (0, 0, 0),
            (4, 1, 0),
            (5, 0, 0),
            (5, 1, 1),
            (8, 3, 1),
            (9, 1, 1),
            (9, 3, 0),
            (u32::MAX, 5, 2),
        ] {
            assert_eq!(
                placement.group_of(Epoch(epoch), number),
                group,
                "{epoch} {number}"
            );
        }
        assert_eq!(placement.in_force(), BTreeSet::from([0, 1, 2]));
        assert_eq!(placement.groups_of_lane(0), BTreeSet::from([0]));
        assert_eq!(placement.groups_of_lane(5), BTreeSet::from([0, 1, 2]));
    }

    /// A group that is added is only wanted: what is placed stays where it is until an epoch begins.
    #[test]
    fn a_group_takes_part_when_an_epoch_begins_and_in_none_before() {
        let mut placement = Placement::undivided(7);
        placement.add(9, Vec::new()).expect("adds");
        assert!(placement.is_undivided() && placement.wanted == [0, 1]);
        assert_eq!(placement.in_force(), BTreeSet::from([0]));
        placement.begin(Epoch(5), &[0, 1]);
        assert!(!placement.is_undivided());
        // The start that said so did not come to its mark: the one after it begins the same epoch.
        placement.begin(Epoch(5), &[0]);
        assert!(placement.is_undivided() && placement.group_of(Epoch(5), 1) == 0);
        placement.begin(Epoch(6), &[0, 1]);
        placement.begin(Epoch(7), &[0, 1]);
        assert_eq!(placement.eras.len(), 2, "nothing changes with epoch 7");
        assert_eq!(placement.groups_of(Epoch(7)), [0, 1]);
    }

    #[test]
    fn only_a_group_that_was_never_used_is_forgotten() {
        let mut placement = divided();
        placement.add(11, Vec::new()).expect("adds");
        assert_eq!(placement.forget(2), Ok(()));
        assert!(placement.wanted == [0, 1] && !placement.groups.contains_key(&2));
        assert!(placement.forget(1).is_err() && placement.forget(0).is_err());
        assert!(placement.forget(2).is_err());
    }

    #[test]
    fn what_was_added_last_is_looked_for_first_and_the_list_is_bounded() {
        let mut placement = divided();
        let nodes: Vec<String> = (0..100).map(|node| format!("node://n{node}:1/v")).collect();
        placement.note_nodes(1, &nodes[..60]);
        placement.note_nodes(1, &nodes[50..]);
        let listed = &placement.groups[&1].nodes;
        assert_eq!(listed.len(), NODES_MAX);
        assert_eq!(listed[..50], nodes[50..]);
        assert_eq!(listed[50], nodes[0]);
    }

    /// Whatever a URL is, the record stays one.
    #[test]
    fn a_url_that_does_not_fit_into_a_line_is_not_listed() {
        let mut placement = divided();
        let odd = ["", "node://a b:1/v", "x\nwanted 9"].map(str::to_owned);
        placement.note_nodes(1, &odd);
        placement.replace_nodes(1, [&odd[..], &["node://h6:1/v".to_owned()]].concat());
        assert_eq!(placement.groups[&1].nodes, ["node://h6:1/v"]);
        assert_eq!(Placement::decode(&placement.encode()), Ok(placement));
    }

    #[test]
    fn a_record_reads_back() {
        for placement in [Placement::undivided(1), divided()] {
            let bytes = placement.encode();
            assert_eq!(Placement::decode(&bytes), Ok(placement.clone()));
            assert_eq!(is_divided(&bytes), !placement.is_undivided());
        }
        assert_eq!(
            String::from_utf8(divided().encode()).expect("text"),
            "logstead groups 1\nterm 0\ngroup 0 home 0000000000000007 nodes\n\
             group 1 home 0000000000000009 nodes node://h4:1/v node://h5:1/v\n\
             era 0 groups 0\nera 5 groups 0 1\nwanted 0 1\n"
        );
    }

    #[test]
    fn what_is_no_record_is_refused_and_counts_as_divided() {
        let good = String::from_utf8(divided().encode()).expect("text");
        for (from, to) in [
            ("groups 1\n", "groups 2\n"),
            ("logstead", "lagstead"),
            ("term 0", "term -1"),
            ("term 0", "term"),
            ("group 1 home", "group 0 home"),
            ("home 0000000000000009", "home x"),
            ("era 0", "era 1"),
            ("era 5", "era 0"),
            ("era 5 groups 0 1", "era 5 groups"),
            ("era 5 groups 0 1", "era 5 groups 0 0"),
            ("era 5 groups 0 1", "era 5 groups 0 2"),
            ("wanted 0 1", "wanted 3"),
            ("wanted 0 1\n", ""),
            ("wanted", "unwanted"),
            ("group 0 home 0000000000000007 nodes\n", ""),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_ne!(bad, good, "{from}");
            assert!(Placement::decode(bad.as_bytes()).is_err(), "{bad}");
            assert!(is_divided(bad.as_bytes()));
        }
        assert!(Placement::decode(&[0xff; 9]).is_err());
        assert!(Placement::decode(&vec![b' '; BYTES_MAX + 1]).is_err());
    }
}
