//! One client's socket with its two buffers.
//!
//! Owns: the stream, what was received and not yet decoded, what is to be sent. Implements the session's [`Client`]
//! over them. Invariant: nothing is written except in [`ClientConnection::write_out`], so the owner decides when
//! replies leave, and none leaves that tells of data while the server's lease has run out (T15).

use crate::decode::{self, Frame, Frontend};
use crate::encode;
use crate::rows::RowFormat;
use crate::tls::Stream;
use bytes::{Buf, BytesMut};
use logstead_engine::Lease;
use logstead_sql_exec::{RowSink, StoredColumn};
use logstead_sql_plan::OutputColumn;
use logstead_sql_session::{
    Client, ConnectionLost, CopyInput, Encryption, HandoverTarget, LocalFuture, SessionContext,
};
use logstead_sql_types::error::ErrorFields;
use logstead_sql_types::value::Datum;
use logstead_sql_types::{Result, SqlError, TypeId};
use logstead_types::SqlState;
use std::fmt::Display;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Replies beyond this are sent before the statement goes on.
const OUTPUT_FULL_BYTES: usize = 64 * 1024;
/// An idle connection keeps buffers no larger than this.
const IDLE_BUFFER_BYTES: usize = 16 * 1024;
/// Least room offered to one read.
const READ_BYTES: usize = 4 * 1024;
/// The same while data streams in.
const BUSY_READ_BYTES: usize = 64 * 1024;
/// So much of COPY's input is looked at before the next is taken, however much has come.
const COPY_PIECE_BYTES: usize = 256 * 1024;
/// A client that does not take the last replies by then is cut off.
const GOODBYE_TIME_MAX: Duration = Duration::from_secs(10);

/// A session's loop has ended in an orderly way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionEnd {
    /// The session is over.
    Over,
    /// It wants to go on at another worker: its answers are sent.
    Moves,
}

/// A client's connection.
pub(crate) struct ClientConnection {
    stream: Stream,
    input: BytesMut,
    /// Bytes of a CopyData message, whose beginning was taken, that have not been.
    copying: usize,
    output: Vec<u8>,
    /// Bytes of output that are no longer in `output`.
    passed: u64,
    rows: RowFormat,
    /// The last read filled the room it was given: the next one gets more.
    busy: bool,
    /// Where somebody else may take the log over: replies leave while this is valid.
    lease: Option<Arc<Lease>>,
    /// What is to be sent tells nothing that could be out of date.
    reveals_nothing: bool,
}

impl ClientConnection {
    /// Takes a stream over.
    pub(crate) fn new(stream: Stream, lease: Option<Arc<Lease>>) -> ClientConnection {
        ClientConnection {
            stream,
            input: BytesMut::new(),
            copying: 0,
            output: Vec::new(),
            passed: 0,
            rows: RowFormat::default(),
            busy: false,
            lease,
            reveals_nothing: false,
        }
    }

    /// Another name of the socket, for whoever takes the session over, and what encrypts it, which stays in this
    /// process. Nothing if it cannot leave.
    pub(crate) fn handed_over(&self, to: HandoverTarget) -> Option<(OwnedFd, Option<Encryption>)> {
        let (descriptor, encryption): (_, Option<Encryption>) = match &self.stream {
            Stream::Plain(stream) => (stream.as_fd().try_clone_to_owned(), None),
            Stream::Local(stream) => (stream.as_fd().try_clone_to_owned(), None),
            Stream::Tls(_) if to == HandoverTarget::OtherProcess => return None,
            Stream::Tls(stream) => (stream.descriptor(), Some(Box::new(stream.clone()))),
        };
        Some((descriptor.ok()?, encryption))
    }

    /// Bytes that come next, and are the rest of a message of COPY that nobody wants.
    pub(crate) fn unwanted(&self) -> usize {
        self.copying
    }

    /// Takes what another process had received.
    pub(crate) fn go_on_with(&mut self, input: &[u8], unwanted: usize) {
        self.input.extend_from_slice(input);
        self.copying = unwanted;
    }

    /// What was received and not yet taken.
    pub(crate) fn input(&mut self) -> &mut BytesMut {
        &mut self.input
    }

    /// What is to be sent.
    pub(crate) fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Enough has been collected to be worth a write of its own.
    pub(crate) fn output_is_full(&self) -> bool {
        self.output.len() >= OUTPUT_FULL_BYTES
    }

    /// Receives more; an error or the end of the stream is [`ConnectionLost`].
    pub(crate) async fn receive(&mut self) -> Result<(), ConnectionLost> {
        // A COPY that goes on has taken all of it.
        self.skip_copying();
        if self.input.is_empty() && self.input.capacity() > IDLE_BUFFER_BYTES {
            self.input = BytesMut::new();
        }
        // Room grows with what arrived, never with what a length announces.
        let least = if self.busy {
            BUSY_READ_BYTES
        } else {
            READ_BYTES
        };
        self.input.reserve(least.max(self.input.len().min(1 << 20)));
        match self.stream.read_buf(&mut self.input).await {
            Ok(0) | Err(_) => Err(ConnectionLost),
            Ok(count) => {
                self.busy = count >= READ_BYTES;
                Ok(())
            }
        }
    }

