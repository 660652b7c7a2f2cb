//! The client's encoding: texts of messages from it to UTF-8, and of replies from UTF-8 to it.
//!
//! Owns: where the texts are in each message. Sessions in UTF8 never come here. A message that is not whole goes on as
//! it came: who decodes it says what is wrong.

use crate::decode::Frame;
use bytes::Bytes;
use logstead_sql_types::encoding::{ConversionDirection, Encoding};
use logstead_sql_types::value::{SqlType, oid};
use logstead_sql_types::{Result, TypeId};

/// A client's message with its texts in UTF-8. Parameters in binary form are left to who knows their types.
pub(crate) fn received(frame: &Frame, encoding: Encoding) -> Result<Frame> {
    let mut out = Vec::with_capacity(frame.body.len() + frame.body.len() / 2);
    let mut body = Walk {
        rest: &frame.body,
        encoding,
        way: ConversionDirection::FromClient,
        out: &mut out,
    };
    match frame.kind {
        b'Q' | b'E' | b'f' => {
            body.text()?;
        }
        b'P' => {
            body.text()?;
            body.text()?;
        }
        b'D' | b'C' => {
            body.plain(1);
            body.text()?;
        }
        b'B' => {
            body.text()?;
            body.text()?;
            body.parameters()?;
        }
        b'F' => {
            body.plain(4);
            body.parameters()?;
        }
        _ => {}
    }
    let rest = body.rest;
    out.extend_from_slice(rest);
    Ok(Frame {
        kind: frame.kind,
        body: Bytes::from(out),
    })
}

/// Converts the texts of the message that begins at `at` in the output, and is its last. Rows have these columns.
pub(crate) fn reply(
    output: &mut Vec<u8>,
    at: usize,
    encoding: Encoding,
    columns: &[(SqlType, bool)],
) -> Result<()> {
    let message = output.split_off(at);
    let (Some(kind), Some(body)) = (message.first(), message.get(5..)) else {
        output.extend_from_slice(&message);
        return Ok(());
    };
    let begun = crate::encode::begin(output, *kind);
    let mut walk = Walk {
        rest: body,
        encoding,
        way: ConversionDirection::ToClient,
        out: output,
    };
    let done = match kind {
        b'D' => walk.row(columns),
        b'T' => walk.columns(),
        b'E' | b'N' => walk.fields(),
        b'S' => walk.text().and_then(|()| walk.text()),
        b'A' => {
            walk.plain(4);
            walk.text().and_then(|()| walk.text())
        }
        _ => Ok(()),
    };
    let rest = walk.rest;
    match done {
        Ok(()) => {
            output.extend_from_slice(rest);
            crate::encode::end(output, begun);
            Ok(())
        }
        Err(error) => {
            output.truncate(at);
            Err(error)
        }
    }
}

/// A message that is copied from the front, its texts converted.
struct Walk<'a, 'o> {
    rest: &'a [u8],
    encoding: Encoding,
    way: ConversionDirection,
    out: &'o mut Vec<u8>,
}

impl<'a> Walk<'a, '_> {
    /// Takes so many bytes, or all there are.
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn plain(&mut self, count: usize) {
        let taken = self.take(count);
        self.out.extend_from_slice(taken);
    }

    fn number(&mut self) -> usize {
        let taken = self.take(2);
        self.out.extend_from_slice(taken);
        taken.iter().fold(0, |n, byte| n << 8 | usize::from(*byte))
    }

    /// A text that ends with a zero byte.
    fn text(&mut self) -> Result<()> {
        let Some(end) = self.rest.iter().position(|byte| *byte == 0) else {
            return Ok(());
        };
        let text = self.take(end);
        self.encoding.convert(text, self.way, self.out)?;
        self.plain(1);
        Ok(())
    }

    /// A value behind its length; of a type that is known in binary form, otherwise in text form.
    fn value(&mut self, binary: Option<TypeId>) -> Result<()> {
        let length = self.take(4);
        let at = self.out.len();
        self.out.extend_from_slice(length);
        let Some(length) = length.first_chunk::<4>() else {
            return Ok(());
        };
        // Below zero it is NULL.
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            return Ok(());
        };
        if length > self.rest.len() {
            return Ok(());
        }
        let value = self.take(length);
        match binary {
            Some(ty) => self
                .encoding
                .convert_binary(ty, value, self.way, self.out)?,
            None => self.encoding.convert(value, self.way, self.out)?,
        }
        let length = u32::try_from(self.out.len() - at - 4).unwrap_or(u32::MAX);
        if let Some(place) = self.out.get_mut(at..at + 4) {
            place.copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }

    /// The part of Bind from the formats on.
    fn parameters(&mut self) -> Result<()> {
        let formats = self.number();
        let codes = self.rest.get(..2 * formats).unwrap_or_default();
        self.plain(2 * formats);
        let is_binary = |at: usize| {
            let at = if formats == 1 { 0 } else { at };
            codes.get(2 * at + 1) == Some(&1)
        };
        for at in 0..self.number() {
            match is_binary(at) {
                // Nobody knows here what it is: numbers stay numbers.
                true => self.value(Some(oid::INVALID))?,
                false => self.value(None)?,
            }
        }
        Ok(())
    }

    fn row(&mut self, columns: &[(SqlType, bool)]) -> Result<()> {
        for at in 0..self.number() {
            let binary = columns.get(at).filter(|(_, binary)| *binary);
            self.value(binary.map(|(ty, _)| ty.oid))?;
        }
        Ok(())
    }

    fn columns(&mut self) -> Result<()> {
        for _ in 0..self.number() {
            self.text()?;
            self.plain(18);
        }
        Ok(())
    }

    /// An error or a notice: a letter and a text each.
    fn fields(&mut self) -> Result<()> {
        while self.rest.first().is_some_and(|letter| *letter != 0) {
            self.plain(1);
            self.text()?;
        }
        Ok(())
    }
}
