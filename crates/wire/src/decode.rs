//! From received bytes to frontend messages.
//!
//! Owns: framing (where a message ends), the limits of each message, and the borrowed form of each body. Knows no
//! SQL and does no I/O: a receive buffer goes in, messages that borrow from their frame come out.
//!
//! Invariants: nothing is allocated because a length was *announced*, only because bytes arrived; no input panics; how
//! the bytes were cut into reads makes no difference. A broken length or an unknown message type is fatal, since the
//! border of the next message is lost; a broken body is an ordinary error, after which a client may go on at Sync.

use bytes::{Buf, Bytes, BytesMut};
use logstead_sql_types::TypeId;
use logstead_types::SqlState;
use smallvec::SmallVec;

/// Longest startup packet, as in PostgreSQL.
pub const STARTUP_BYTES_MAX: usize = 10_000;
/// Longest message of the types that are never long.
pub const SMALL_BYTES_MAX: usize = 10_000;
/// Longest message at all: 1 GiB, as in PostgreSQL.
pub const LARGE_BYTES_MAX: usize = 0x3fff_ffff;

/// A violation of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolError {
    /// SQLSTATE.
    pub code: SqlState,
    /// Text for the client.
    pub message: String,
    /// The connection cannot go on.
    pub fatal: bool,
}

impl ProtocolError {
    fn fatal(message: impl Into<String>) -> ProtocolError {
        ProtocolError {
            code: SqlState::PROTOCOL_VIOLATION,
            message: message.into(),
            fatal: true,
        }
    }

    fn body(message: impl Into<String>) -> ProtocolError {
        ProtocolError {
            code: SqlState::PROTOCOL_VIOLATION,
            message: message.into(),
            fatal: false,
        }
    }
}

/// Result of decoding.
pub type Result<T> = std::result::Result<T, ProtocolError>;

/// The first packet of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirstPacket {
    /// SSLRequest.
    Ssl,
    /// GSSENCRequest.
    Gss,
    /// CancelRequest.
    Cancel {
        /// Process number from BackendKeyData.
        pid: i32,
        /// Secret from BackendKeyData.
        secret: i32,
    },
    /// StartupMessage.
    Startup {
        /// Minor version asked for (major is 3).
        minor: u16,
        /// Names and values, in order.
        parameters: Vec<(String, String)>,
    },
}

const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
const CANCEL_REQUEST: u32 = 80_877_102;

/// Bytes of a CancelRequest.
pub const CANCEL_BYTES: usize = 16;

/// Process number and secret of a CancelRequest, if `packet` is one and whole.
pub fn cancel_request(packet: &[u8]) -> Option<(i32, i32)> {
    let whole = packet.len() == CANCEL_BYTES && peek_u32(packet, 0) == Some(CANCEL_BYTES as u32);
    if !whole || peek_u32(packet, 4) != Some(CANCEL_REQUEST) {
        return None;
    }
    let (pid, secret) = (peek_u32(packet, 8)?, peek_u32(packet, 12)?);
    Some((pid.cast_signed(), secret.cast_signed()))
}

/// Takes the first packet off `buffer`, if it has arrived whole.
pub fn take_first_packet(buffer: &mut BytesMut) -> Result<Option<FirstPacket>> {
    let Some(length) = peek_u32(buffer, 0) else {
        return Ok(None);
    };
    let length = length as usize;
    if !(8..=STARTUP_BYTES_MAX).contains(&length) {
        return Err(ProtocolError::fatal("invalid length of startup packet"));
    }
    if buffer.len() < length {
        return Ok(None);
    }
    let frame = buffer.split_to(length);
    let mut body = MessageBody::new(&frame[4..]);
    let code = body.u32()?;
    match code {
        SSL_REQUEST => Ok(Some(FirstPacket::Ssl)),
        GSS_REQUEST => Ok(Some(FirstPacket::Gss)),
        CANCEL_REQUEST => {
            let (pid, secret) = (body.i32()?, body.i32()?);
            Ok(Some(FirstPacket::Cancel { pid, secret }))
        }
        _ => {
            let (major, minor) = ((code >> 16) as u16, code as u16);
            if major != 3 {
                return Err(ProtocolError {
                    code: SqlState::FEATURE_NOT_SUPPORTED,
                    message: format!(
                        "unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0"
                    ),
                    fatal: true,
                });
            }
            let bad = || {
                ProtocolError::fatal(
                    "invalid startup packet layout: expected terminator as last byte",
                )
            };
            let mut parameters = Vec::new();
            loop {
                let name = body.str().map_err(|_| bad())?;
                if name.is_empty() {
                    break;
                }
                let value = body.str().map_err(|_| bad())?;
                parameters.push((name.to_owned(), value.to_owned()));
            }
            if !body.rest.is_empty() {
                return Err(bad());
            }
            Ok(Some(FirstPacket::Startup { minor, parameters }))
        }
    }
}

