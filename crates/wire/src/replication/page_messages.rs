//! The messages about pages of checkpoints that a replica writes, and rows that it tells: see the table in [`super`].
//!
//! Does not: know what they are about ([`logstead_engine::PageOrder`]).

use super::take;
use logstead_engine::{
    ObjectId, PageOrder, PageRead, PageReadAnswer, PageReply, PageRequest, PageRow,
};
use logstead_types::{Csn, Epoch, TableId};

/// Most records that an order names.
const WHOLE_MAX: usize = 64;
/// Longest reason for a refusal; a longer one is cut.
const WHY_BYTES_MAX: usize = 1000;
/// Rows of a chunk.
const ROWS_MAX: u8 = 64;

pub(super) fn put_request(request: &PageRequest, out: &mut Vec<u8>) {
    match request {
        PageRequest::Order(order) => {
            out.push(b'o');
            out.extend_from_slice(&order.number.to_be_bytes());
            out.extend_from_slice(&order.epoch.get().to_be_bytes());
            out.extend_from_slice(&order.record.0.0.to_be_bytes());
            out.extend_from_slice(&order.record.1.to_be_bytes());
            out.extend_from_slice(&order.from.get().to_be_bytes());
            out.extend_from_slice(&order.numbers.start.to_be_bytes());
            out.extend_from_slice(&order.numbers.end.to_be_bytes());
            out.extend_from_slice(&order.bandwidth_bytes.to_be_bytes());
            for record in order.whole.iter().take(WHOLE_MAX) {
                out.extend_from_slice(&record.0.to_be_bytes());
            }
        }
        PageRequest::Cancel(number) => {
            out.push(b'x');
            out.extend_from_slice(&number.to_be_bytes());
        }
        PageRequest::Read(read) => {
            out.push(b'g');
            out.extend_from_slice(&read.number.to_be_bytes());
            out.extend_from_slice(&read.epoch.get().to_be_bytes());
            out.extend_from_slice(&read.from.get().to_be_bytes());
            out.extend_from_slice(&read.table.0.to_be_bytes());
            out.extend_from_slice(&read.chunk.to_be_bytes());
            out.extend_from_slice(&read.slots.to_be_bytes());
        }
    }
}

/// The request of this kind with this body; nothing if it is none.
pub(super) fn request(kind: u8, mut body: &[u8]) -> Option<PageRequest> {
    let number = u64::from_be_bytes(take(&mut body)?);
    match kind {
        b'o' => {
            let mut order = PageOrder {
                number,
                epoch: Epoch(u32::from_be_bytes(take(&mut body)?)),
                record: (
                    ObjectId(u64::from_be_bytes(take(&mut body)?)),
                    u32::from_be_bytes(take(&mut body)?),
                ),
                from: Csn(u64::from_be_bytes(take(&mut body)?)),
                numbers: u32::from_be_bytes(take(&mut body)?)..u32::from_be_bytes(take(&mut body)?),
                bandwidth_bytes: u64::from_be_bytes(take(&mut body)?),
                whole: Vec::new(),
            };
            while !body.is_empty() {
                if order.whole.len() == WHOLE_MAX {
                    return None;
                }
                let record = u64::from_be_bytes(take(&mut body)?);
                order.whole.push(ObjectId(record));
            }
            Some(PageRequest::Order(order))
        }
        b'x' => body.is_empty().then_some(PageRequest::Cancel(number)),
        b'g' => {
            let read = PageRead {
                number,
                epoch: Epoch(u32::from_be_bytes(take(&mut body)?)),
                from: Csn(u64::from_be_bytes(take(&mut body)?)),
                table: TableId(u32::from_be_bytes(take(&mut body)?)),
                chunk: u64::from_be_bytes(take(&mut body)?),
                slots: u64::from_be_bytes(take(&mut body)?),
            };
            body.is_empty().then_some(PageRequest::Read(read))
        }
        _ => None,
    }
}

pub(super) fn put_answer(answer: &PageReadAnswer, out: &mut Vec<u8>) {
    out.push(b'q');
    out.extend_from_slice(&answer.number.to_be_bytes());
    match &answer.rows {
        Ok(rows) => {
            out.push(b'y');
            for row in rows {
                out.push(row.slot);
                out.extend_from_slice(&row.csn.get().to_be_bytes());
                // Rows are limited to less.
                out.extend_from_slice(&(row.row.len() as u32).to_be_bytes());
                out.extend_from_slice(&row.row);
            }
        }
        Err(why) => {
            out.push(b'n');
            let bytes = why.as_bytes();
            out.extend_from_slice(&bytes[..bytes.len().min(WHY_BYTES_MAX)]);
        }
    }
}

