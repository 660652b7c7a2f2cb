//! A replication connection: a replica follows this server's log by it.
//!
//! The replica is in PostgreSQL's replication mode (`replication=true` in the startup packet) and sends simple queries
//! only: `IDENTIFY_SYSTEM`, then `START_REPLICATION BLOCKS ...`, which turns to copying in both directions. Each
//! CopyData holds one message ([`StreamMessage`], [`StreamReply`]), numbers big-endian:
//!
//! | from | kind | then |
//! |---|---|---|
//! | server | `b`, a block | lane u32, segment u64, offset u64, the block's bytes |
//! | server | `h`, the horizon | horizon u64, clock i64 (microseconds since 2000), bytes of blocks sent so far u64 |
//! | server | `o`, an order to write a checkpoint's pages | number u64, epoch u32, record in force u64 and its checksum u32, lowest CSN u64, first and last object number u32 each, bytes a second u64, and the numbers of records that are whole, each u64 |
//! | server | `x`, an order is given up | its number u64 |
//! | server | `g`, rows are asked for as of a read point | number u64, epoch u32, read point u64, table u32, chunk u64, a bit for each row u64 |
//! | replica | `r`, its state | its snapshots see everything below u64, clock i64 |
//! | replica | `k`, the checkpoints it reads from | the numbers of their records, each u64 |
//! | replica | `w`, it writes pages | nothing: from then on it may get orders |
//! | replica | `v`, it tells rows | nothing: from then on it may be asked for some |
//! | replica | `q`, rows that were asked for | number u64, then `y` and each row that there is: its place u8, CSN u64, length u32 and bytes; or `n` and why not |
//! | replica | `p`, what becomes of an order | its number u64, then `b` and the CSN u64 (begun), `w` (at work), `s`, the record u64 and its checksum u32, a record whose tiles are named again u64 or 0 (stored), or `r` and why (refused) |
//!
//! Horizons come at most once a millisecond, and without news once a second, so that the replica knows that the server
//! is there. A replica that is silent for a minute is cut off.
//!
//! Does not: know where blocks come from ([`ReplicationSender`]).

mod page_messages;

use crate::client_connection::{ClientConnection, SessionEnd, protocol_error};
use crate::decode::Frontend;
use crate::encode::{self, Field};
use logstead_engine::{FeedBlock, ObjectId, PageReadAnswer, PageReply, PageRequest};
use logstead_sql_session::{
    Client, ConnectionLost, ReplicationCommand, ReplicationSender, Session,
};
use logstead_sql_types::SqlError;
use logstead_types::{Csn, LaneId, SqlState};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

/// Between two horizons: who writes much is not asked to send each block alone.
const PAUSE: Duration = Duration::from_millis(1);
/// The longest silence of the server.
const KEEPALIVE: Duration = Duration::from_secs(1);
/// Most checkpoints that a replica names.
const CHECKPOINTS_MAX: usize = 16;
/// The longest silence of a replica.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// What the server tells a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamMessage<'a> {
    /// A block of a lane.
    Block {
        /// The lane.
        lane: LaneId,
        /// The segment that it begins in.
        segment: u64,
        /// Where in that.
        offset: u64,
        /// Header and entries.
        bytes: &'a [u8],
    },
    /// Everything below is durable.
    Horizon {
        /// The CSN.
        horizon: Csn,
        /// The server's clock, in microseconds since 2000.
        clock: i64,
        /// Bytes of blocks that this connection has brought.
        sent_bytes: u64,
    },
    /// What is to be done, or no more, by a replica that writes pages.
    Pages(PageRequest),
}

/// What a replica tells the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamReply {
    /// How far it has come.
    Replayed {
        /// Its snapshots see everything below.
        replayed: Csn,
        /// Its clock, in microseconds since 2000.
        clock: i64,
    },
    /// The records of the checkpoints that it reads from, and no others any more. Not to a server whose
    /// `IDENTIFY_SYSTEM` has no column `holds`.
    Checkpoints(Vec<ObjectId>),
    /// It writes pages of checkpoints when it is asked. Not to a server whose `IDENTIFY_SYSTEM` has no column `pages`.
    WritesPages,
    /// It tells rows when it is asked. Not to a server whose `IDENTIFY_SYSTEM` has no column `rows`.
    TellsRows,
    /// What becomes of an order.
    Pages(PageReply),
    /// Rows that it was asked for.
    Rows(PageReadAnswer),
}