/// One message as received: its type byte and its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Type byte.
    pub kind: u8,
    /// Body, without type and length.
    pub body: Bytes,
}

/// The length of the next message, its type byte included, if it has arrived whole. An error is found as soon as it
/// shows: nobody waits for the rest of a message that cannot be accepted.
pub fn frame_length(buffer: &[u8]) -> Result<Option<usize>> {
    let Some(&kind) = buffer.first() else {
        return Ok(None);
    };
    let limit = match kind {
        b'Q' | b'P' | b'B' | b'd' | b'F' => LARGE_BYTES_MAX,
        b'S' | b'H' | b'E' | b'D' | b'C' | b'X' | b'c' | b'f' | b'p' => SMALL_BYTES_MAX,
        _ => {
            return Err(ProtocolError::fatal(format!(
                "invalid frontend message type {kind}"
            )));
        }
    };
    let Some(length) = peek_u32(buffer, 1) else {
        return Ok(None);
    };
    let length = length as usize;
    if length < 4 {
        return Err(ProtocolError::fatal("invalid message length"));
    }
    if length > limit {
        return Err(ProtocolError {
            code: SqlState::PROGRAM_LIMIT_EXCEEDED,
            message: format!(
                "message of {length} bytes is longer than the {limit} bytes allowed for its type"
            ),
            fatal: true,
        });
    }
    Ok((buffer.len() > length).then_some(length + 1))
}

/// Takes the next message off `buffer`, if it has arrived whole.
pub fn take_frame(buffer: &mut BytesMut) -> Result<Option<Frame>> {
    let Some(length) = frame_length(buffer)? else {
        return Ok(None);
    };
    let mut frame = buffer.split_to(length);
    let kind = frame.get_u8();
    frame.advance(4);
    Ok(Some(Frame {
        kind,
        body: frame.freeze(),
    }))
}

/// Takes what CopyData messages at the beginning of `buffer` carry off it, `most` bytes at most, and appends it to
/// `into`; false if there is nothing. A message is taken as it arrives: `left` bytes of one that has begun are still to
/// come. A broken message stays, for [`take_frame`] to complain about.
pub fn take_copy_data(
    buffer: &mut BytesMut,
    left: &mut usize,
    into: &mut Vec<u8>,
    most: usize,
) -> bool {
    let (mut at, mut taken) = (0, 0);
    while taken < most {
        let rest = buffer.get(at..).unwrap_or_default();
        if *left == 0 {
            let Some(length) = copy_data_length(rest) else {
                break;
            };
            at += 5;
            *left = length;
            continue;
        }
        let now = rest.len().min(*left).min(most - taken);
        if now == 0 {
            break;
        }
        into.extend_from_slice(&rest[..now]);
        at += now;
        taken += now;
        *left -= now;
    }
    buffer.advance(at);
    taken > 0
}

/// How much the CopyData message that begins here carries; none if another message does, or a broken one.
fn copy_data_length(buffer: &[u8]) -> Option<usize> {
    let length = peek_u32(buffer, 1)? as usize;
    let is_one = buffer.first() == Some(&b'd') && (4..=LARGE_BYTES_MAX).contains(&length);
    is_one.then(|| length - 4)
}