    /// The next message, received if need be.
    pub(crate) async fn next_frame(&mut self) -> Result<decode::Result<Frame>, ConnectionLost> {
        loop {
            self.skip_copying();
            if self.copying > 0 {
                self.receive().await?;
                continue;
            }
            match decode::take_frame(&mut self.input) {
                Ok(Some(frame)) => return Ok(Ok(frame)),
                Ok(None) => self.receive().await?,
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    /// A whole message has already been received, or the beginning of one that can never be accepted.
    pub(crate) fn has_frame(&self) -> bool {
        match self.input.get(self.copying..) {
            Some(input) => !matches!(decode::frame_length(input), Ok(None)),
            None => false,
        }
    }

    /// The rest of a message that a COPY had begun to take, and does not want any more, is nobody's.
    fn skip_copying(&mut self) {
        let now = self.copying.min(self.input.len());
        self.input.advance(now);
        self.copying -= now;
    }

    /// Writes all replies, in one write where the kernel takes it.
    pub(crate) async fn write_out(&mut self) -> Result<(), ConnectionLost> {
        if self.output.is_empty() {
            return Ok(());
        }
        let goes_on = self.may_answer().await;
        let mut written = self.stream.write_all(&self.output).await;
        // What is encrypted is kept until it is asked for; a plain stream keeps nothing.
        if written.is_ok() && matches!(self.stream, Stream::Tls(_)) {
            written = self.stream.flush().await;
        }
        self.discard();
        if self.output.capacity() > 4 * IDLE_BUFFER_BYTES {
            self.output = Vec::new();
        }
        if !goes_on {
            return Err(ConnectionLost);
        }
        written.map_err(|_| ConnectionLost)
    }

    /// Waits until replies may leave, or replaces them by the news that they never may (false: the connection ends). It
    /// is enough that the lease is valid here, after what they tell was read: nobody else had written anything by then.
    #[inline]
    async fn may_answer(&mut self) -> bool {
        let Some(lease) = self.lease.as_ref().filter(|_| !self.reveals_nothing) else {
            return true;
        };
        let Err(lost) = lease.valid().await else {
            return true;
        };
        let text = format!("terminating connection because another server took over: {lost}");
        self.only_error(&SqlError::new(SqlState::ADMIN_SHUTDOWN, text).fatal());
        false
    }

    /// Nothing but this error, the session's last, which tells of no data, is to be sent.
    pub(crate) fn only_error(&mut self, error: &SqlError) {
        self.discard();
        self.error(error);
        self.reveals_nothing = true;
    }

    /// Says goodbye: what is left to be sent is sent as far as the client takes it soon.
    pub(crate) async fn close(mut self) {
        let goodbye = async {
            let _client_may_be_gone = self.write_out().await;
            let _client_may_be_gone = self.stream.shutdown().await;
        };
        let _client_may_not_listen = tokio::time::timeout(GOODBYE_TIME_MAX, goodbye).await;
    }

    /// A message of the client's with its texts in UTF-8.
    pub(crate) fn received(&self, frame: Frame) -> Result<Frame> {
        let encoding = self.rows.encoding();
        match encoding.is_plain() {
            true => Ok(frame),
            false => crate::recode::received(&frame, encoding),
        }
    }

    /// Converts the texts of the last message, which begins at `at`, for the client; nothing is left of one that it
    /// cannot be told.
    #[inline]
    pub(crate) fn recode(&mut self, at: usize) -> Result<()> {
        let encoding = self.rows.encoding();
        match encoding.is_plain() {
            true => Ok(()),
            false => crate::recode::reply(&mut self.output, at, encoding, self.rows.columns()),
        }
    }

    /// The same; another message in the place of one that the client cannot be told.
    fn recode_or(&mut self, at: usize, instead: impl FnOnce(&mut ClientConnection, SqlError)) {
        if let Err(error) = self.recode(at) {
            instead(self, error);
        }
    }

    async fn next_copy_input(&mut self, into: &mut Vec<u8>) -> Result<CopyInput> {
        loop {
            let (left, most) = (&mut self.copying, COPY_PIECE_BYTES);
            if decode::take_copy_data(&mut self.input, left, into, most) {
                return Ok(CopyInput::Data);
            }
            let lost = |_| {
                SqlError::new(
                    SqlState::CONNECTION_FAILURE,
                    "unexpected EOF on client connection with an open transaction",
                )
                .fatal()
            };
            // Nothing of it is there, or the header is not whole.
            let header = matches!(self.input.first(), None | Some(b'd')) && self.input.len() < 5;
            if self.copying > 0 || header {
                self.receive().await.map_err(lost)?;
                continue;
            }
            let frame = self
                .next_frame()
                .await
                .map_err(lost)?
                .map_err(protocol_error)?;
            match frame.decode().map_err(protocol_error)? {
                Frontend::CopyDone => return Ok(CopyInput::Done),
                Frontend::CopyFail(reason) => return Ok(CopyInput::Failed(reason.to_owned())),
                // Clients may send these before they know that a COPY began.
                Frontend::Flush | Frontend::Sync => {}
                _ => {
                    return Err(SqlError::new(
                        SqlState::PROTOCOL_VIOLATION,
                        format!(
                            "unexpected message type 0x{:02X} during COPY from stdin",
                            frame.kind
                        ),
                    ));
                }
            }
        }
    }
}

/// A protocol violation as an error reply.
pub(crate) fn protocol_error(error: decode::ProtocolError) -> SqlError {
    let sql = SqlError::new(error.code, error.message);
    if error.fatal { sql.fatal() } else { sql }
}

impl RowSink for ClientConnection {
    fn row(&mut self, row: &[Datum]) -> Result<()> {
        let at = self.output.len();
        self.rows.row(row, &mut self.output)?;
        self.recode(at)
    }

    fn stored_row(
        &mut self,
        row: logstead_engine::RowRef<'_>,
        columns: &[StoredColumn],
    ) -> Result<()> {
        let at = self.output.len();
        self.rows.stored_row(row, columns, &mut self.output)?;
        self.recode(at)
    }

    fn is_full(&self) -> bool {
        self.output_is_full()
    }
}

impl Client for ClientConnection {
    fn open(&mut self, context: Rc<SessionContext>) {
        self.rows.open(context);
    }

    fn start_rows(&mut self, columns: &[OutputColumn], formats: &[i16]) {
        self.rows.start(columns, formats);
    }

    fn row_description(&mut self, columns: &[OutputColumn], formats: &[i16]) {
        let at = self.output.len();
        crate::rows::describe(columns, formats, &mut self.output);
        self.recode_or(at, |link, error| link.error(&error));
    }

    fn no_data(&mut self) {
        encode::no_data(&mut self.output);
    }

    fn parameter_description(&mut self, types: &[TypeId]) {
        encode::parameter_description(&mut self.output, types);
    }

    fn portal_suspended(&mut self) {
        encode::portal_suspended(&mut self.output);
    }

    fn command_complete(&mut self, tag: &dyn Display) {
        encode::command_complete(&mut self.output, tag);
    }

    fn empty_query(&mut self) {
        encode::empty_query_response(&mut self.output);
    }

    fn error(&mut self, error: &SqlError) {
        let severity = if error.fields().fatal {
            "FATAL"
        } else {
            "ERROR"
        };
        let at = self.output.len();
        encode::error_response(&mut self.output, severity, error.fields());
        // As PostgreSQL: that it cannot be told is told in its place.
        self.recode_or(at, |link, untold| {
            encode::error_response(&mut link.output, severity, untold.fields());
        });
    }

    fn notice(&mut self, severity: &'static str, fields: &ErrorFields) {
        let at = self.output.len();
        encode::notice_response(&mut self.output, severity, fields);
        self.recode_or(at, |link, untold| {
            encode::notice_response(&mut link.output, severity, untold.fields());
        });
    }

    fn parameter_status(&mut self, name: &str, value: &str) {
        let at = self.output.len();
        encode::parameter_status(&mut self.output, name, value);
        self.recode_or(at, |link, _| {
            encode::parameter_status(&mut link.output, name, "?")
        });
    }

    fn copy_in(&mut self, columns: usize, binary: bool) {
        encode::copy_response(&mut self.output, b'G', columns, binary);
    }

    fn copy_input<'a>(&'a mut self, into: &'a mut Vec<u8>) -> LocalFuture<'a, Result<CopyInput>> {
        Box::pin(self.next_copy_input(into))
    }

    fn copy_out(&mut self, columns: usize, binary: bool) {
        encode::copy_response(&mut self.output, b'H', columns, binary);
    }

    fn copy_out_data(&mut self, line: &[u8]) -> Result<()> {
        encode::copy_data(&mut self.output, line)
    }

    fn copy_out_done(&mut self) {
        encode::copy_done(&mut self.output);
    }

    fn flush(&mut self) -> LocalFuture<'_, Result<(), ConnectionLost>> {
        Box::pin(self.write_out())
    }

    fn discard(&mut self) {
        self.passed += self.output.len() as u64;
        self.output.clear();
    }

    fn mark(&self) -> u64 {
        self.passed + self.output.len() as u64
    }

    fn take_back(&mut self, mark: u64) {
        let Some(kept) = mark.checked_sub(self.passed) else {
            return;
        };
        let kept = usize::try_from(kept).unwrap_or(usize::MAX);
        let notices = notices_in(self.output.get(kept..).unwrap_or_default());
        self.output.truncate(kept);
        self.output.extend_from_slice(&notices);
    }
}

/// The notices among messages: what a statement had to say is told, whatever became of it.
fn notices_in(mut messages: &[u8]) -> Vec<u8> {
    let mut notices = Vec::new();
    while let Some(length) = messages.get(1..5) {
        let length = length
            .iter()
            .fold(0, |length, byte| length << 8 | usize::from(*byte));
        let Some((message, rest)) = messages.split_at_checked(length.saturating_add(1)) else {
            break;
        };
        if message.first() == Some(&b'N') {
            notices.extend_from_slice(message);
        }
        messages = rest;
    }
    notices
}
