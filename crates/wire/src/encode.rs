//! Backend messages, appended to one output buffer.
//!
//! Owns: the layout of each message. Does no I/O and keeps no state; whoever owns the buffer decides when it is
//! written.

use logstead_sql_types::error::{ErrorFields, SqlError};
use logstead_sql_types::memory::append;
use logstead_sql_types::{Result, TypeId};
use logstead_types::SqlState;
use std::fmt::Display;
use std::io::Write;

/// Starts a message of `kind`; returns the position for [`end`].
#[inline]
pub fn begin(out: &mut Vec<u8>, kind: u8) -> usize {
    out.push(kind);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    at
}

/// Ends the message begun at `at`: fills its length in.
#[inline]
pub fn end(out: &mut [u8], at: usize) {
    // Messages are bounded far below 2 GiB by the full-buffer rule; a single row beyond it is refused by its encoder.
    let length = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

fn put_str(out: &mut Vec<u8>, text: &str) {
    // A NUL inside would end the string early: PostgreSQL's texts never contain one.
    out.extend(text.bytes().filter(|b| *b != 0));
    out.push(0);
}

fn empty(out: &mut Vec<u8>, kind: u8) {
    out.extend_from_slice(&[kind, 0, 0, 0, 4]);
}

/// AuthenticationOk.
pub fn authentication_ok(out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'R', 0, 0, 0, 8, 0, 0, 0, 0]);
}

fn authentication(out: &mut Vec<u8>, code: u32, body: &[u8]) {
    let at = begin(out, b'R');
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(body);
    end(out, at);
}

/// FunctionCallResponse; none is NULL.
pub fn function_call_response(out: &mut Vec<u8>, result: Option<&[u8]>) {
    let at = begin(out, b'V');
    match result {
        Some(bytes) => {
            // No value is longer than 1 GiB.
            out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
            out.extend_from_slice(bytes);
        }
        None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
    }
    end(out, at);
}

/// AuthenticationSASL: what is offered, best first.
pub fn authentication_sasl(out: &mut Vec<u8>, mechanisms: &[&str]) {
    let at = begin(out, b'R');
    out.extend_from_slice(&10_u32.to_be_bytes());
    for mechanism in mechanisms {
        put_str(out, mechanism);
    }
    out.push(0);
    end(out, at);
}

/// AuthenticationSASLContinue.
pub fn authentication_sasl_continue(out: &mut Vec<u8>, message: &[u8]) {
    authentication(out, 11, message);
}

/// AuthenticationSASLFinal.
pub fn authentication_sasl_final(out: &mut Vec<u8>, message: &[u8]) {
    authentication(out, 12, message);
}

/// NegotiateProtocolVersion: the newest minor version we speak, and the options we do not know.
pub fn negotiate_protocol_version(out: &mut Vec<u8>, minor: u16, unknown: &[&str]) {
    let at = begin(out, b'v');
    out.extend_from_slice(&(3u32 << 16 | u32::from(minor)).to_be_bytes());
    out.extend_from_slice(&(unknown.len() as u32).to_be_bytes());
    for name in unknown {
        put_str(out, name);
    }
    end(out, at);
}

/// BackendKeyData.
pub fn backend_key_data(out: &mut Vec<u8>, pid: i32, secret: i32) {
    let at = begin(out, b'K');
    out.extend_from_slice(&pid.to_be_bytes());
    out.extend_from_slice(&secret.to_be_bytes());
    end(out, at);
}

/// ParameterStatus.
pub fn parameter_status(out: &mut Vec<u8>, name: &str, value: &str) {
    let at = begin(out, b'S');
    put_str(out, name);
    put_str(out, value);
    end(out, at);
}

/// ReadyForQuery with the transaction's state: I, T or E.
pub fn ready_for_query(out: &mut Vec<u8>, status: u8) {
    out.extend_from_slice(&[b'Z', 0, 0, 0, 5, status]);
}

/// NotificationResponse.
pub fn notification_response(out: &mut Vec<u8>, pid: i32, channel: &str, payload: &str) {
    let at = begin(out, b'A');
    out.extend_from_slice(&pid.to_be_bytes());
    put_str(out, channel);
    put_str(out, payload);
    end(out, at);
}

/// CommandComplete.
pub fn command_complete(out: &mut Vec<u8>, tag: &dyn Display) {
    let at = begin(out, b'C');
    // Writing to a vector does not fail.
    let _written = write!(out, "{tag}");
    out.push(0);
    end(out, at);
}

/// EmptyQueryResponse.
pub fn empty_query_response(out: &mut Vec<u8>) {
    empty(out, b'I');
}

/// ParseComplete.
pub fn parse_complete(out: &mut Vec<u8>) {
    empty(out, b'1');
}

/// BindComplete.
pub fn bind_complete(out: &mut Vec<u8>) {
    empty(out, b'2');
}

/// CloseComplete.
pub fn close_complete(out: &mut Vec<u8>) {
    empty(out, b'3');
}

