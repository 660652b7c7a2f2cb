//! Waiting for another transaction, with an ear to cancellation.

use super::context::Cx;
use super::write::deadlock;
use crate::error::Result;
use logstead_engine::Blocker;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Waits until it is worth trying again what `blocker` stood in the way of.
pub(crate) async fn wait(blocker: Blocker, cx: &mut Cx<'_>) -> Result<()> {
    let storage = cx.storage()?;
    let cancel = storage.cancel;
    let mut released = pin!(blocker.wait(storage.txn));
    poll_fn(|task| {
        // Registered before the flag is read: a request in between still wakes this task.
        cancel.register(task.waker());
        if let Err(error) = cancel.check() {
            return Poll::Ready(Err(error));
        }
        released
            .as_mut()
            .poll(task)
            .map(|outcome| outcome.map_err(|_| deadlock()))
    })
    .await
}