/// The answer with this body; nothing if it is none. Rows come in the order of their places, each once.
pub(super) fn answer(mut body: &[u8]) -> Option<PageReadAnswer> {
    let number = u64::from_be_bytes(take(&mut body)?);
    let rows = match take::<1>(&mut body)? {
        [b'y'] => {
            let mut rows: Vec<PageRow> = Vec::new();
            while !body.is_empty() {
                let [slot] = take(&mut body)?;
                if slot >= ROWS_MAX || rows.last().is_some_and(|last| last.slot >= slot) {
                    return None;
                }
                let csn = Csn(u64::from_be_bytes(take(&mut body)?));
                let length = u32::from_be_bytes(take(&mut body)?) as usize;
                let (row, rest) = body.split_at_checked(length)?;
                body = rest;
                let row = row.to_vec();
                rows.push(PageRow { slot, csn, row });
            }
            Ok(rows)
        }
        [b'n'] if body.len() <= WHY_BYTES_MAX => Err(String::from_utf8_lossy(body).into_owned()),
        _ => return None,
    };
    Some(PageReadAnswer { number, rows })
}

pub(super) fn put_reply(reply: &PageReply, out: &mut Vec<u8>) {
    out.push(b'p');
    out.extend_from_slice(&reply.order().to_be_bytes());
    match reply {
        PageReply::Begun { csn, .. } => {
            out.push(b'b');
            out.extend_from_slice(&csn.get().to_be_bytes());
        }
        PageReply::Working { .. } => out.push(b'w'),
        PageReply::Written {
            record: (object, crc),
            tiles,
            ..
        } => {
            out.push(b's');
            out.extend_from_slice(&object.0.to_be_bytes());
            out.extend_from_slice(&crc.to_be_bytes());
            let tiles = tiles.map_or(0, |tiles| tiles.0);
            out.extend_from_slice(&tiles.to_be_bytes());
        }
        PageReply::Refused { why, .. } => {
            out.push(b'r');
            let bytes = why.as_bytes();
            out.extend_from_slice(&bytes[..bytes.len().min(WHY_BYTES_MAX)]);
        }
    }
}

