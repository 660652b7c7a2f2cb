//! A bucket that is given up when it has been out of reach, or full, for too long: for who can do without it, and
//! begins anew some time later. Whoever asks a bucket otherwise asks again for as long as it takes.
//!
//! Invariant: a request that was sent keeps its outcome. Those that are refused were never sent, so nothing was
//! changed.

use super::{AppendLimits, Bucket, BucketError, BucketFuture, ETag, ListEntry, Outcome, Stat};
use bytes::Bytes;
use logstead_env::{Clock, Instant};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// See the module's documentation.
pub struct PatientBucket {
    bucket: Arc<dyn Bucket>,
    clock: Arc<dyn Clock>,
    patience: Duration,
    trouble: Mutex<Trouble>,
}

/// Since when it has not answered, and has not had room.
#[derive(Default)]
struct Trouble {
    unanswered: Option<Instant>,
    full: Option<Instant>,
    is_given_up: bool,
}

impl PatientBucket {
    /// Gives the bucket up after so long.
    pub fn new(
        bucket: Arc<dyn Bucket>,
        clock: Arc<dyn Clock>,
        patience: Duration,
    ) -> PatientBucket {
        PatientBucket {
            bucket,
            clock,
            patience,
            trouble: Mutex::default(),
        }
    }

    fn note(&self, failure: Option<Outcome>, changes: bool) {
        let now = self.clock.monotonic();
        let mut trouble = self.trouble.lock();
        match failure {
            Some(Outcome::NotNow | Outcome::Unknown) => {
                trouble.unanswered.get_or_insert(now);
            }
            Some(Outcome::NoSpace) => {
                trouble.unanswered = None;
                trouble.full.get_or_insert(now);
            }
            _ => {
                trouble.unanswered = None;
                if changes && failure.is_none() {
                    trouble.full = None;
                }
            }
        }
        let is_over =
            |since: Option<Instant>| since.is_some_and(|at| now.since(at) >= self.patience);
        trouble.is_given_up |= is_over(trouble.unanswered) || is_over(trouble.full);
    }

    /// Makes a request, unless the bucket is given up.
    fn request<'a, T: Send + 'a>(
        &'a self,
        name: &'a str,
        changes: bool,
        request: impl FnOnce() -> BucketFuture<'a, T> + Send + 'a,
    ) -> BucketFuture<'a, T> {
        Box::pin(async move {
            if self.trouble.lock().is_given_up {
                let what = format!("ask for {name}");
                let why = format!("nothing came of it for {} s", self.patience.as_secs());
                return Err(BucketError::new(Outcome::Refused, what, why));
            }
            let answer = request().await;
            self.note(answer.as_ref().err().map(|error| error.outcome), changes);
            answer
        })
    }
}

impl Bucket for PatientBucket {
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

    fn create<'a>(&'a self, name: &'a str, first: Bytes) -> BucketFuture<'a, ()> {
        self.request(name, true, move || self.bucket.create(name, first))
    }

    fn append<'a>(&'a self, name: &'a str, offset: u64, bytes: Bytes) -> BucketFuture<'a, ()> {
        self.request(name, true, move || self.bucket.append(name, offset, bytes))
    }

    fn put_if_absent<'a>(&'a self, name: &'a str, bytes: Bytes) -> BucketFuture<'a, Option<ETag>> {
        self.request(name, true, move || self.bucket.put_if_absent(name, bytes))
    }

    fn replace<'a>(
        &'a self,
        name: &'a str,
        expected: &'a ETag,
        bytes: Bytes,
    ) -> BucketFuture<'a, Option<ETag>> {
        self.request(name, true, move || {
            self.bucket.replace(name, expected, bytes)
        })
    }

    fn put<'a>(&'a self, name: &'a str, bytes: Bytes) -> BucketFuture<'a, ()> {
        self.request(name, true, move || self.bucket.put(name, bytes))
    }

    fn get<'a>(&'a self, name: &'a str) -> BucketFuture<'a, (Bytes, Option<ETag>)> {
        self.request(name, false, move || self.bucket.get(name))
    }

    fn get_range<'a>(&'a self, name: &'a str, offset: u64, len: u64) -> BucketFuture<'a, Bytes> {
        self.request(name, false, move || {
            self.bucket.get_range(name, offset, len)
        })
    }

    fn stat<'a>(&'a self, name: &'a str) -> BucketFuture<'a, Option<Stat>> {
        self.request(name, false, move || self.bucket.stat(name))
    }

    fn list<'a>(&'a self, directory: &'a str) -> BucketFuture<'a, Vec<ListEntry>> {
        self.request(directory, false, move || self.bucket.list(directory))
    }

    fn delete<'a>(&'a self, name: &'a str) -> BucketFuture<'a, ()> {
        // Also where there is no room for more.
        self.request(name, false, move || self.bucket.delete(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::memory::{Fault, MemoryBucket, MemoryOptions, RequestKind};
    use logstead_env::SimClock;

    fn ask<T>(future: BucketFuture<'_, T>) -> Result<T, Outcome> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(future).map_err(|error| error.outcome)
    }

    /// It is asked again and again until the time is over, and then no more; an answer begins the time anew.
    #[test]
    fn a_bucket_is_given_up_when_nothing_has_come_for_so_long() {
        let memory = Arc::new(MemoryBucket::new(MemoryOptions::appendable(100)));
        let clock = Arc::new(SimClock::new());
        let patience = Duration::from_secs(30);
        let bucket =
            PatientBucket::new(Arc::clone(&memory) as _, Arc::clone(&clock) as _, patience);
        let bytes = || Bytes::from_static(b"bytes");
        for fault in [Fault::NotNow, Fault::NotNow] {
            memory.plan(RequestKind::Stat, "a", fault);
            assert_eq!(ask(bucket.stat("a")), Err(Outcome::NotNow));
            clock.advance(Duration::from_secs(29));
            assert_eq!(ask(bucket.stat("a")), Ok(None), "in time");
            clock.advance(Duration::from_secs(29));
        }
        memory.plan(RequestKind::Stat, "a", Fault::NotNow);
        assert_eq!(ask(bucket.stat("a")), Err(Outcome::NotNow));
        clock.advance(patience);
        memory.plan(RequestKind::Stat, "a", Fault::NotNow);
        // What was sent has its own outcome.
        assert_eq!(ask(bucket.stat("a")), Err(Outcome::NotNow));
        assert_eq!(
            ask(bucket.put_if_absent("b", bytes())),
            Err(Outcome::Refused)
        );
        assert_eq!(ask(memory.stat("b")), Ok(None), "it was not sent");
    }
}