/// NoData.
pub fn no_data(out: &mut Vec<u8>) {
    empty(out, b'n');
}

/// PortalSuspended.
pub fn portal_suspended(out: &mut Vec<u8>) {
    empty(out, b's');
}

/// ParameterDescription.
pub fn parameter_description(out: &mut Vec<u8>, types: &[TypeId]) {
    let at = begin(out, b't');
    out.extend_from_slice(&(types.len() as u16).to_be_bytes());
    for ty in types {
        out.extend_from_slice(&ty.get().to_be_bytes());
    }
    end(out, at);
}

/// One column of RowDescription.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    /// Name.
    pub name: &'a str,
    /// Table OID, 0 if computed.
    pub table: u32,
    /// Attribute number, 0 if computed.
    pub attribute: i16,
    /// Type OID.
    pub ty: u32,
    /// Length of the type, -1 if variable, -2 for C strings.
    pub length: i16,
    /// Type modifier, -1 if none.
    pub modifier: i32,
    /// Binary format?
    pub binary: bool,
}

/// RowDescription.
pub fn row_description<'a>(out: &mut Vec<u8>, fields: impl ExactSizeIterator<Item = Field<'a>>) {
    let at = begin(out, b'T');
    out.extend_from_slice(&(fields.len() as u16).to_be_bytes());
    for field in fields {
        put_str(out, field.name);
        out.extend_from_slice(&field.table.to_be_bytes());
        out.extend_from_slice(&field.attribute.to_be_bytes());
        out.extend_from_slice(&field.ty.to_be_bytes());
        out.extend_from_slice(&field.length.to_be_bytes());
        out.extend_from_slice(&field.modifier.to_be_bytes());
        out.extend_from_slice(&u16::from(field.binary).to_be_bytes());
    }
    end(out, at);
}

/// CopyInResponse (`kind` G) or CopyOutResponse (H).
pub fn copy_response(out: &mut Vec<u8>, kind: u8, columns: usize, binary: bool) {
    let at = begin(out, kind);
    out.push(u8::from(binary));
    out.extend_from_slice(&(columns as u16).to_be_bytes());
    for _ in 0..columns {
        out.extend_from_slice(&u16::from(binary).to_be_bytes());
    }
    end(out, at);
}

/// CopyData.
pub fn copy_data(out: &mut Vec<u8>, data: &[u8]) -> Result<()> {
    let before = out.len();
    let at = begin(out, b'd');
    if let Err(error) = append(out, data) {
        out.truncate(before);
        return Err(error);
    }
    end(out, at);
    Ok(())
}

/// CopyDone.
pub fn copy_done(out: &mut Vec<u8>) {
    empty(out, b'c');
}

/// ErrorResponse. `severity` is ERROR, FATAL or PANIC.
pub fn error_response(out: &mut Vec<u8>, severity: &str, fields: &ErrorFields) {
    error_or_notice(out, b'E', severity, fields);
}

/// What a client is told that comes when there is not even a place to talk to it: an ErrorResponse, whatever it was
/// about to ask.
pub fn too_many_clients() -> Vec<u8> {
    let refused = SqlError::new(
        SqlState::TOO_MANY_CONNECTIONS,
        "sorry, too many clients already",
    );
    let mut out = Vec::new();
    error_response(&mut out, "FATAL", refused.fields());
    out
}

/// NoticeResponse. `severity` is WARNING, NOTICE, INFO, LOG or DEBUG.
pub fn notice_response(out: &mut Vec<u8>, severity: &str, fields: &ErrorFields) {
    error_or_notice(out, b'N', severity, fields);
}

fn error_or_notice(out: &mut Vec<u8>, kind: u8, severity: &str, fields: &ErrorFields) {
    let at = begin(out, kind);
    let mut field = |code: u8, text: &str| {
        out.push(code);
        put_str(out, text);
    };
    field(b'S', severity);
    field(b'V', severity);
    field(b'C', fields.code.as_str());
    field(b'M', &fields.message);
    let optional = [
        (b'D', &fields.detail),
        (b'H', &fields.hint),
        (b'W', &fields.context),
        (b's', &fields.schema),
        (b't', &fields.table),
        (b'c', &fields.column),
        (b'd', &fields.data_type),
        (b'n', &fields.constraint),
    ];
    for (code, text) in optional {
        if let Some(text) = text {
            field(code, text);
        }
    }
    if let Some(position) = fields.position {
        field(b'P', &position.to_string());
    }
    if let Some((position, query)) = &fields.inner_query {
        field(b'p', &position.to_string());
        field(b'q', query);
    }
    // These are never missing in PostgreSQL, and there are clients that count on it. What is not named after a function
    // of PostgreSQL's is named after the module here.
    let file = fields.raised.file();
    let file = file.rsplit(['/', '\\']).next().unwrap_or(file);
    field(b'F', file);
    field(b'L', &fields.raised.line().to_string());
    field(b'R', fields.routine.unwrap_or(file.trim_end_matches(".rs")));
    out.push(0);
    end(out, at);
}
