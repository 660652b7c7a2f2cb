//! Types that name objects, as text: `oid` and its kin (`regclass`, `regtype`, `regproc`, ...), and numbers of
//! transactions.
//!
//! Owns: names to numbers and back, by the catalog of the context; without one, numbers only.

use super::names::{quote_identifier, split_qualified};
use super::text_io::{OutputStyle, integer, trim, write_int};
use super::types::oid;
use super::{Datum, info};
use crate::error::{Result, SqlError};
use crate::value::search::dictionary;
use crate::value::{IoContext, RegType};
use crate::{RelationId, TypeId};
use logstead_types::SqlState;

pub(super) fn object_id(text: &str, name: &str) -> Result<u32> {
    let v = integer(text, name, i64::from(i32::MIN), i64::from(u32::MAX))?;
    Ok(v as u32)
}

/// A transaction's number, as C's `strtoul` and `strtoull` read it: hexadecimal, octal or decimal, up to what is no
/// digit; nothing is zero.
pub(super) fn transaction_id(text: &str) -> u64 {
    let t = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}');
    let (negative, t) = match t.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, t.strip_prefix('+').unwrap_or(t)),
    };
    let hexadecimal = { t.strip_prefix("0x").or_else(|| t.strip_prefix("0X")) }
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit()));
    let (digits, radix) = match hexadecimal {
        Some(digits) => (digits, 16),
        None if t.starts_with('0') => (t, 8),
        None => (t, 10),
    };
    let mut number = Some(0_u64);
    for digit in digits.chars().map_while(|c| c.to_digit(radix)) {
        number = number
            .and_then(|n| n.checked_mul(u64::from(radix)))
            .and_then(|n| n.checked_add(u64::from(digit)));
    }
    match number {
        None => u64::MAX,
        Some(number) if negative => number.wrapping_neg(),
        Some(number) => number,
    }
}

/// An xid8: half of PostgreSQL's numbers, which no server has used up.
pub(super) fn wide_transaction_id(text: &str) -> Result<i64> {
    i64::try_from(transaction_id(text)).map_err(|_| {
        SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("value \"{text}\" is out of range for type xid8"),
        )
    })
}

pub(super) fn named_object(ty: TypeId, text: &str, cx: Option<&dyn IoContext>) -> Result<Datum> {
    let t = trim(text);
    // An operator has this name.
    if t == "-" && !matches!(ty, oid::REGOPER | oid::REGOPERATOR) {
        return Ok(Datum::Oid(0));
    }
    if !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit()) {
        return object_id(t, "oid").map(Datum::Oid);
    }
    let no_session = || {
        SqlError::internal(format!(
            "reading {} needs a session",
            info::built_in_name(ty)
        ))
    };
    match ty {
        oid::REGCLASS => match cx.ok_or_else(no_session)?.relation_by_name(t)? {
            Some(relation) => Ok(Datum::Oid(relation.get())),
            None => Err(SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!(
                    "relation \"{}\" does not exist",
                    split_qualified(t)?.join(".")
                ),
            )),
        },
        oid::REGTYPE => {
            let found = cx.ok_or_else(no_session)?.type_by_text(t)?;
            Ok(Datum::Oid(found.get()))
        }
        oid::REGCONFIG => dictionary::named_config(t).map(|c| Datum::Oid(c.oid)),
        oid::REGDICTIONARY => dictionary::named_dictionary(t).map(|d| Datum::Oid(d.oid)),
        _ => {
            let of = match ty {
                oid::REGROLE => RegType::Role,
                oid::REGPROC => RegType::Proc,
                oid::REGPROCEDURE => RegType::Procedure,
                oid::REGOPER => RegType::Oper,
                oid::REGOPERATOR => RegType::Operator,
                oid::REGCOLLATION => RegType::Collation,
                _ => RegType::Namespace,
            };
            let found = cx.ok_or_else(no_session)?.object_by_text(of, t);
            found.map(Datum::Oid)
        }
    }
}

pub(super) fn write_object(v: u32, ty: TypeId, style: &OutputStyle<'_>, out: &mut Vec<u8>) {
    let number = |out: &mut Vec<u8>| write_int(i64::from(v), out);
    match ty {
        oid::OID | oid::XID | oid::CID => number(out),
        oid::REGOPER | oid::REGOPERATOR if v == 0 => number(out),
        _ if v == 0 => out.push(b'-'),
        oid::REGTYPE => {
            let name = match style.names {
                Some(cx) => cx.type_text(TypeId::new(v), style.types_by_number),
                None => info::built_in_text(TypeId::new(v)),
            };
            match name {
                Some(name) => out.extend_from_slice(name.as_bytes()),
                None => number(out),
            }
        }
        oid::REGCLASS => match style
            .names
            .and_then(|cx| cx.relation_name(RelationId::new(v)))
        {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => number(out),
        },
        oid::REGCONFIG => match dictionary::config_by_oid(v) {
            Some(config) => out.extend_from_slice(config.name.as_bytes()),
            None => number(out),
        },
        oid::REGDICTIONARY => match dictionary::dictionary_by_oid(v) {
            Some(dictionary) => out.extend_from_slice(dictionary.name.as_bytes()),
            None => number(out),
        },
        oid::REGCOLLATION => match super::collations::collation_name(v) {
            Some(name) => out.extend_from_slice(quote_identifier(name).as_bytes()),
            None => number(out),
        },
        oid::REGPROC
        | oid::REGPROCEDURE
        | oid::REGNAMESPACE
        | oid::REGROLE
        | oid::REGOPER
        | oid::REGOPERATOR => {
            let of = match ty {
                oid::REGPROC => RegType::Proc,
                oid::REGPROCEDURE => RegType::Procedure,
                oid::REGROLE => RegType::Role,
                oid::REGOPER => RegType::Oper,
                oid::REGOPERATOR => RegType::Operator,
                _ => RegType::Namespace,
            };
            match style.names.and_then(|cx| cx.object_text(of, v)) {
                Some(name) => out.extend_from_slice(name.as_bytes()),
                None => number(out),
            }
        }
        _ => number(out),
    }
}
