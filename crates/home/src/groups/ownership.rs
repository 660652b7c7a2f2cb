//! Who may change a group: what lies where a log by itself has its manifest, in the register of every group but the
//! first. Pure.
//!
//! ```text
//! logstead group 1
//! group 1 of 8c1f2a90d3b45e67            the number of group 0's register
//! term 7                                  of the server that changed it last
//! nodes node://h1:7001/v ...              where group 0 was then
//! ```
//!
//! **Rule.** A server that has taken the lease in group 0 draws a term there, while it has the lease, and writes it
//! here before it fences or reads anything in the group. Terms grow in the order in which leases were taken. A server
//! that finds a later term than its own has been overtaken.
//!
//! Does not: know what the terms allow; that is the register's (`propose_leased`).

use std::fmt::Write as _;

const MAGIC: &str = "logstead group 1";
/// Bytes of it, at most.
const BYTES_MAX: usize = 1 << 20;

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ownership {
    pub(crate) group: u32,
    /// The number of group 0's register.
    pub(crate) volume: u64,
    pub(crate) term: u64,
    /// Members of group 0, for people who have named the nodes of another group.
    pub(crate) nodes: Vec<String>,
}

impl Ownership {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Ownership {
            group,
            volume,
            term,
            nodes,
        } = self;
        let mut text = format!("{MAGIC}\ngroup {group} of {volume:016x}\nterm {term}\nnodes");
        for node in nodes {
            // A String takes everything.
            let _written = write!(text, " {node}");
        }
        text.push('\n');
        text.into_bytes()
    }

    /// `None`: it is something else.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Ownership> {
        let text = std::str::from_utf8(bytes.get(..bytes.len().min(BYTES_MAX))?).ok()?;
        let mut lines = text.lines();
        let mut words = || lines.next().map(|line| line.split(' ').collect::<Vec<_>>());
        if words()?.join(" ") != MAGIC {
            return None;
        }
        let (group, volume) = match words()?[..] {
            ["group", group, "of", volume] => {
                (group.parse().ok()?, u64::from_str_radix(volume, 16).ok()?)
            }
            _ => return None,
        };
        let term = match words()?[..] {
            ["term", term] => term.parse().ok()?,
            _ => return None,
        };
        let nodes = match words()?[..] {
            ["nodes", ref nodes @ ..] => nodes.iter().map(|node| (*node).to_owned()).collect(),
            _ => return None,
        };
        Some(Ownership {
            group,
            volume,
            term,
            nodes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_back_and_nothing_else_does() {
        let mut ownership = Ownership {
            group: 1,
            volume: 0xfeed,
            term: 7,
            nodes: vec!["node://a:1/v".to_owned(), "node://b:1/v".to_owned()],
        };
        for _ in 0..2 {
            assert_eq!(
                Ownership::decode(&ownership.encode()),
                Some(ownership.clone())
            );
            ownership.nodes.clear();
        }
        let good = String::from_utf8(ownership.encode()).expect("text");
        for (from, to) in [
            ("logstead group", "logstead manifest"),
            ("group 1 of", "group x of"),
            ("of 000000000000feed", "of"),
            ("term 7", "term -7"),
            ("nodes", "hosts"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_ne!(bad, good);
            assert_eq!(Ownership::decode(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(Ownership::decode(b""), None);
        assert_eq!(Ownership::decode(&[0xff]), None);
    }
}