/// Takes a number of `N` bytes.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

impl StreamMessage<'_> {
    /// Appends it as CopyData.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let at = encode::begin(out, b'd');
        match self {
            StreamMessage::Block {
                lane,
                segment,
                offset,
                bytes,
            } => {
                out.push(b'b');
                out.extend_from_slice(&u32::from(lane.0).to_be_bytes());
                out.extend_from_slice(&segment.to_be_bytes());
                out.extend_from_slice(&offset.to_be_bytes());
                out.extend_from_slice(bytes);
            }
            StreamMessage::Horizon {
                horizon,
                clock,
                sent_bytes,
            } => {
                out.push(b'h');
                out.extend_from_slice(&horizon.get().to_be_bytes());
                out.extend_from_slice(&clock.to_be_bytes());
                out.extend_from_slice(&sent_bytes.to_be_bytes());
            }
            StreamMessage::Pages(request) => page_messages::put_request(request, out),
        }
        encode::end(out, at);
    }

    /// Reads the content of a CopyData; `None` if it is none of these.
    pub fn decode(mut body: &[u8]) -> Option<StreamMessage<'_>> {
        match take::<1>(&mut body)? {
            [b'b'] => {
                let lane = u32::from_be_bytes(take(&mut body)?);
                Some(StreamMessage::Block {
                    lane: LaneId(lane.try_into().ok()?),
                    segment: u64::from_be_bytes(take(&mut body)?),
                    offset: u64::from_be_bytes(take(&mut body)?),
                    bytes: body,
                })
            }
            [b'h'] => {
                let message = StreamMessage::Horizon {
                    horizon: Csn(u64::from_be_bytes(take(&mut body)?)),
                    clock: i64::from_be_bytes(take(&mut body)?),
                    sent_bytes: u64::from_be_bytes(take(&mut body)?),
                };
                body.is_empty().then_some(message)
            }
            [kind] => page_messages::request(kind, body).map(StreamMessage::Pages),
        }
    }
}

impl StreamReply {
    /// Appends it as CopyData.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let at = encode::begin(out, b'd');
        match self {
            StreamReply::Replayed { replayed, clock } => {
                out.push(b'r');
                out.extend_from_slice(&replayed.get().to_be_bytes());
                out.extend_from_slice(&clock.to_be_bytes());
            }
            StreamReply::Checkpoints(records) => {
                out.push(b'k');
                for record in records {
                    out.extend_from_slice(&record.0.to_be_bytes());
                }
            }
            StreamReply::WritesPages => out.push(b'w'),
            StreamReply::TellsRows => out.push(b'v'),
            StreamReply::Pages(reply) => page_messages::put_reply(reply, out),
            StreamReply::Rows(answer) => page_messages::put_answer(answer, out),
        }
        encode::end(out, at);
    }

    /// Reads the content of a CopyData; `None` if it is none.
    pub fn decode(mut body: &[u8]) -> Option<StreamReply> {
        match take::<1>(&mut body)? {
            [b'r'] => {
                let reply = StreamReply::Replayed {
                    replayed: Csn(u64::from_be_bytes(take(&mut body)?)),
                    clock: i64::from_be_bytes(take(&mut body)?),
                };
                body.is_empty().then_some(reply)
            }
            [b'k'] => {
                let mut records = Vec::new();
                while !body.is_empty() {
                    if records.len() == CHECKPOINTS_MAX {
                        return None;
                    }
                    records.push(ObjectId(u64::from_be_bytes(take(&mut body)?)));
                }
                Some(StreamReply::Checkpoints(records))
            }
            [b'w'] => body.is_empty().then_some(StreamReply::WritesPages),
            [b'v'] => body.is_empty().then_some(StreamReply::TellsRows),
            [b'p'] => page_messages::reply(body).map(StreamReply::Pages),
            [b'q'] => page_messages::answer(body).map(StreamReply::Rows),
            _ => None,
        }
    }
}

