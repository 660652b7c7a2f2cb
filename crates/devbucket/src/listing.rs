//! Pages of a listing.
//!
//! A general bucket lists in order of the names. A directory bucket promises no order
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>); this one shows them in the order of a
//! checksum, so that a client that relies on more does not work by luck.

use crate::object::Object;
use crate::store::{Bucket, BucketKind};
use std::collections::BTreeMap;

/// What a line of a listing shows.
pub(crate) enum Line {
    Object(Object),
    /// Everything whose name begins so.
    Prefix,
}

/// A page.
pub(crate) struct Page {
    pub(crate) lines: Vec<(String, Line)>,
    /// There is more, behind the last line.
    pub(crate) is_truncated: bool,
}

/// The place of a line in its bucket's order.
fn place(kind: BucketKind, name: &str) -> (u32, &str) {
    match kind {
        BucketKind::General => (0, name),
        BucketKind::Directory => (crc32c::crc32c(name.as_bytes()), name),
    }
}

/// At most `lines_max` lines behind the one called `after`.
pub(crate) fn page(
    bucket: &Bucket,
    prefix: &str,
    delimiter: Option<&str>,
    after: Option<&str>,
    lines_max: usize,
) -> Page {
    let mut lines: BTreeMap<String, Line> = BTreeMap::new();
    for (key, object) in bucket.with_prefix(prefix) {
        let cut = delimiter.and_then(|delimiter| {
            let at = key[prefix.len()..].find(delimiter)?;
            Some(prefix.len() + at + delimiter.len())
        });
        match cut {
            Some(len) => drop(lines.insert(key[..len].to_owned(), Line::Prefix)),
            None => drop(lines.insert(key, Line::Object(object))),
        }
    }
    let mut lines: Vec<(String, Line)> = lines.into_iter().collect();
    lines.sort_by(|(one, _), (other, _)| place(bucket.kind, one).cmp(&place(bucket.kind, other)));
    if let Some(after) = after {
        let behind = place(bucket.kind, after);
        let skip = lines.partition_point(|(name, _)| place(bucket.kind, name) <= behind);
        lines.drain(..skip);
    }
    let is_truncated = lines.len() > lines_max;
    lines.truncate(lines_max);
    Page {
        lines,
        is_truncated,
    }
}
