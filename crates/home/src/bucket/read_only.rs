//! A bucket that is only read, or in which new objects are put below one directory: whatever else would change it is
//! refused before it is asked.

use super::{AppendLimits, Bucket, BucketError, BucketFuture, ETag, ListEntry, Outcome, Stat};
use bytes::Bytes;
use std::sync::Arc;

/// See the module's documentation.
pub struct ReadOnlyBucket {
    bucket: Arc<dyn Bucket>,
    /// Names that begin like this may be put, if they are absent.
    puts: Option<&'static str>,
}

impl ReadOnlyBucket {
    /// Nothing may be changed.
    pub fn new(bucket: Arc<dyn Bucket>) -> ReadOnlyBucket {
        ReadOnlyBucket { bucket, puts: None }
    }

    /// Nothing but that what is absent below a directory may be put.
    pub(crate) fn with_puts(bucket: Arc<dyn Bucket>, below: &'static str) -> ReadOnlyBucket {
        ReadOnlyBucket {
            bucket,
            puts: Some(below),
        }
    }
}

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
        self.bucket.describe()
    }

    fn provider(&self) -> &str {
        self.bucket.provider()
    }

    fn appends(&self) -> Option<AppendLimits> {
        self.bucket.appends()
    }

    fn usage(&self) -> crate::Usage {
        self.bucket.usage()
    }

    fn create<'a>(&'a self, name: &'a str, _first: Bytes) -> BucketFuture<'a, ()> {
        refused(name)
    }

    fn append<'a>(&'a self, name: &'a str, _offset: u64, _bytes: Bytes) -> BucketFuture<'a, ()> {
        refused(name)
    }

    fn put_if_absent<'a>(&'a self, name: &'a str, bytes: Bytes) -> BucketFuture<'a, Option<ETag>> {
        match self.puts {
            Some(below) if name.starts_with(below) => self.bucket.put_if_absent(name, bytes),
            _ => refused(name),
        }
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
        self.bucket.get(name)
    }

    fn get_range<'a>(&'a self, name: &'a str, offset: u64, len: u64) -> BucketFuture<'a, Bytes> {
        self.bucket.get_range(name, offset, len)
    }

    fn stat<'a>(&'a self, name: &'a str) -> BucketFuture<'a, Option<Stat>> {
        self.bucket.stat(name)
    }

    fn list<'a>(&'a self, directory: &'a str) -> BucketFuture<'a, Vec<ListEntry>> {
        self.bucket.list(directory)
    }

    fn delete<'a>(&'a self, name: &'a str) -> BucketFuture<'a, ()> {
        refused(name)
    }
}
