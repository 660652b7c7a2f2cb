//! Bounds are prefixes, both directions see the same entries, and a cursor finds its place again.

use std::ops::Bound;

use super::*;
use crate::memory::UNLIMITED;
use crate::page_fault::{ExpectPresent, PageFault};
use crate::txn::index_cursor::IndexCursor;

/// A judge's refusal, with the rid it was asked about.
#[derive(Debug, PartialEq)]
struct Refused(u64);

impl From<AbsentIndexLeaf> for Refused {
    fn from(absent: AbsentIndexLeaf) -> Refused {
        panic!("{}", PageFault::from(absent))
    }
}

struct Nothing;
impl KeyExtractor for Nothing {
    fn key(&self, _: RowRef<'_>, _: &mut Vec<u8>) -> KeyKind {
        KeyKind::Absent
    }

    fn keys(&self) -> u64 {
        1
    }
}

fn entry(key: &[u8], rid: u64) -> Vec<u8> {
    let mut bytes = key.to_vec();
    Index::complete(&mut bytes, Rid(rid));
    bytes
}

fn walk(
    index: &Arc<Index>,
    lower: Bound<&[u8]>,
    upper: Bound<&[u8]>,
    reverse: bool,
) -> Vec<(Vec<u8>, u64)> {
    let mut cursor = IndexCursor::new(
        index,
        lower.map(<[u8]>::to_vec),
        upper.map(<[u8]>::to_vec),
        reverse,
    );
    let mut out = Vec::new();
    while let Some(rid) = cursor.advance().expect_present() {
        out.push((cursor.key().to_vec(), rid.0));
    }
    out
}

#[test]
fn ranges_by_prefix_in_both_directions_agree_with_a_filter() {
    let index = Arc::new(Index::new(
        IndexId(1),
        false,
        Arc::new(Nothing),
        Arc::new(TableRows::new(logstead_types::TableId(1), &UNLIMITED)),
    ));
    let mut all = Vec::new();
    for a in [0u8, 1, 7, 254, 255] {
        for b in [0u8, 3, 255] {
            for rid in 0..9 {
                index
                    .insert(&entry(&[a, b], rid))
                    .map_err(PageFault::from)
                    .expect_present();
                all.push((vec![a, b], rid));
            }
        }
    }
    let mut bounds: Vec<Bound<Vec<u8>>> = vec![Bound::Unbounded];
    for bound in [&[1u8][..], &[255], &[0], &[7, 3], &[255, 255], &[5]] {
        bounds.push(Bound::Included(bound.to_vec()));
        bounds.push(Bound::Excluded(bound.to_vec()));
    }
    for lower in &bounds {
        for upper in &bounds {
            let cut = |key: &[u8], bound: &[u8]| key[..bound.len().min(key.len())].to_vec();
            let mut expected: Vec<_> = all
                .iter()
                .filter(|(key, _)| match lower {
                    Bound::Unbounded => true,
                    Bound::Included(b) => cut(key, b) >= *b,
                    Bound::Excluded(b) => cut(key, b) > *b,
                })
                .filter(|(key, _)| match upper {
                    Bound::Unbounded => true,
                    Bound::Included(b) => cut(key, b) <= *b,
                    Bound::Excluded(b) => cut(key, b) < *b,
                })
                .cloned()
                .collect();
            let (low, up) = (
                lower.as_ref().map(|b| &b[..]),
                upper.as_ref().map(|b| &b[..]),
            );
            assert_eq!(
                walk(&index, low, up, false),
                expected,
                "{lower:?}..{upper:?}"
            );
            expected.reverse();
            assert_eq!(
                walk(&index, low, up, true),
                expected,
                "{lower:?}..{upper:?} reverse"
            );
        }
    }
}

#[test]
fn insert_and_check_judges_the_key_s_other_rids_and_takes_back() {
    let index = Arc::new(Index::new(
        IndexId(1),
        true,
        Arc::new(Nothing),
        Arc::new(TableRows::new(logstead_types::TableId(1), &UNLIMITED)),
    ));
    assert_eq!(
        index.insert_and_check(&entry(b"k", 1), |_| Err(Refused(0))),
        Ok(())
    );
    assert_eq!(
        index.insert_and_check(&entry(b"kk", 2), |_| Err(Refused(0))),
        Ok(()),
        "another key"
    );
    let long = [7u8; 100];
    assert_eq!(
        index.insert_and_check(&entry(&long, 3), |_| Err(Refused(0))),
        Ok(())
    );
    assert_eq!(
        index.insert_and_check(&entry(b"k", 4), |rid| Err(Refused(rid.0))),
        Err(Refused(1))
    );
    assert_eq!(index.entry_count(), 3);
    assert_eq!(
        index.insert_and_check(&entry(b"k", 1), |_| Err(Refused(0))),
        Ok(()),
        "its own entry"
    );
    index.remove_if(&entry(b"k", 1), || false);
    assert_eq!(index.entry_count(), 3);
    index.remove_if(&entry(b"k", 1), || true);
    assert_eq!(index.entry_count(), 2);
}