/// The reply with this body; nothing if it is none.
pub(super) fn reply(mut body: &[u8]) -> Option<PageReply> {
    let order = u64::from_be_bytes(take(&mut body)?);
    let reply = match take::<1>(&mut body)? {
        [b'b'] => PageReply::Begun {
            order,
            csn: Csn(u64::from_be_bytes(take(&mut body)?)),
        },
        [b'w'] => PageReply::Working { order },
        [b's'] => PageReply::Written {
            order,
            record: (
                ObjectId(u64::from_be_bytes(take(&mut body)?)),
                u32::from_be_bytes(take(&mut body)?),
            ),
            tiles: Some(u64::from_be_bytes(take(&mut body)?))
                .filter(|tiles| *tiles > 0)
                .map(ObjectId),
        },
        [b'r'] if body.len() <= WHY_BYTES_MAX => PageReply::Refused {
            order,
            why: String::from_utf8_lossy(std::mem::take(&mut body)).into_owned(),
        },
        _ => return None,
    };
    body.is_empty().then_some(reply)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replication::{StreamMessage, StreamReply};

    /// The content of the one CopyData in there.
    fn body(out: &[u8]) -> &[u8] {
        assert_eq!(out[0], b'd');
        &out[5..]
    }

    #[test]
    fn messages_about_pages_are_read_as_they_were_written_and_nothing_else_is_one() {
        let order = |whole: usize| PageOrder {
            number: 7,
            epoch: Epoch(3),
            record: (ObjectId(1 << 40), 99),
            from: Csn(12),
            numbers: 5..6,
            bandwidth_bytes: 1 << 33,
            whole: (0..whole as u64).map(ObjectId).collect(),
        };
        let requests = [
            PageRequest::Order(order(0)),
            PageRequest::Order(order(WHOLE_MAX)),
            PageRequest::Cancel(8),
            PageRequest::Read(PageRead {
                number: 9,
                epoch: Epoch(3),
                from: Csn(1 << 40),
                table: TableId(20_000),
                chunk: 1 << 33,
                slots: u64::MAX - 1,
            }),
        ];
        for request in requests {
            let mut out = Vec::new();
            let message = StreamMessage::Pages(request.clone());
            message.encode(&mut out);
            let body = body(&out);
            assert_eq!(StreamMessage::decode(body), Some(message));
            assert_eq!(StreamReply::decode(body), None);
            let fixed = match request {
                PageRequest::Order(_) => 1 + 8 + 4 + 12 + 8 + 8 + 8,
                PageRequest::Cancel(_) | PageRequest::Read(_) => body.len(),
            };
            for len in 0..fixed {
                assert_eq!(StreamMessage::decode(&body[..len]), None, "{len}");
            }
        }
        let mut out = Vec::new();
        StreamMessage::Pages(PageRequest::Order(order(WHOLE_MAX))).encode(&mut out);
        out.extend_from_slice(&[0; 8]);
        assert_eq!(StreamMessage::decode(body(&out)), None, "too many records");
        let record = (ObjectId(4), 5);
        let written = |tiles| PageReply::Written {
            order: 1,
            record,
            tiles,
        };
        let replies = [
            PageReply::Begun {
                order: 1,
                csn: Csn(2),
            },
            PageReply::Working { order: 1 },
            written(None),
            written(Some(ObjectId(9))),
            PageReply::Refused {
                order: 1,
                why: "the home is away".to_owned(),
            },
        ];
        for reply in replies {
            let mut out = Vec::new();
            let message = StreamReply::Pages(reply.clone());
            message.encode(&mut out);
            let body = body(&out);
            assert_eq!(StreamReply::decode(body), Some(message));
            assert_eq!(StreamMessage::decode(body), None);
            let fixed = match reply {
                PageReply::Refused { .. } => 10,
                _ => body.len(),
            };
            for len in 0..fixed {
                assert_eq!(StreamReply::decode(&body[..len]), None, "{len}");
            }
        }
        let mut out = Vec::new();
        StreamReply::WritesPages.encode(&mut out);
        assert_eq!(
            StreamReply::decode(body(&out)),
            Some(StreamReply::WritesPages)
        );
        assert_eq!(StreamReply::decode(b"ww"), None);
        let mut out = Vec::new();
        StreamReply::TellsRows.encode(&mut out);
        assert_eq!(
            StreamReply::decode(body(&out)),
            Some(StreamReply::TellsRows)
        );
        let row = |slot, length| PageRow {
            slot,
            csn: Csn(8),
            row: vec![b'r'; length],
        };
        let answer = |rows| PageReadAnswer { number: 4, rows };
        let answers = [
            (Ok(Vec::new()), true),
            (Ok(vec![row(0, 0), row(7, 300), row(63, 1)]), true),
            (Err("it is not applied".to_owned()), true),
            (Ok(vec![row(64, 1)]), false),
            (Ok(vec![row(3, 1), row(3, 1)]), false),
            (Ok(vec![row(4, 1), row(3, 1)]), false),
        ];
        for (rows, is_one) in answers {
            let is_refusal = rows.is_err();
            let reply = StreamReply::Rows(answer(rows));
            let mut out = Vec::new();
            reply.encode(&mut out);
            let body = body(&out);
            assert_eq!(StreamReply::decode(body), is_one.then(|| reply.clone()));
            assert_eq!(StreamMessage::decode(body), None);
            let cut = |len: usize| StreamReply::decode(&body[..len]);
            assert!((0..10).all(|len| cut(len).is_none()));
            assert!(is_refusal || cut(body.len() - 1).is_none());
        }
        let long = PageReply::Refused {
            order: 1,
            why: "x".repeat(2 * WHY_BYTES_MAX),
        };
        let mut out = Vec::new();
        StreamReply::Pages(long).encode(&mut out);
        let read = StreamReply::decode(body(&out));
        let is_cut = |why: &str| why.len() == WHY_BYTES_MAX;
        assert!(
            matches!(read, Some(StreamReply::Pages(PageReply::Refused { why, .. })) if is_cut(&why))
        );
    }
}