/// Serves a replication connection to its end.
pub(crate) async fn serve(
    link: &mut ClientConnection,
    session: &mut Session,
) -> Result<SessionEnd, ConnectionLost> {
    loop {
        link.write_out().await?;
        session.waits_for_client();
        if !link.has_frame()
            && let Event::Ends(reason) = next_event(link, session, None, None).await?
        {
            link.error(&reason);
            return Ok(SessionEnd::Over);
        }
        if !link.has_frame() {
            continue;
        }
        let frame = match link.next_frame().await? {
            Ok(frame) => frame,
            Err(error) => {
                link.error(&protocol_error(error));
                return Ok(SessionEnd::Over);
            }
        };
        let done = match frame.decode() {
            Ok(Frontend::Query(text)) => match ReplicationCommand::parse(text) {
                Ok(ReplicationCommand::IdentifySystem) => identify_system(link, session).await,
                Ok(ReplicationCommand::StartReplication(followed)) => {
                    match session.start_replication(followed) {
                        Ok(sender) => match stream(link, session, sender).await? {
                            Some(end) => return Ok(end),
                            None => Ok(()),
                        },
                        Err(error) => Err(error),
                    }
                }
                Err(error) => Err(error),
            },
            Ok(Frontend::Terminate) => return Ok(SessionEnd::Over),
            // Late pieces of what has ended.
            Ok(Frontend::CopyData(_) | Frontend::CopyDone | Frontend::CopyFail(_)) => continue,
            Ok(_) => {
                let what = "extended query protocol not supported in a replication connection";
                link.error(&SqlError::new(SqlState::PROTOCOL_VIOLATION, what).fatal());
                return Ok(SessionEnd::Over);
            }
            Err(error) => Err(protocol_error(error)),
        };
        if let Err(error) = done {
            link.error(&error);
        }
        encode::ready_for_query(link.output(), b'I');
    }
}

async fn identify_system(link: &mut ClientConnection, session: &Session) -> Result<(), SqlError> {
    const TEXT: u32 = 25;
    let published = tokio::task::spawn_blocking(session.identity_publication()).await;
    published
        .map_err(|_| SqlError::internal("leaving the server's number at the home panicked"))??;
    let identity = session.identify_system();
    let columns = [
        ("systemid", format!("{:016x}", identity.database.get())),
        ("timeline", identity.epoch.to_string()),
        ("xlogpos", identity.horizon.to_string()),
        ("home", identity.home),
        ("server", format!("{:016x}", identity.server)),
        ("holds", "t".to_owned()),
        ("pages", "t".to_owned()),
        ("rows", "t".to_owned()),
    ];
    let out = link.output();
    let fields = columns.iter().map(|(name, _)| Field {
        name,
        table: 0,
        attribute: 0,
        ty: TEXT,
        length: -1,
        modifier: -1,
        binary: false,
    });
    encode::row_description(out, fields);
    let at = encode::begin(out, b'D');
    out.extend_from_slice(&(columns.len() as u16).to_be_bytes());
    for (_, value) in &columns {
        // They are as short as the server's settings.
        out.extend_from_slice(&(value.len() as u32).to_be_bytes());
        out.extend_from_slice(value.as_bytes());
    }
    encode::end(out, at);
    encode::command_complete(out, &"IDENTIFY_SYSTEM");
    Ok(())
}

/// What a replication connection waits for.
enum Event {
    /// Bytes have come.
    Received,
    /// There is something to send, or it is time to.
    Due,
    /// The session is to end.
    Ends(SqlError),
}

