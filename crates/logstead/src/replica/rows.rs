//! Rows that the primary has let go of because its log is durable, and asks this replica for (`page_service`).
//!
//! Threads of their own tell them, so that nobody who follows the log waits for pages that have to be read. They end
//! with the stream's link.
//!
//! Where more is asked than is told the oldest requests go first: the primary asks somebody else after a while
//! ([`ASKED_TIME_MAX`]), and then nobody waits for them. Who was asked so long ago is told that much, so that the
//! primary knows that the replica is there.
//!
//! Does not: know what is to be told ([`logstead_engine::ReplicaPageReader`]).

use super::stream::StreamLink;
use logstead_engine::{PageRead, PageReadAnswer, Replica};
use logstead_env::{Env, Instant};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// As many wait for pages, or for the log, at a time.
const THREADS: usize = 2;
/// Requests that nobody has looked at.
const READS_MAX: usize = 512;
/// Nobody waits for rows that were asked for so long ago.
const ASKED_TIME_MAX: Duration = Duration::from_secs(1);

/// A request whose turn has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadTurn {
    /// Somebody waits for it.
    Awaited(PageRead),
    /// Nobody does any more.
    Abandoned(PageRead),
}

/// What the primary asks for, and when that came.
#[derive(Default)]
pub(super) struct ReadQueue(VecDeque<(PageRead, Instant)>);

impl ReadQueue {
    /// The primary asks for this. Where there are too many the oldest goes.
    pub(super) fn push(&mut self, read: PageRead, now: Instant) {
        if self.0.len() >= READS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((read, now));
    }

    pub(super) fn pop(&mut self, now: Instant) -> Option<ReadTurn> {
        let (read, asked_at) = self.0.pop_front()?;
        Some(match now.since(asked_at) > ASKED_TIME_MAX {
            false => ReadTurn::Awaited(read),
            true => ReadTurn::Abandoned(read),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Starts the threads.
pub(super) fn start(
    replica: &Replica<'_>,
    env: &Env,
    link: &Arc<StreamLink>,
) -> std::io::Result<()> {
    for _ in 0..THREADS {
        let (mut reader, link) = (replica.page_reader(), Arc::clone(link));
        let _ends_by_itself = env.spawn("page-rows", None, move || {
            while let Some(turn) = link.next_read() {
                link.tells_rows(match turn {
                    ReadTurn::Awaited(read) => reader.answer(&read),
                    ReadTurn::Abandoned(read) => PageReadAnswer {
                        number: read.number,
                        rows: Err("it was asked for too long ago".to_owned()),
                    },
                });
            }
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_engine::{Csn, TableId};
    use logstead_types::Epoch;

    fn read(number: u64) -> PageRead {
        PageRead {
            number,
            epoch: Epoch(1),
            from: Csn(5),
            table: TableId(20_000),
            chunk: 1,
            slots: 1,
        }
    }

    /// However much is asked, what was asked last is told, and what nobody waits for is not looked for.
    #[test]
    fn the_oldest_requests_go_where_there_are_too_many() {
        let mut queue = ReadQueue::default();
        let begin = Instant::from_nanos(7);
        let asked = 2 * READS_MAX as u64 + 1;
        for number in 0..asked {
            queue.push(read(number), begin);
        }
        assert_eq!(queue.0.len(), READS_MAX);
        let first = asked - READS_MAX as u64;
        let latest = begin + ASKED_TIME_MAX;
        assert_eq!(queue.pop(latest), Some(ReadTurn::Awaited(read(first))));
        let later = latest + Duration::from_nanos(1);
        queue.push(read(asked), later);
        for number in first + 1..asked {
            assert_eq!(queue.pop(later), Some(ReadTurn::Abandoned(read(number))));
        }
        assert_eq!(queue.pop(later), Some(ReadTurn::Awaited(read(asked))));
        assert!(queue.is_empty() && queue.pop(later).is_none());
    }
}
