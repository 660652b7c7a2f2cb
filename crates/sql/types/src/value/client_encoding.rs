//! Texts within values in binary form, which are in the client's encoding too.
//!
//! Does not: know how characters are encoded (`crate::encoding`).

use super::{info, multirange, oid, range, user, xml};
use crate::TypeId;
use crate::encoding::{ConversionDirection, Encoding};
use crate::error::Result;

impl Encoding {
    /// Appends a value in the binary form of its type, its texts converted. What is not whole stays as it is, for
    /// whoever reads it to complain.
    pub fn convert_binary(
        self,
        ty: TypeId,
        bytes: &[u8],
        way: ConversionDirection,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let start = out.len();
        match self.value(ty, bytes, way, out)? {
            Some(()) => {}
            None => {
                out.truncate(start);
                out.extend_from_slice(bytes);
            }
        }
        Ok(())
    }

    /// None if it is not whole.
    fn value(
        self,
        ty: TypeId,
        bytes: &[u8],
        way: ConversionDirection,
        out: &mut Vec<u8>,
    ) -> Result<Option<()>> {
        let texts = [
            oid::TEXT,
            oid::VARCHAR,
            oid::BPCHAR,
            oid::NAME,
            oid::UNKNOWN,
            oid::JSON,
            oid::CITEXT,
        ];
        if texts.contains(&ty) || user::class(ty) == Some(user::UserTypeClass::Enum) {
            self.convert(bytes, way, out)?;
            return Ok(Some(()));
        }
        // It says itself in which encoding it is.
        if ty == oid::XML {
            match (way, std::str::from_utf8(bytes)) {
                (ConversionDirection::ToClient, Ok(text)) => {
                    let text = xml::sent(text, self.name());
                    self.encode(&text, out)?;
                }
                _ => out.extend_from_slice(bytes),
            }
            return Ok(Some(()));
        }
        if ty == oid::JSONB {
            let Some((version, text)) = bytes.split_first() else {
                return Ok(None);
            };
            out.push(*version);
            self.convert(text, way, out)?;
            return Ok(Some(()));
        }
        let array = info::by_oid(ty).is_some_and(|info| info.elem.is_some() && info.len < 0)
            || user::class(ty) == Some(user::UserTypeClass::Array);
        if array {
            return self.array(bytes, way, out);
        }
        match user::class(ty) {
            Some(user::UserTypeClass::Range) => {
                let Some((flags, bounds)) = bytes.split_at_checked(1) else {
                    return Ok(None);
                };
                out.extend_from_slice(flags);
                return self.items(range::subtype(ty).unwrap_or(oid::INVALID), bounds, way, out);
            }
            Some(user::UserTypeClass::Multirange) => {
                let Some((count, ranges)) = bytes.split_at_checked(4) else {
                    return Ok(None);
                };
                out.extend_from_slice(count);
                return self.items(
                    multirange::range_of(ty).unwrap_or(oid::INVALID),
                    ranges,
                    way,
                    out,
                );
            }
            _ => {}
        }
        if ty == oid::RECORD || user::class(ty) == Some(user::UserTypeClass::Composite) {
            return self.record(bytes, way, out);
        }
        out.extend_from_slice(bytes);
        Ok(Some(()))
    }

    fn array(
        self,
        bytes: &[u8],
        way: ConversionDirection,
        out: &mut Vec<u8>,
    ) -> Result<Option<()>> {
        let (Some(dimensions), Some(element)) = (number(bytes, 0), number(bytes, 8)) else {
            return Ok(None);
        };
        let head = 12_usize.saturating_add((dimensions as usize).saturating_mul(8));
        let Some((head, rest)) = bytes.split_at_checked(head) else {
            return Ok(None);
        };
        out.extend_from_slice(head);
        self.items(TypeId::new(element), rest, way, out)
    }

    /// Lengths and values of one type.
    fn items(
        self,
        ty: TypeId,
        bytes: &[u8],
        way: ConversionDirection,
        out: &mut Vec<u8>,
    ) -> Result<Option<()>> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.item(ty, rest, way, out)? {
                Some(left) => rest = left,
                None => return Ok(None),
            }
        }
        Ok(Some(()))
    }

    fn record(
        self,
        bytes: &[u8],
        way: ConversionDirection,
        out: &mut Vec<u8>,
    ) -> Result<Option<()>> {
        let Some((head, mut rest)) = bytes.split_at_checked(4) else {
            return Ok(None);
        };
        out.extend_from_slice(head);
        while let Some(ty) = number(rest, 0) {
            out.extend_from_slice(&ty.to_be_bytes());
            let item = rest.get(4..).unwrap_or_default();
            match self.item(TypeId::new(ty), item, way, out)? {
                Some(left) => rest = left,
                None => return Ok(None),
            }
        }
        Ok(rest.is_empty().then_some(()))
    }

    /// A length and a value; gives what follows.
    fn item<'b>(
        self,
        ty: TypeId,
        bytes: &'b [u8],
        way: ConversionDirection,
        out: &mut Vec<u8>,
    ) -> Result<Option<&'b [u8]>> {
        let (Some(length), Some(rest)) = (number(bytes, 0), bytes.get(4..)) else {
            return Ok(None);
        };
        let at = out.len();
        out.extend_from_slice(&length.to_be_bytes());
        // Below zero it is NULL.
        let Ok(length) = usize::try_from(length as i32) else {
            return Ok(Some(rest));
        };
        let Some((value, rest)) = rest.split_at_checked(length) else {
            return Ok(None);
        };
        self.convert_binary(ty, value, way, out)?;
        let length = u32::try_from(out.len() - at - 4).unwrap_or(u32::MAX);
        if let Some(place) = out.get_mut(at..at + 4) {
            place.copy_from_slice(&length.to_be_bytes());
        }
        Ok(Some(rest))
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let number = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*number))
}
