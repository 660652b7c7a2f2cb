//! Notifications that wait for a session's client.
//!
//! Does not: know channels or listeners (`notify`).

use std::collections::VecDeque;
use std::sync::Arc;

/// A message, as a listener's client gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Process number of the session that sent it.
    pub pid: i32,
    /// Channel.
    pub channel: Arc<str>,
    /// Payload; may be empty.
    pub payload: Arc<str>,
}

impl Notification {
    fn size_bytes(&self) -> usize {
        std::mem::size_of::<Notification>() + self.payload.len()
    }
}

/// Notifications that wait for a session's client.
#[derive(Default)]
pub(crate) struct Mailbox {
    waiting: VecDeque<Notification>,
    pub(crate) bytes: usize,
}

impl Mailbox {
    pub(crate) fn put(&mut self, notification: Notification) {
        self.bytes += notification.size_bytes();
        self.waiting.push_back(notification);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Notification> {
        self.waiting.iter()
    }

    pub(crate) fn take(&mut self) -> VecDeque<Notification> {
        self.bytes = 0;
        std::mem::take(&mut self.waiting)
    }
}
