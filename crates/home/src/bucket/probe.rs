//! The probe: does this server do what the log's safety rests on? Asked once, when a bucket is opened for writing.
//!
//! There are servers that take an append or a conditional write, answer that all is well, and overwrite what was there.
//! With such a server nothing that was acknowledged would be safe, so a home on it is refused, with the reason.
//!
//! Invariants:
//! - Only objects under the scratch name are touched, and they are removed again, as far as that is possible.
//! - A bucket passes only if its *content* is right after each step: answers alone prove nothing.
//!
//! Does not: retry. A store that cannot be reached fails the probe with what it said.

use super::{Bucket, BucketError, ETag, Outcome};
use crate::HomeError;
use bytes::Bytes;
use std::fmt;

/// Why a bucket is not opened.
#[derive(Clone, Debug)]
pub enum ProbeError {
    /// The probe could not be carried out; another time it may be.
    Failed(BucketError),
    /// The store does something else than was asked for: data would be lost.
    Unfit(String),
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeError::Failed(error) => error.fmt(f),
            ProbeError::Unfit(why) => f.write_str(why),
        }
    }
}

impl From<BucketError> for ProbeError {
    fn from(error: BucketError) -> ProbeError {
        ProbeError::Failed(error)
    }
}

impl ProbeError {
    /// As the home's error.
    pub fn at(self, bucket: &dyn Bucket) -> HomeError {
        HomeError::Url {
            url: bucket.describe(),
            what: self.to_string(),
        }
    }
}

const FIRST: &[u8] = b"logstead probe: first.";
const SECOND: &[u8] = b"second, which is longer.";
const THIRD: &[u8] = b"third.";
const STALE: &[u8] = b"stale: must never be seen";

/// Probes a bucket. `nonce` makes the scratch objects' names unlike anybody else's.
pub async fn probe(bucket: &dyn Bucket, nonce: u64) -> Result<(), ProbeError> {
    let scratch = format!("probe/{nonce:016x}");
    let names = [format!("{scratch}/appended"), format!("{scratch}/put")];
    let result = steps(bucket, &names[0], &names[1]).await;
    for name in &names {
        // Nobody reads them; a next probe has other names.
        if let Err(error) = bucket.delete(name).await {
            tracing::warn!(%error, "a scratch object stays behind");
        }
    }
    result
}

async fn steps(bucket: &dyn Bucket, appended: &str, put: &str) -> Result<(), ProbeError> {
    if bucket.appends().is_some() {
        appends(bucket, appended).await?;
    }
    conditions(bucket, put).await
}

fn unfit(what: impl Into<String>) -> ProbeError {
    ProbeError::Unfit(what.into())
}

/// What to do if appends are no good.
const NO_APPENDS: &str = "use s3:// for this server (one object per flush)";

async fn expect(bucket: &dyn Bucket, name: &str, bytes: &[u8]) -> Result<bool, ProbeError> {
    let (found, _) = bucket.get(name).await?;
    Ok(found == bytes)
}

/// A request that must be turned away is: with `outcome`, by the server. `Err(None)`: it was accepted.
fn turned_away<T>(
    answer: Result<T, BucketError>,
    outcomes: &[Outcome],
) -> Result<(), Option<BucketError>> {
    match answer {
        Ok(_) => Err(None),
        Err(error) if outcomes.contains(&error.outcome) => Ok(()),
        Err(error) => Err(Some(error)),
    }
}

