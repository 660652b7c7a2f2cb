//! Waiting until what a client is told is Committed.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use logstead_types::Csn;

use super::CommitPath;
use crate::commit_wait::CommitWait;
use crate::commit_waiters::client_number;
use crate::dependency_set::IsCommitted;
use crate::watermark::{LogFailed, Watermark, WatermarkWait};

/// Future of [`CommitPath::acknowledged`]. It borrows the path: a count of those who hold it would be written by every
/// worker with each commit.
#[must_use = "a wait does nothing unless polled"]
pub struct AckFuture<'p> {
    path: &'p CommitPath,
    commit_wait: CommitWait,
    /// Which of the list is waited for.
    at: usize,
    number: Option<u64>,
    registered: Option<Csn>,
    floor: Option<WatermarkWait<&'p Watermark>>,
    gsn: Option<WatermarkWait<&'p Watermark>>,
}

impl CommitPath {
    /// Ready when all of it is Committed: at once, without allocating, if it is.
    #[inline]
    pub fn acknowledged(&self, commit_wait: CommitWait) -> AckFuture<'_> {
        AckFuture {
            path: self,
            commit_wait,
            at: 0,
            number: None,
            registered: None,
            floor: None,
            gsn: None,
        }
    }
}

impl Future for AckFuture<'_> {
    type Output = Result<(), LogFailed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        while let Some(&csn) = this.commit_wait.list.get(this.at) {
            if !this.path.is_committed(csn) {
                let number = *this.number.get_or_insert_with(client_number);
                let path = this.path;
                this.registered = Some(csn);
                if path
                    .waits
                    .register(csn, number, cx.waker(), || path.is_committed(csn))
                {
                    // Registered before the look at the failure, which is set before its waiters are woken.
                    return match path.horizon_watermark.failure() {
                        Some(failure) => Poll::Ready(Err(failure)),
                        None => Poll::Pending,
                    };
                }
            }
            if this.registered.take().is_some() {
                this.path.record_acknowledgment(csn);
            }
            this.at += 1;
        }
        if this.commit_wait.floor >= this.path.horizon() {
            let floor = this.floor.get_or_insert_with(|| {
                Watermark::wait(&*this.path.horizon_watermark, this.commit_wait.floor.0 + 1)
            });
            match Pin::new(floor).poll(cx) {
                Poll::Ready(Ok(())) => {}
                other => return other,
            }
        }
        if this.commit_wait.gsn > this.path.gsn_watermark.get() {
            let gsn = this.gsn.get_or_insert_with(|| {
                Watermark::wait(&*this.path.gsn_watermark, this.commit_wait.gsn)
            });
            return Pin::new(gsn).poll(cx);
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for AckFuture<'_> {
    fn drop(&mut self) {
        if let (Some(csn), Some(number)) = (self.registered, self.number) {
            self.path.waits.deregister(csn, number);
        }
    }
}
