//! What servers ask of a storage node, and what it answers.
//!
//! Requests are answered in any order, but for [`Request::Append`] and the pieces of a side segment: they are done in
//! the order in which they come. Every request has one answer, but for those that begin a side segment or give it up.
//!
//! A node that is older than a request breaks the connection over which it comes. So nobody sends one before
//! [`Request::Status`] has told what the node knows ([`PROTOCOL`]); a node that does not say so knows what the first
//! version had.
//!
//! Invariant: [`Request::decode`] and [`Reply::decode`] take any bytes and never panic.
//!
//! Does not: move bytes; see [`frame`](super::frame).

use super::frame::{Frame, FrameBody};
use crate::{CopyItem, HomeError, ObjectId, ObjectInfo, Peer, Position, RequestKind, SeenCopy};
use logstead_types::{Epoch, LaneId};
use std::io;

/// What nodes know that do not say: the requests up to [`Request::Status`].
pub const PROTOCOL_FIRST: u32 = 1;
/// What this version knows: all requests.
pub const PROTOCOL: u32 = 2;
/// The same in what a node tells of itself.
pub const PROTOCOL_LINE: &str = "protocol";

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Opens the volume of the connection, once and first. Who opens to read changes nothing.
    OpenVolume {
        /// It may be changed, and is made if it is not there.
        write: bool,
    },
    /// See [`LaneAppends::open_lane`](crate::LaneAppends::open_lane).
    OpenLane {
        /// Which lane.
        lane: LaneId,
        /// A fresh segment.
        first_segment: u64,
    },
    /// Appends the body.
    Append {
        /// To which lane.
        lane: LaneId,
        /// Behind the append before, or at the start of the next segment.
        at: Position,
    },
    /// See [`LaneSegments::fence`](crate::LaneSegments::fence).
    Fence {
        /// Which lane.
        lane: LaneId,
        /// From which segment on.
        first_segment: u64,
        /// By whom, for people.
        by: String,
    },
    /// Lanes, as numbers of four bytes.
    ListLanes,
    /// Segments: number and length, of eight bytes each.
    ListSegments {
        /// Of which lane.
        lane: LaneId,
    },
    /// Bytes of a lane.
    Read {
        /// Which lane.
        lane: LaneId,
        /// From where.
        at: Position,
        /// How many.
        len: u32,
    },
    /// Writes the body where it is already, or where it is missing.
    Rewrite {
        /// In which lane.
        lane: LaneId,
        /// Where.
        at: Position,
    },
    /// Gives the end of a segment back.
    Seal {
        /// Of which lane.
        lane: LaneId,
        /// From where on.
        at: Position,
    },
    /// Removes a segment.
    Trim {
        /// Of which lane.
        lane: LaneId,
        /// Which one.
        segment: u64,
    },
    /// A named value.
    GetName {
        /// Its name.
        name: String,
    },
    /// Makes a named value of the body.
    PutName {
        /// Its name.
        name: String,
    },
    /// Replaces a named value by the body.
    SwapName {
        /// Its name.
        name: String,
        /// The state that it must be in.
        tag: u64,
    },
    /// Begins a side segment. Not answered.
    BeginSide {
        /// What the pieces that follow name it by; any number that is not in use on this connection.
        writer: u64,
        /// Of which lane.
        lane: LaneId,
        /// Its number.
        id: u64,
    },
    /// Appends the body to a side segment. The answer says that it was taken, not that it is on the disk; an error is
    /// told at the end.
    SidePiece {
        /// Which one.
        writer: u64,
    },
    /// The side segment is complete.
    FinishSide {
        /// Which one.
        writer: u64,
    },
    /// The side segment is not needed. Not answered.
    AbandonSide {
        /// Which one.
        writer: u64,
    },
    /// Bytes of a side segment.
    GetSide {
        /// Of which lane.
        lane: LaneId,
        /// Its number.
        id: u64,
        /// From where.
        offset: u64,
        /// How many.
        len: u32,
    },
    /// Side segments, as numbers of eight bytes.
    ListSides {
        /// Of which lane.
        lane: LaneId,
    },
    /// Removes a side segment.
    RemoveSide {
        /// Of which lane.
        lane: LaneId,
        /// Its number.
        id: u64,
    },
    /// Stores the body as an object.
    PutObject {
        /// Its number.
        id: ObjectId,
    },
    /// Bytes of an object.
    ReadObject {
        /// Its number.
        id: ObjectId,
        /// From where.
        offset: u64,
        /// How many.
        len: u32,
    },
    /// Objects: number and length, of eight bytes each.
    ListObjects,
    /// Removes an object.
    RemoveObject {
        /// Its number.
        id: ObjectId,
    },
    /// Are you there?
    Ping,
    /// What the node tells people about itself and this volume: lines of `name<TAB>value`.
    Status,
    /// Puts the body in the place of a damaged object. See
    /// [`ObjectRepair::replace_object`](crate::ObjectRepair::replace_object).
    ReplaceObject {
        /// The epoch of the server that wants it.
        epoch: Epoch,
        /// Its number.
        id: ObjectId,
        /// What is replaced.
        seen: SeenCopy,
    },
    /// Bytes of an object from the disk.
    ReadObjectFromDisk {
        /// Its number.
        id: ObjectId,
        /// From where.
        offset: u64,
        /// How many.
        len: u32,
    },
    /// Fetches something that is missing from peers, which the body names ([`encode_peers`]). Answered when it is
    /// there; given up when the connection ends. See [`PeerCopies`](crate::PeerCopies).
    FetchFromPeers {
        /// The epoch of the server that wants it.
        epoch: Epoch,
        /// What.
        item: CopyItem,
    },
}

