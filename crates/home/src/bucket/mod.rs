//! A bucket: what a provider of object storage offers, and no more. The object homes are built on it.
//!
//! Names are relative to the prefix that the home's URL gives; `/` separates. Every operation is one request to the
//! provider, or a fixed few where its protocol needs them; none is repeated here: whoever asks knows what a second try
//! means (T14). Futures run on the home's own runtime, and may be dropped at any time, which leaves the outcome
//! unknown.
//!
//! Does not: retry, settle what is in doubt, or know lanes and blocks.

#[cfg(feature = "cloud")]
mod client;
pub mod memory;
#[cfg(feature = "cloud")]
mod meter;
mod patience;
pub mod probe;
mod read_only;
#[cfg(feature = "cloud")]
mod url;

#[cfg(feature = "cloud")]
pub use client::{open, open_with};
#[cfg(feature = "cloud")]
pub use url::{BucketUrl, Service};

pub use patience::PatientBucket;
pub use read_only::ReadOnlyBucket;

use bytes::Bytes;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// Refuses: providers' buckets need the feature `cloud`.
#[cfg(not(feature = "cloud"))]
pub fn open(
    _url: &str,
    _env: &logstead_env::Env,
) -> Result<std::sync::Arc<dyn Bucket>, crate::HomeError> {
    Err(crate::HomeError::Unsupported(
        "buckets: this build has no feature `cloud`",
    ))
}

/// What an operation answers, later.
pub type BucketFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, BucketError>> + Send + 'a>>;

/// The provider's name for one state of an object: two states of an object never share one, unless their bytes are
/// equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ETag(pub String);

/// An object, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its length.
    pub len: u64,
    /// Its state.
    pub etag: Option<ETag>,
}

/// What a listing shows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListEntry {
    /// The object's name, relative to the bucket's prefix.
    pub name: String,
    /// Its length.
    pub len: u64,
}

/// How far objects can grow by appends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendLimits {
    /// Most appends to one object, the one that makes it included (S3 Express: 10,000; Azure: 50,000).
    pub appends_max: u64,
    /// Most bytes of one append.
    pub append_bytes_max: u64,
    /// Most bytes of an object.
    pub object_bytes_max: u64,
}

/// Why an operation did not succeed, by what its caller may conclude from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// There is no such object. Nothing was changed.
    Absent,
    /// There is such an object already, or it is in another state than was asked for. Nothing was changed by this
    /// request (a lost earlier one of ours may be the reason).
    Precondition,
    /// The object's length is not the offset. Nothing was changed by this request (likewise).
    WrongOffset,
    /// The object takes no more appends. Nothing was changed.
    Full,
    /// The provider has no room for it, by a quota or at all. Nothing was changed, and it may find room later.
    NoSpace,
    /// The provider did not act, and may later: throttled, not reachable at all, credentials expired.
    NotNow,
    /// Nobody knows whether it acted: no answer in time, connection lost, a server's error, an answer cut short.
    Unknown,
    /// The provider will not: access denied, no such bucket, a request it does not understand. Nothing was changed.
    Refused,
}

/// An operation failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{what}: {why}")]
pub struct BucketError {
    /// What its caller may conclude.
    pub outcome: Outcome,
    /// What was asked, of which object.
    pub what: String,
    /// What the provider or the client library said.
    pub why: String,
}

/// A bucket; see the module's documentation.
pub trait Bucket: Send + Sync + 'static {
    /// Provider, bucket and prefix, for people; without credentials.
    fn describe(&self) -> String;

    /// The provider's name in the price list: the scheme of its URLs.
    fn provider(&self) -> &str;

    /// Objects can be appended to, so far. `None`: they are written once.
    fn appends(&self) -> Option<AppendLimits>;

    /// Requests and bytes since the bucket was opened, each request on the wire counted.
    fn usage(&self) -> crate::Usage;

    /// Makes an object that can be appended to, with these first bytes, if there is none of that name
    /// ([`Outcome::Precondition`] otherwise).
    fn create<'a>(&'a self, name: &'a str, first: Bytes) -> BucketFuture<'a, ()>;

    /// Appends to an object whose length is exactly `offset` ([`Outcome::WrongOffset`] otherwise), all or nothing. The
    /// length is checked by the provider, in the same step; a client that looks first and then appends is no fence.
    fn append<'a>(&'a self, name: &'a str, offset: u64, bytes: Bytes) -> BucketFuture<'a, ()>;

    /// Writes an object if there is none of that name ([`Outcome::Precondition`] otherwise).
    fn put_if_absent<'a>(&'a self, name: &'a str, bytes: Bytes) -> BucketFuture<'a, Option<ETag>>;

    /// Replaces an object that is still in the state `expected` ([`Outcome::Precondition`] otherwise).
    fn replace<'a>(
        &'a self,
        name: &'a str,
        expected: &'a ETag,
        bytes: Bytes,
    ) -> BucketFuture<'a, Option<ETag>>;

    /// Writes an object, whatever was there: for names that only one writer uses, and only with the same bytes.
    fn put<'a>(&'a self, name: &'a str, bytes: Bytes) -> BucketFuture<'a, ()>;

    /// A whole object and its state, read in one request.
    fn get<'a>(&'a self, name: &'a str) -> BucketFuture<'a, (Bytes, Option<ETag>)>;

    /// Bytes of an object from `offset` on, at most `len`; fewer only at its end, none behind it.
    fn get_range<'a>(&'a self, name: &'a str, offset: u64, len: u64) -> BucketFuture<'a, Bytes>;

    /// An object's length and state; `None` if there is none.
    fn stat<'a>(&'a self, name: &'a str) -> BucketFuture<'a, Option<Stat>>;

    /// The objects whose names begin with `directory` (which ends with `/`), all of them, in any depth, in order of
    /// their names.
    fn list<'a>(&'a self, directory: &'a str) -> BucketFuture<'a, Vec<ListEntry>>;

    /// Removes an object; a missing one is fine.
    fn delete<'a>(&'a self, name: &'a str) -> BucketFuture<'a, ()>;
}

impl BucketError {
    /// With what was asked, and what came of it.
    pub fn new(outcome: Outcome, what: impl Into<String>, why: impl fmt::Display) -> BucketError {
        BucketError {
            outcome,
            what: what.into(),
            why: why.to_string(),
        }
    }
}
