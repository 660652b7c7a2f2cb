//! The type `xml`: which texts are values, and how those are taken and shown.
//!
//! Invariant: a value is kept as the text that was given, as PostgreSQL keeps it.
//!
//! Does not: read markup, which `crate::xml` does.

use crate::encoding::Encoding;
use crate::error::{Result, SqlError};
use crate::memory::Builder;
use crate::value::IoContext;
use crate::value::{Datum, SqlType, oid};
use crate::xml::{
    Declaration, WellFormednessCheck, XmlError, XmlTextKind, has_document_type, read,
};
use logstead_types::SqlState;
use std::borrow::Cow;

/// `xmloption`, or what XMLPARSE and its like say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XmlOption {
    /// A whole document with one root.
    Document,
    /// Anything that may stand within an element.
    Content,
}

impl XmlOption {
    /// The session's.
    pub fn of(cx: Option<&dyn IoContext>) -> XmlOption {
        match cx.and_then(|cx| cx.setting("xmloption")) {
            Some(value) if value.eq_ignore_ascii_case("document") => XmlOption::Document,
            _ => XmlOption::Content,
        }
    }
}

/// What is wrong with a text as a value, if anything is; and what to call it.
fn flaw_of(text: &str, option: XmlOption) -> Result<(), (XmlError, &'static str)> {
    let failed = |error| (XmlError::Failed(error), "");
    match option {
        XmlOption::Document => read(text, XmlTextKind::Document, &mut WellFormednessCheck)
            .map_err(|f| (f, "invalid XML document")),
        XmlOption::Content => {
            let wrong = "invalid XML content";
            let Some((_, len)) = Declaration::parse(text) else {
                let flaw = XmlError::Malformed(1, "Malformed declaration.".to_owned());
                return Err((flaw, "invalid XML content: invalid XML declaration"));
            };
            let form = match has_document_type(&text[len..]).map_err(failed)? {
                true => {
                    return read(text, XmlTextKind::Document, &mut WellFormednessCheck)
                        .map_err(|f| (f, wrong));
                }
                false => XmlTextKind::Content,
            };
            read(&text[len..], form, &mut WellFormednessCheck).map_err(|f| (f, wrong))
        }
    }
}

/// Fails, as PostgreSQL does, for a text that is no value.
pub fn check(text: &str, option: XmlOption) -> Result<()> {
    let code = match option {
        XmlOption::Document => SqlState::INVALID_XML_DOCUMENT,
        XmlOption::Content => SqlState::INVALID_XML_CONTENT,
    };
    flaw_of(text, option).map_err(|(flaw, message)| flaw.into_sql_error(code, message))
}

/// Whether a text is a value.
pub fn is_well_formed(text: &str, option: XmlOption) -> Result<bool> {
    match flaw_of(text, option) {
        Ok(()) => Ok(true),
        Err((XmlError::Malformed(..), _)) => Ok(false),
        Err((XmlError::Failed(error), _)) => Err(error),
    }
}

/// A value as clients get it: its declaration says no encoding, and stays only where it says more than every reader
/// assumes.
pub fn shown(text: &str) -> Cow<'_, str> {
    let Some((found, len)) = Declaration::parse(text) else {
        return Cow::Borrowed(text);
    };
    let mut declared = String::new();
    if found.print(&mut declared) {
        declared.push_str(&text[len..]);
        return Cow::Owned(declared);
    }
    // Without a declaration no first line stays empty.
    let rest = &text[len..];
    Cow::Borrowed(rest.strip_prefix('\n').unwrap_or(rest))
}

/// A value as clients get it in binary form, who read it in another encoding than UTF-8: its declaration names that.
pub fn sent(shown: &str, encoding: &str) -> String {
    let (found, len) = Declaration::parse(shown).unwrap_or_default();
    let mut out = format!(
        "<?xml version=\"{}\" encoding=\"{encoding}\"",
        found.version.as_deref().unwrap_or("1.0")
    );
    match found.standalone {
        Some(true) => out.push_str(" standalone=\"yes\""),
        Some(false) => out.push_str(" standalone=\"no\""),
        None => {}
    }
    out.push_str("?>");
    out.push_str(&shown[len..]);
    out
}

/// The text of a value that came in binary form, in the encoding that it names itself.
pub fn received(bytes: &[u8]) -> Result<String> {
    let head = &bytes[..bytes.len().min(1 << 10)];
    let head = String::from_utf8_lossy(head);
    let named = Declaration::parse(&head).and_then(|(found, _)| found.encoding);
    let mut out = Builder::with_capacity(bytes.len())?;
    let encoding = named.map(|name| {
        Encoding::named(&name).ok_or_else(|| {
            SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("invalid encoding name \"{name}\""),
            )
        })
    });
    match encoding.transpose()? {
        Some(encoding) if !encoding.is_plain() => {
            let mut decoded = Vec::new();
            encoding.decode(bytes, &mut decoded)?;
            out.push_bytes(&decoded)?;
        }
        _ => out.push_bytes(crate::value::binary_io::text(bytes)?.as_bytes())?,
    }
    out.finish_string()
}

/// A value that came in binary form, if the session's `xmloption` allows it.
#[inline]
pub fn admitted(ty: SqlType, value: Datum, cx: &dyn IoContext) -> Result<Datum> {
    if ty.oid == oid::XML
        && let Datum::Text(text) = &value
    {
        check(text, XmlOption::of(Some(cx)))?;
    }
    Ok(value)
}

/// 2200L.
pub fn not_of_kind() -> SqlError {
    SqlError::new(SqlState::NOT_AN_XML_DOCUMENT, "not an XML document")
}

/// What XPath is asked of is no document.
pub fn no_document(flaw: XmlError) -> SqlError {
    flaw.into_sql_error(
        SqlState::INVALID_XML_DOCUMENT,
        "could not parse XML document",
    )
}