async fn appends(bucket: &dyn Bucket, name: &str) -> Result<(), ProbeError> {
    let length = |parts: &[&[u8]]| parts.iter().map(|part| part.len() as u64).sum::<u64>();
    bucket.create(name, Bytes::from_static(FIRST)).await?;
    let all = [FIRST, SECOND].concat();
    let at = length(&[FIRST]);
    if let Err(error) = bucket.append(name, at, Bytes::from_static(SECOND)).await {
        return Err(match error.outcome {
            Outcome::NotNow | Outcome::Unknown => error.into(),
            _ => unfit(format!(
                "the server does not append ({error}): {NO_APPENDS}"
            )),
        });
    }
    if !expect(bucket, name, &all).await? {
        return Err(unfit(format!(
            "the server accepts an append, but overwrites the object with it: it ignores the header that says where the bytes go; {NO_APPENDS}"
        )));
    }
    let at = length(&[FIRST, SECOND]);
    let all = [FIRST, SECOND, THIRD].concat();
    bucket.append(name, at, Bytes::from_static(THIRD)).await?;
    if !expect(bucket, name, &all).await? {
        return Err(unfit(format!(
            "after two appends the object is not what was written; {NO_APPENDS}"
        )));
    }
    // Too low (a writer that was cut off), and too high.
    for stale in [at, length(&[FIRST]), length(&[FIRST, SECOND, THIRD]) + 1] {
        let answer = bucket.append(name, stale, Bytes::from_static(STALE)).await;
        match turned_away(answer, &[Outcome::WrongOffset]) {
            Ok(()) => {}
            Err(None) => {
                return Err(unfit(format!(
                    "the server accepts an append at an offset that is not the object's length: a writer that was cut off could go on; {NO_APPENDS}"
                )));
            }
            Err(Some(error)) => return Err(error.into()),
        }
        if !expect(bucket, name, &all).await? {
            return Err(unfit(format!(
                "the server turned an append at a wrong offset away, but changed the object; {NO_APPENDS}"
            )));
        }
    }
    let again = bucket.create(name, Bytes::from_static(STALE)).await;
    match turned_away(again, &[Outcome::Precondition]) {
        Ok(()) => {}
        Err(None) => {
            return Err(unfit(format!(
                "the server makes an object anew that is there already (it ignores If-None-Match); {NO_CONDITIONS}"
            )));
        }
        Err(Some(error)) => return Err(error.into()),
    }
    if !expect(bucket, name, &all).await? {
        return Err(unfit(format!(
            "the server refused to make an object anew, but changed it; {NO_CONDITIONS}"
        )));
    }
    Ok(())
}

/// What to do if conditional writes are no good.
const NO_CONDITIONS: &str = "without conditional writes two servers could not be kept apart: use another object store, or a newer version of this one";

async fn conditions(bucket: &dyn Bucket, name: &str) -> Result<(), ProbeError> {
    let put = |bytes: &'static [u8]| bucket.put_if_absent(name, Bytes::from_static(bytes));
    put(FIRST).await?;
    match turned_away(put(STALE).await, &[Outcome::Precondition]) {
        Ok(()) => {}
        Err(None) => {
            return Err(unfit(format!(
                "the server overwrites an object that was to be written only if absent (it ignores If-None-Match); {NO_CONDITIONS}"
            )));
        }
        Err(Some(error)) => return Err(error.into()),
    }
    let (found, first) = bucket.get(name).await?;
    if found != FIRST {
        return Err(unfit(format!(
            "the server refused to overwrite an object, but changed it; {NO_CONDITIONS}"
        )));
    }
    let no_state = || {
        unfit(format!(
            "the server names no state of an object (ETag); {NO_CONDITIONS}"
        ))
    };
    let first = first.ok_or_else(no_state)?;
    let seen = bucket.stat(name).await?.and_then(|stat| stat.etag);
    if seen.as_ref() != Some(&first) {
        return Err(unfit(format!(
            "the server names one state of an object in two ways (ETag {first:?}, {seen:?}); {NO_CONDITIONS}"
        )));
    }
    let replaced = bucket
        .replace(name, &first, Bytes::from_static(SECOND))
        .await;
    if let Err(error) = replaced {
        return Err(match error.outcome {
            Outcome::NotNow | Outcome::Unknown => error.into(),
            _ => unfit(format!(
                "the server does not replace an object whose state was named (If-Match): {error}; {NO_CONDITIONS}"
            )),
        });
    }
    let (found, second) = bucket.get(name).await?;
    let second = second.ok_or_else(no_state)?;
    if found != SECOND || second == first {
        return Err(unfit(format!(
            "a replaced object is not what was written; {NO_CONDITIONS}"
        )));
    }
    let nobodys = ETag("\"0123456789abcdef0123456789abcdef\"".to_owned());
    for stale in [&first, &nobodys] {
        let answer = bucket.replace(name, stale, Bytes::from_static(STALE)).await;
        match turned_away(answer, &[Outcome::Precondition]) {
            Ok(()) => {}
            Err(None) => {
                return Err(unfit(format!(
                    "the server replaces an object that is in another state than was named (it ignores If-Match); {NO_CONDITIONS}"
                )));
            }
            Err(Some(error)) => return Err(error.into()),
        }
    }
    if !expect(bucket, name, SECOND).await? {
        return Err(unfit(format!(
            "the server refused to replace an object, but changed it; {NO_CONDITIONS}"
        )));
    }
    Ok(())
}
