//! A bucket that is only read: whatever would change it is refused before it is asked.

use super::{AppendLimits, Bucket, BucketError, BucketFuture, ETag, ListEntry, Outcome, Stat};
use bytes::Bytes;
use std::sync::Arc;

/// See the module's documentation.
pub struct ReadOnlyBucket(pub Arc<dyn Bucket>);

fn refused<'a, T: Send + 'a>(name: &'a str) -> BucketFuture<'a, T> {
    Box::pin(async move {
        Err(BucketError::new(
            Outcome::Refused,
            format!("change {name}"),
            "the bucket was opened for reading only",
        ))
    })
}

impl Bucket for ReadOnlyBucket {
    fn describe(&self) -> String {
        self.0.describe()
    }

    fn provider(&self) -> &str {
        self.0.provider()
    }

    fn appends(&self) -> Option<AppendLimits> {
        self.0.appends()
    }

    fn usage(&self) -> crate::Usage {
        self.0.usage()
    }

    fn create<'a>(&'a self, name: &'a str, _first: Bytes) -> BucketFuture<'a, ()> {
        refused(name)
    }

    fn append<'a>(&'a self, name: &'a str, _offset: u64, _bytes: Bytes) -> BucketFuture<'a, ()> {
        refused(name)
    }

    fn put_if_absent<'a>(&'a self, name: &'a str, _bytes: Bytes) -> BucketFuture<'a, Option<ETag>> {
        refused(name)
    }

    fn replace<'a>(
        &'a self,
        name: &'a str,
        _expected: &'a ETag,
        _bytes: Bytes,
    ) -> BucketFuture<'a, Option<ETag>> {
        refused(name)
    }

    fn put<'a>(&'a self, name: &'a str, _bytes: Bytes) -> BucketFuture<'a, ()> {
        refused(name)
    }

    fn get<'a>(&'a self, name: &'a str) -> BucketFuture<'a, (Bytes, Option<ETag>)> {
        self.0.get(name)
    }

    fn get_range<'a>(&'a self, name: &'a str, offset: u64, len: u64) -> BucketFuture<'a, Bytes> {
        self.0.get_range(name, offset, len)
    }

    fn stat<'a>(&'a self, name: &'a str) -> BucketFuture<'a, Option<Stat>> {
        self.0.stat(name)
    }

    fn list<'a>(&'a self, directory: &'a str) -> BucketFuture<'a, Vec<ListEntry>> {
        self.0.list(directory)
    }

    fn delete<'a>(&'a self, name: &'a str) -> BucketFuture<'a, ()> {
        refused(name)
    }
}