/// What kind of error an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ErrorCode {
    Fenced = 1,
    Conflict = 2,
    Missing = 3,
    Misuse = 4,
    Unsupported = 5,
    DiskFull = 6,
    Damaged = 7,
    Io = 8,
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    /// The node's room is kept for what frees room: see
    /// [`LaneAppends::is_short_of_space`](crate::LaneAppends::is_short_of_space).
    pub is_short_of_space: bool,
    /// What it says.
    pub result: Result<Answer, HomeError>,
}

/// What is answered to a request that succeeded.
#[derive(Debug)]
pub enum Answer {
    /// It is done.
    Done,
    /// The state of a named value, or `None`: there is none. Its bytes.
    Named(Option<u64>, Vec<u8>),
    /// What was asked for.
    Bytes(Vec<u8>),
    /// The volume is open.
    Opened(VolumeLimits),
}

/// What a volume of a node is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeLimits {
    /// The node's number, drawn when its directory was made.
    pub node: u64,
    /// See [`HomeCapabilities`](crate::HomeCapabilities).
    pub block_alignment: u32,
    /// See [`HomeCapabilities`](crate::HomeCapabilities).
    pub block_size_preferred: u32,
    /// See [`HomeCapabilities`](crate::HomeCapabilities).
    pub room_size_bytes_max: u64,
    /// See [`HomeCapabilities`](crate::HomeCapabilities).
    pub appends_in_flight_max: u32,
    /// How long an append takes at the node.
    pub append_latency_expected_us: u32,
    /// Length of a segment.
    pub segment_bytes: u64,
}

/// Writes a head.
#[derive(Default)]
struct HeadWriter(Vec<u8>);