/// Waits for the next one: bytes, the log, if `sender` sends it, a time, or the end.
async fn next_event(
    link: &mut ClientConnection,
    session: &Session,
    sender: Option<&ReplicationSender>,
    until: Option<Instant>,
) -> Result<Event, ConnectionLost> {
    let signals = session.signals();
    let mut receive = pin!(link.receive());
    let mut due = pin!(async {
        match sender {
            Some(sender) => sender.until_due().await,
            None => std::future::pending().await,
        }
    });
    let mut late = pin!(async {
        match until {
            Some(until) => tokio::time::sleep_until(until).await,
            None => std::future::pending().await,
        }
    });
    std::future::poll_fn(|cx| {
        if signals.must_end(false) {
            return Poll::Ready(Ok(Event::Ends(signals.ending())));
        }
        if let Poll::Ready(received) = receive.as_mut().poll(cx) {
            return Poll::Ready(received.map(|()| Event::Received));
        }
        if let Poll::Ready(due) = due.as_mut().poll(cx) {
            return Poll::Ready(Ok(match due {
                Ok(()) => Event::Due,
                Err(error) => Event::Ends(error.fatal()),
            }));
        }
        if late.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(Event::Due));
        }
        signals.register(cx.waker());
        match signals.must_end(false) {
            true => Poll::Ready(Ok(Event::Ends(signals.ending()))),
            false => Poll::Pending,
        }
    })
    .await
}

/// Sends the log, until the replica or the server ends it. `None`: the replica has, and asks on.
async fn stream(
    link: &mut ClientConnection,
    session: &Session,
    mut sender: ReplicationSender,
) -> Result<Option<SessionEnd>, ConnectionLost> {
    encode::copy_response(link.output(), b'W', 0, false);
    let mut blocks: Vec<FeedBlock> = Vec::new();
    let mut sent_bytes = 0_u64;
    let mut heard_at = Instant::now();
    loop {
        let (horizon, has_more) = sender.take(&mut blocks);
        put_blocks(link, &mut blocks, &mut sent_bytes);
        let message = StreamMessage::Horizon {
            horizon,
            clock: sender.now(),
            sent_bytes,
        };
        message.encode(link.output());
        while let Some(request) = sender.take_page_request() {
            StreamMessage::Pages(request).encode(link.output());
        }
        write_out(link, session, heard_at + SILENCE_MAX).await?;
        let sent_at = Instant::now();
        // Where more waits to be sent, there is only a look at what the replica says.
        let next = match has_more {
            true => sent_at,
            false => sent_at + KEEPALIVE,
        };
        // Until there is something to send, and not before the pause is over.
        loop {
            let replies = take_replies(link, &mut sender, &mut heard_at).await?;
            if let Err(error) = replies {
                link.error(&error.fatal());
                return Ok(Some(SessionEnd::Over));
            }
            if matches!(replies, Ok(true)) {
                encode::copy_done(link.output());
                encode::command_complete(link.output(), &"START_REPLICATION");
                return Ok(None);
            }
            if heard_at.elapsed() > SILENCE_MAX {
                let what = "terminating walsender: the replica has been silent for too long";
                link.error(&SqlError::new(SqlState::PROTOCOL_VIOLATION, what).fatal());
                return Ok(Some(SessionEnd::Over));
            }
            match next_event(link, session, Some(&sender), Some(next)).await? {
                Event::Received => {}
                Event::Due => break,
                Event::Ends(reason) => {
                    link.error(&reason);
                    return Ok(Some(SessionEnd::Over));
                }
            }
        }
        if !has_more {
            tokio::time::sleep_until(sent_at + PAUSE).await;
        }
    }
}

fn put_blocks(link: &mut ClientConnection, blocks: &mut Vec<FeedBlock>, sent_bytes: &mut u64) {
    for block in blocks.drain(..) {
        *sent_bytes += block.bytes.len() as u64;
        let message = StreamMessage::Block {
            lane: block.lane,
            segment: block.at.segment,
            offset: block.at.offset,
            bytes: &block.bytes,
        };
        message.encode(link.output());
    }
}

/// Writes what is to be sent. A replica that takes nothing until `deadline`, or the end of the session, cuts the
/// connection off, in the middle of a message.
async fn write_out(
    link: &mut ClientConnection,
    session: &Session,
    deadline: Instant,
) -> Result<(), ConnectionLost> {
    let signals = session.signals();
    let mut written = pin!(link.write_out());
    let mut late = pin!(tokio::time::sleep_until(deadline));
    std::future::poll_fn(|cx| {
        if let Poll::Ready(written) = written.as_mut().poll(cx) {
            return Poll::Ready(written);
        }
        signals.register(cx.waker());
        match signals.must_end(false) || late.as_mut().poll(cx).is_ready() {
            true => Poll::Ready(Err(ConnectionLost)),
            false => Poll::Pending,
        }
    })
    .await
}