fn peek_u32(buffer: &[u8], at: usize) -> Option<u32> {
    let bytes = buffer.get(at..at + 4)?;
    Some(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

/// A frontend message, borrowed from its frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frontend<'a> {
    /// Query.
    Query(&'a str),
    /// Parse.
    Parse {
        /// Statement name, empty for the unnamed one.
        name: &'a str,
        /// Text.
        text: &'a str,
        /// Declared parameter types; none is "find out", a 0 in the message.
        types: SmallVec<[Option<TypeId>; 8]>,
    },
    /// Bind.
    Bind(Bind<'a>),
    /// Describe.
    Describe(Target<'a>),
    /// Execute.
    Execute {
        /// Portal name.
        portal: &'a str,
        /// Most rows to send; 0 is all.
        rows_max: u32,
    },
    /// Close.
    Close(Target<'a>),
    /// Flush.
    Flush,
    /// Sync.
    Sync,
    /// CopyData.
    CopyData(&'a [u8]),
    /// CopyDone.
    CopyDone,
    /// CopyFail.
    CopyFail(&'a str),
    /// FunctionCall.
    FunctionCall(FunctionCall<'a>),
    /// A password or SASL message, out of place after the start.
    Password,
    /// Terminate.
    Terminate,
}

/// Body of Bind.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Bind<'a> {
    /// Portal name.
    pub portal: &'a str,
    /// Statement name.
    pub statement: &'a str,
    /// Format codes of the parameters: none (all text), one (for all) or one each.
    pub formats: SmallVec<[i16; 8]>,
    /// Values; `None` is NULL.
    pub values: SmallVec<[Option<&'a [u8]>; 8]>,
    /// Format codes of the result columns, as for parameters.
    pub result_formats: SmallVec<[i16; 8]>,
}

/// Body of FunctionCall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCall<'a> {
    /// OID of the function.
    pub function: u32,
    /// Format codes of the arguments: none (all text), one (for all) or one each.
    pub formats: SmallVec<[i16; 8]>,
    /// Arguments; `None` is NULL.
    pub values: SmallVec<[Option<&'a [u8]>; 8]>,
    /// Format code of the result.
    pub result_format: i16,
}

/// What Describe or Close is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// A prepared statement.
    Statement(&'a str),
    /// A portal.
    Portal(&'a str),
}

impl Frame {
    /// Decodes the body.
    pub fn decode(&self) -> Result<Frontend<'_>> {
        let mut body = MessageBody::new(&self.body);
        let message = match self.kind {
            b'Q' => Frontend::Query(body.str()?),
            b'P' => {
                let (name, text) = (body.str()?, body.str()?);
                let count = body.count(4)?;
                let declared = |ty| (ty != 0).then(|| TypeId::new(ty));
                let types = (0..count).map(|_| body.u32().map(declared));
                let types = types.collect::<Result<_>>()?;
                Frontend::Parse { name, text, types }
            }
            b'B' => Frontend::Bind(body.bind()?),
            b'D' => Frontend::Describe(body.target()?),
            b'E' => {
                let portal = body.str()?;
                // A negative count means "all" in PostgreSQL too.
                let rows_max = u32::try_from(body.i32()?).unwrap_or(0);
                Frontend::Execute { portal, rows_max }
            }
            b'C' => Frontend::Close(body.target()?),
            b'H' => Frontend::Flush,
            b'S' => Frontend::Sync,
            b'd' => Frontend::CopyData(std::mem::take(&mut body.rest)),
            b'c' => Frontend::CopyDone,
            b'f' => Frontend::CopyFail(body.str()?),
            b'F' => Frontend::FunctionCall(body.function_call()?),
            b'p' => {
                body.rest = &[];
                Frontend::Password
            }
            b'X' => Frontend::Terminate,
            kind => {
                return Err(ProtocolError::fatal(format!(
                    "invalid frontend message type {kind}"
                )));
            }
        };
        if body.rest.is_empty() {
            Ok(message)
        } else {
            Err(ProtocolError::body("invalid message format"))
        }
    }
}

/// Reads a body from the front; every read checks what is left.
struct MessageBody<'a> {
    rest: &'a [u8],
}

impl<'a> MessageBody<'a> {
    fn new(rest: &'a [u8]) -> MessageBody<'a> {
        MessageBody { rest }
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        match self.rest.split_at_checked(count) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(ProtocolError::body("insufficient data left in message")),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// A count of items of at least `item_bytes` each: checked against what is left before anything is reserved.
    fn count(&mut self, item_bytes: usize) -> Result<usize> {
        let count = usize::from(self.u16()?);
        if count * item_bytes > self.rest.len() {
            return Err(ProtocolError::body("insufficient data left in message"));
        }
        Ok(count)
    }

    fn str(&mut self) -> Result<&'a str> {
        let end = self
            .rest
            .iter()
            .position(|b| *b == 0)
            .ok_or_else(|| ProtocolError::body("invalid string in message"))?;
        let (text, rest) = self.rest.split_at(end);
        self.rest = &rest[1..];
        std::str::from_utf8(text).map_err(|e| invalid_utf8(text, e))
    }

    fn target(&mut self) -> Result<Target<'a>> {
        let kind = self.array::<1>()?[0];
        let name = self.str()?;
        match kind {
            b'S' => Ok(Target::Statement(name)),
            b'P' => Ok(Target::Portal(name)),
            _ => Err(ProtocolError::body(format!(
                "invalid message subtype {kind}"
            ))),
        }
    }

    fn format(&mut self) -> Result<i16> {
        match self.u16()? {
            format @ (0 | 1) => Ok(format as i16),
            format => Err(ProtocolError {
                code: SqlState::INVALID_PARAMETER_VALUE,
                message: format!("unsupported format code: {}", format as i16),
                fatal: false,
            }),
        }
    }

    fn formats(&mut self) -> Result<SmallVec<[i16; 8]>> {
        let count = self.count(2)?;
        (0..count).map(|_| self.format()).collect()
    }

    fn values(&mut self) -> Result<SmallVec<[Option<&'a [u8]>; 8]>> {
        let count = self.count(4)?;
        let mut values = SmallVec::with_capacity(count);
        for _ in 0..count {
            values.push(match usize::try_from(self.i32()?) {
                Ok(length) => Some(self.bytes(length)?),
                Err(_) => None,
            });
        }
        Ok(values)
    }

    fn function_call(&mut self) -> Result<FunctionCall<'a>> {
        let function = self.u32()?;
        let formats = self.formats()?;
        let values = self.values()?;
        if formats.len() > 1 && formats.len() != values.len() {
            return Err(ProtocolError::body(format!(
                "function call message contains {} argument formats but {} arguments",
                formats.len(),
                values.len()
            )));
        }
        Ok(FunctionCall {
            function,
            formats,
            values,
            result_format: self.format()?,
        })
    }

    fn bind(&mut self) -> Result<Bind<'a>> {
        let (portal, statement) = (self.str()?, self.str()?);
        let formats = self.formats()?;
        let values = self.values()?;
        let result_formats = self.formats()?;
        if formats.len() > 1 && formats.len() != values.len() {
            return Err(ProtocolError::body(format!(
                "bind message has {} parameter formats but {} parameters",
                formats.len(),
                values.len()
            )));
        }
        Ok(Bind {
            portal,
            statement,
            formats,
            values,
            result_formats,
        })
    }
}

/// PostgreSQL's 22021 for bytes that are not UTF-8.
fn invalid_utf8(text: &[u8], error: std::str::Utf8Error) -> ProtocolError {
    let start = error.valid_up_to();
    let length = error.error_len().unwrap_or(text.len() - start).clamp(1, 4);
    let bytes: Vec<String> = text[start..]
        .iter()
        .take(length)
        .map(|b| format!("0x{b:02x}"))
        .collect();
    ProtocolError {
        code: SqlState::CHARACTER_NOT_IN_REPERTOIRE,
        message: format!(
            "invalid byte sequence for encoding \"UTF8\": {}",
            bytes.join(" ")
        ),
        fatal: false,
    }
}