impl HeadWriter {
    fn u32(mut self, number: u32) -> HeadWriter {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn u64(mut self, number: u64) -> HeadWriter {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn lane(self, lane: LaneId) -> HeadWriter {
        self.u32(u32::from(lane.get()))
    }

    fn at(self, at: Position) -> HeadWriter {
        self.u64(at.segment).u64(at.offset)
    }

    fn item(self, item: &CopyItem) -> HeadWriter {
        match item {
            CopyItem::Segment {
                lane,
                segment,
                size_bytes,
                is_sure,
            } => {
                let head = self.u32(0).lane(*lane).u64(*segment).u64(*size_bytes);
                head.u32(u32::from(*is_sure))
            }
            CopyItem::Side { lane, id } => self.u32(1).lane(*lane).u64(*id),
            CopyItem::Object(info) => self.u32(2).u64(info.id.0).u64(info.size_bytes),
        }
    }

    fn seen(mut self, seen: &SeenCopy) -> HeadWriter {
        match seen {
            SeenCopy::Unreadable => self.u32(0),
            SeenCopy::Bytes { len, digest } => {
                self = self.u32(1).u64(*len);
                self.0.extend_from_slice(digest);
                self
            }
        }
    }

    fn text(mut self, text: &str) -> HeadWriter {
        self.0.extend_from_slice(text.as_bytes());
        self
    }
}

/// Reads a head; `None` where it ends too early.
struct HeadReader<'b>(&'b [u8]);

impl HeadReader<'_> {
    fn u32(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*number))
    }

    fn u64(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn flag(&mut self) -> Option<bool> {
        match self.u32()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn lane(&mut self) -> Option<LaneId> {
        self.u32()?.try_into().ok().map(LaneId)
    }

    fn object(&mut self) -> Option<ObjectId> {
        self.u64().map(ObjectId)
    }

    fn at(&mut self) -> Option<Position> {
        Some(Position {
            segment: self.u64()?,
            offset: self.u64()?,
        })
    }

    fn epoch(&mut self) -> Option<Epoch> {
        self.u32().map(Epoch)
    }

    fn item(&mut self) -> Option<CopyItem> {
        Some(match self.u32()? {
            0 => CopyItem::Segment {
                lane: self.lane()?,
                segment: self.u64()?,
                size_bytes: self.u64()?,
                is_sure: self.flag()?,
            },
            1 => CopyItem::Side {
                lane: self.lane()?,
                id: self.u64()?,
            },
            2 => CopyItem::Object(ObjectInfo {
                id: self.object()?,
                size_bytes: self.u64()?,
            }),
            _ => return None,
        })
    }

    fn seen(&mut self) -> Option<SeenCopy> {
        if !self.flag()? {
            return Some(SeenCopy::Unreadable);
        }
        let len = self.u64()?;
        let (digest, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        let digest = *digest;
        Some(SeenCopy::Bytes { len, digest })
    }

    /// All that is left.
    fn text(&mut self) -> Option<String> {
        let text = std::str::from_utf8(std::mem::take(&mut self.0)).ok()?;
        Some(text.to_owned())
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a message is malformed")
}

impl Request {
    /// Has a request of this kind a body that goes to a file as it is?
    pub fn is_aligned(kind: u8) -> bool {
        matches!(kind, 3 | 8)
    }

    /// Since which version requests of this kind are known ([`PROTOCOL`]).
    pub fn protocol_of(kind: u8) -> u32 {
        match kind {
            0..=26 => PROTOCOL_FIRST,
            _ => PROTOCOL,
        }
    }

    /// What it counts as.
    pub(super) fn usage_kind(&self) -> RequestKind {
        match self {
            Request::Append { .. } => RequestKind::Append,
            Request::Rewrite { .. }
            | Request::PutName { .. }
            | Request::SwapName { .. }
            | Request::SidePiece { .. }
            | Request::PutObject { .. }
            | Request::ReplaceObject { .. } => RequestKind::Put,
            Request::Read { .. }
            | Request::GetName { .. }
            | Request::GetSide { .. }
            | Request::ReadObject { .. }
            | Request::ReadObjectFromDisk { .. } => RequestKind::Get,
            Request::ListLanes
            | Request::ListSegments { .. }
            | Request::ListSides { .. }
            | Request::ListObjects => RequestKind::List,
            Request::Trim { .. } | Request::RemoveSide { .. } | Request::RemoveObject { .. } => {
                RequestKind::Delete
            }
            Request::OpenVolume { .. } => RequestKind::Session,
            Request::OpenLane { .. }
            | Request::Fence { .. }
            | Request::Seal { .. }
            | Request::BeginSide { .. }
            | Request::FinishSide { .. }
            | Request::AbandonSide { .. }
            | Request::Ping
            | Request::Status
            | Request::FetchFromPeers { .. } => RequestKind::Head,
        }
    }

    /// The kind and the head. A text that is too long for a head is cut where it is for people, and refused by the
    /// frame elsewhere.
    fn encode(&self) -> (u8, HeadWriter) {
        let head = HeadWriter::default();
        match self {
            Request::OpenVolume { write } => (1, head.u32(u32::from(*write))),
            Request::OpenLane {
                lane,
                first_segment,
            } => (2, head.lane(*lane).u64(*first_segment)),
            Request::Append { lane, at } => (3, head.lane(*lane).at(*at)),
            Request::Fence {
                lane,
                first_segment,
                by,
            } => (4, head.lane(*lane).u64(*first_segment).text(by)),
            Request::ListLanes => (5, head),
            Request::ListSegments { lane } => (6, head.lane(*lane)),
            Request::Read { lane, at, len } => (7, head.lane(*lane).at(*at).u32(*len)),
            Request::Rewrite { lane, at } => (8, head.lane(*lane).at(*at)),
            Request::Seal { lane, at } => (9, head.lane(*lane).at(*at)),
            Request::Trim { lane, segment } => (10, head.lane(*lane).u64(*segment)),
            Request::GetName { name } => (11, head.text(name)),
            Request::PutName { name } => (12, head.text(name)),
            Request::SwapName { name, tag } => (13, head.u64(*tag).text(name)),
            Request::BeginSide { writer, lane, id } => (14, head.u64(*writer).lane(*lane).u64(*id)),
            Request::SidePiece { writer } => (15, head.u64(*writer)),
            Request::FinishSide { writer } => (16, head.u64(*writer)),
            Request::AbandonSide { writer } => (17, head.u64(*writer)),
            Request::GetSide {
                lane,
                id,
                offset,
                len,
            } => (18, head.lane(*lane).u64(*id).u64(*offset).u32(*len)),
            Request::ListSides { lane } => (19, head.lane(*lane)),
            Request::RemoveSide { lane, id } => (20, head.lane(*lane).u64(*id)),
            Request::PutObject { id } => (21, head.u64(id.0)),
            Request::ReadObject { id, offset, len } => (22, head.u64(id.0).u64(*offset).u32(*len)),
            Request::ListObjects => (23, head),
            Request::RemoveObject { id } => (24, head.u64(id.0)),
            Request::Ping => (25, head),
            Request::Status => (26, head),
            Request::ReplaceObject { epoch, id, seen } => {
                (27, head.u32(epoch.get()).u64(id.0).seen(seen))
            }
            Request::ReadObjectFromDisk { id, offset, len } => {
                (28, head.u64(id.0).u64(*offset).u32(*len))
            }
            Request::FetchFromPeers { epoch, item } => (29, head.u32(epoch.get()).item(item)),
        }
    }

    /// The frame of this request.
    pub fn frame(&self, number: u64, body: FrameBody) -> Frame {
        let (kind, HeadWriter(head)) = self.encode();
        Frame {
            kind,
            number,
            head,
            body,
        }
    }

    /// The request that a frame holds.
    pub fn decode(frame: &Frame) -> io::Result<Request> {
        let mut head = HeadReader(&frame.head);
        let request = Request::decode_head(frame.kind, &mut head);
        request.filter(|_| head.0.is_empty()).ok_or_else(malformed)
    }

    fn decode_head(kind: u8, head: &mut HeadReader<'_>) -> Option<Request> {
        Some(match kind {
            1 => Request::OpenVolume {
                write: head.flag()?,
            },
            2 => Request::OpenLane {
                lane: head.lane()?,
                first_segment: head.u64()?,
            },
            3 => Request::Append {
                lane: head.lane()?,
                at: head.at()?,
            },
            4 => Request::Fence {
                lane: head.lane()?,
                first_segment: head.u64()?,
                by: head.text()?,
            },
            5 => Request::ListLanes,
            6 => Request::ListSegments { lane: head.lane()? },
            7 => Request::Read {
                lane: head.lane()?,
                at: head.at()?,
                len: head.u32()?,
            },
            8 => Request::Rewrite {
                lane: head.lane()?,
                at: head.at()?,
            },
            9 => Request::Seal {
                lane: head.lane()?,
                at: head.at()?,
            },
            10 => Request::Trim {
                lane: head.lane()?,
                segment: head.u64()?,
            },
            11 => Request::GetName { name: head.text()? },
            12 => Request::PutName { name: head.text()? },
            13 => Request::SwapName {
                tag: head.u64()?,
                name: head.text()?,
            },
            14 => Request::BeginSide {
                writer: head.u64()?,
                lane: head.lane()?,
                id: head.u64()?,
            },
            15 => Request::SidePiece {
                writer: head.u64()?,
            },
            16 => Request::FinishSide {
                writer: head.u64()?,
            },
            17 => Request::AbandonSide {
                writer: head.u64()?,
            },
            18 => Request::GetSide {
                lane: head.lane()?,
                id: head.u64()?,
                offset: head.u64()?,
                len: head.u32()?,
            },
            19 => Request::ListSides { lane: head.lane()? },
            20 => Request::RemoveSide {
                lane: head.lane()?,
                id: head.u64()?,
            },
            21 => Request::PutObject { id: head.object()? },
            22 => Request::ReadObject {
                id: head.object()?,
                offset: head.u64()?,
                len: head.u32()?,
            },
            23 => Request::ListObjects,
            24 => Request::RemoveObject { id: head.object()? },
            25 => Request::Ping,
            26 => Request::Status,
            27 => Request::ReplaceObject {
                epoch: head.epoch()?,
                id: head.object()?,
                seen: head.seen()?,
            },
            28 => Request::ReadObjectFromDisk {
                id: head.object()?,
                offset: head.u64()?,
                len: head.u32()?,
            },
            29 => Request::FetchFromPeers {
                epoch: head.epoch()?,
                item: head.item()?,
            },
            _ => return None,
        })
    }
}

/// Peers that one request names, at most.
pub const PEERS_MAX: usize = 32;
/// Longest address of a peer.
const PEER_ADDRESS_BYTES_MAX: usize = 300;

/// Peers as the body of a request: a line for each, with its number and its address.
pub fn encode_peers(peers: &[Peer]) -> Vec<u8> {
    let line = |peer: &Peer| format!("{:016x} {}\n", peer.node, peer.address);
    let lines: String = peers.iter().take(PEERS_MAX).map(line).collect();
    lines.into_bytes()
}

/// The peers that a body names.
pub fn decode_peers(body: &[u8]) -> io::Result<Vec<Peer>> {
    if body.len() > PEERS_MAX * (PEER_ADDRESS_BYTES_MAX + 18) {
        return Err(malformed());
    }
    let text = std::str::from_utf8(body).map_err(|_| malformed())?;
    let peer = |line: &str| {
        let (node, address) = line.split_once(' ')?;
        let fits = address.len() <= PEER_ADDRESS_BYTES_MAX && is_address(address);
        let number = u64::from_str_radix(node, 16).ok().filter(|_| fits)?;
        Some(Peer {
            address: address.to_owned(),
            node: number,
        })
    };
    let peers: Option<Vec<Peer>> = text.lines().map(peer).collect();
    let peers = peers.filter(|peers| peers.len() <= PEERS_MAX);
    peers.ok_or_else(malformed)
}

/// Is it HOST:PORT?
fn is_address(address: &str) -> bool {
    let host_and_port = address.rsplit_once(':');
    let is_of_host = |c: char| c.is_ascii_alphanumeric() || ".-_:[]%".contains(c);
    host_and_port.is_some_and(|(host, port)| {
        !host.is_empty() && host.chars().all(is_of_host) && port.parse::<u16>().is_ok()
    })
}

/// Kinds of answers.
const DONE: u8 = 128;
const NAMED: u8 = 129;
const BYTES: u8 = 130;
const OPENED: u8 = 131;
const FAILED: u8 = 132;
/// The longest text of an error.
const ERROR_BYTES_MAX: usize = 1024;

/// An error in the words in which it goes over the wire.
fn encode_error(error: &HomeError) -> (ErrorCode, String) {
    let code = match error {
        HomeError::Fenced(what) => return (ErrorCode::Fenced, what.clone()),
        HomeError::Conflict(what) => return (ErrorCode::Conflict, what.clone()),
        HomeError::Missing(what) => return (ErrorCode::Missing, what.clone()),
        HomeError::Misuse { .. } => ErrorCode::Misuse,
        HomeError::Unsupported(_) => ErrorCode::Unsupported,
        error if error.is_disk_full() => ErrorCode::DiskFull,
        HomeError::Io { source, .. } if source.kind() == io::ErrorKind::InvalidData => {
            ErrorCode::Damaged
        }
        HomeError::Io { .. }
        | HomeError::InUse(_)
        | HomeError::Exposed(_)
        | HomeError::Url { .. } => ErrorCode::Io,
    };
    (code, error.to_string())
}

fn decode_error(code: u32, what: String) -> Option<HomeError> {
    let io = |kind: io::ErrorKind, what: String| {
        HomeError::io("ask a storage node", io::Error::new(kind, what))
    };
    Some(match code {
        1 => HomeError::Fenced(what),
        2 => HomeError::Conflict(what),
        3 => HomeError::Missing(what),
        4 => HomeError::Misuse {
            lane: LaneId(0),
            what: "a storage node refused it",
        },
        5 => HomeError::Unsupported("what a storage node was asked for"),
        6 => io(io::ErrorKind::StorageFull, what),
        7 => io(io::ErrorKind::InvalidData, what),
        8 => io(io::ErrorKind::Other, what),
        _ => return None,
    })
}

impl Reply {
    /// The frame of the answer to a request.
    pub fn frame(self, number: u64) -> Frame {
        let head = HeadWriter::default().u32(u32::from(self.is_short_of_space));
        let (kind, head, body) = match self.result {
            Ok(Answer::Done) => (DONE, head, Vec::new()),
            Ok(Answer::Named(tag, bytes)) => {
                let head = head.u32(u32::from(tag.is_some()));
                (NAMED, head.u64(tag.unwrap_or_default()), bytes)
            }
            Ok(Answer::Bytes(bytes)) => (BYTES, head, bytes),
            Ok(Answer::Opened(limits)) => {
                let head = head
                    .u64(limits.node)
                    .u32(limits.block_alignment)
                    .u32(limits.block_size_preferred)
                    .u64(limits.room_size_bytes_max)
                    .u32(limits.appends_in_flight_max)
                    .u32(limits.append_latency_expected_us)
                    .u64(limits.segment_bytes);
                (OPENED, head, Vec::new())
            }
            Err(error) => {
                let (code, mut what) = encode_error(&error);
                what.truncate(what.floor_char_boundary(ERROR_BYTES_MAX));
                (FAILED, head.u32(code as u32).text(&what), Vec::new())
            }
        };
        Frame {
            kind,
            number,
            head: head.0,
            body: FrameBody::Bytes(body),
        }
    }

    /// The answer that a frame holds.
    pub fn decode(frame: Frame) -> io::Result<Reply> {
        let Frame {
            kind, head, body, ..
        } = frame;
        Reply::decode_parts(kind, &mut HeadReader(&head), body).ok_or_else(malformed)
    }

    fn decode_parts(kind: u8, head: &mut HeadReader<'_>, body: FrameBody) -> Option<Reply> {
        let is_short_of_space = head.flag()?;
        let result = match kind {
            DONE => Ok(Answer::Done),
            NAMED => {
                let (is_there, tag) = (head.flag()?, head.u64()?);
                Ok(Answer::Named(is_there.then_some(tag), body.into_vec()))
            }
            BYTES => Ok(Answer::Bytes(body.into_vec())),
            OPENED => Ok(Answer::Opened(VolumeLimits {
                node: head.u64()?,
                block_alignment: head.u32()?,
                block_size_preferred: head.u32()?,
                room_size_bytes_max: head.u64()?,
                appends_in_flight_max: head.u32()?,
                append_latency_expected_us: head.u32()?,
                segment_bytes: head.u64()?,
            })),
            FAILED => {
                let code = head.u32()?;
                Err(decode_error(code, head.text()?)?)
            }
            _ => return None,
        };
        head.0.is_empty().then_some(Reply {
            is_short_of_space,
            result,
        })
    }
}

#[cfg(test)]
mod tests;