/// Reads what the replica has said. True: it ends the copying. 08P01 for what is no reply.
async fn take_replies(
    link: &mut ClientConnection,
    sender: &mut ReplicationSender,
    heard_at: &mut Instant,
) -> Result<Result<bool, SqlError>, ConnectionLost> {
    let wrong = |what: &str| Ok(Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, what)));
    while link.has_frame() {
        let frame = match link.next_frame().await? {
            Ok(frame) => frame,
            Err(error) => return Ok(Err(protocol_error(error))),
        };
        *heard_at = Instant::now();
        match frame.decode() {
            Ok(Frontend::CopyData(body)) => match StreamReply::decode(body) {
                Some(StreamReply::Replayed { replayed, clock }) => sender.replied(replayed, clock),
                Some(StreamReply::Checkpoints(records)) => sender.reads(records),
                Some(StreamReply::WritesPages) => sender.writes_pages(),
                Some(StreamReply::TellsRows) => sender.tells_rows(),
                Some(StreamReply::Pages(reply)) => sender.page_reply(reply),
                Some(StreamReply::Rows(answer)) => sender.rows_answer(answer),
                None => return wrong("the replica has sent what is no reply"),
            },
            Ok(Frontend::CopyDone | Frontend::CopyFail(_)) => return Ok(Ok(true)),
            Ok(Frontend::Terminate) => return Err(ConnectionLost),
            Ok(_) => return wrong("the replica has sent a message out of place"),
            Err(error) => return Ok(Err(protocol_error(error))),
        }
    }
    Ok(Ok(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content of the one CopyData in there.
    fn body(out: &[u8]) -> &[u8] {
        assert_eq!(out[0], b'd');
        assert_eq!(out[1..5], (out.len() as u32 - 1).to_be_bytes());
        &out[5..]
    }

    #[test]
    fn messages_are_read_as_they_were_written_and_nothing_else_is_one() {
        let block = StreamMessage::Block {
            lane: LaneId(3),
            segment: 1 << 40,
            offset: 77,
            bytes: b"block",
        };
        let horizon = StreamMessage::Horizon {
            horizon: Csn(12),
            clock: -5,
            sent_bytes: 9,
        };
        for message in [block, horizon] {
            let mut out = Vec::new();
            message.encode(&mut out);
            let body = body(&out);
            assert_eq!(StreamMessage::decode(body), Some(message.clone()));
            assert_eq!(StreamReply::decode(body), None);
            let is_block = matches!(message, StreamMessage::Block { .. });
            let fixed = body.len() - if is_block { b"block".len() } else { 0 };
            for len in 0..fixed {
                assert_eq!(StreamMessage::decode(&body[..len]), None, "{len}");
            }
        }
        let reply = StreamReply::Replayed {
            replayed: Csn(7),
            clock: 8,
        };
        let mut out = Vec::new();
        reply.encode(&mut out);
        let reply_body = body(&out);
        assert_eq!(StreamReply::decode(reply_body), Some(reply));
        assert_eq!(StreamMessage::decode(reply_body), None);
        for len in 0..reply_body.len() {
            assert_eq!(StreamReply::decode(&reply_body[..len]), None, "{len}");
        }
        let named = |count| StreamReply::Checkpoints((0..count).map(ObjectId).collect());
        for count in [0, 1, CHECKPOINTS_MAX as u64, CHECKPOINTS_MAX as u64 + 1] {
            let mut out = Vec::new();
            named(count).encode(&mut out);
            let is_one = count <= CHECKPOINTS_MAX as u64;
            assert_eq!(
                StreamReply::decode(body(&out)),
                is_one.then(|| named(count))
            );
        }
        assert_eq!(StreamReply::decode(b"k1234567"), None);
    }
}
