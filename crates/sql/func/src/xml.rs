//! XML: what SQL's values become in it, the constructs that make it, and the functions by name.

use super::Volatility::{Immutable, Stable};
use super::arithmetic::bad_args;
use super::{AggregateState, CastContext, Function, FunctionImpl, Volatility};
use crate::function as f;
use crate::pg_rows::CastRow;
use crate::pg_rows::c;
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::memory::Builder;
use logstead_sql_types::value::IoContext;
use logstead_sql_types::value::datetime::DateForm;
use logstead_sql_types::value::oid::*;
use logstead_sql_types::value::text_io::{self, OutputStyle};
use logstead_sql_types::value::xml::{self, XmlOption, is_well_formed};
use logstead_sql_types::value::{Datum, SqlType, info, user};
use logstead_sql_types::xml::{Declaration, escaped, is_name_char, is_name_start, quoted};
use logstead_types::SqlState;

/// A name of SQL's as one of XML's: what XML does not allow is written as `_xHHHH_`. `fully`: so is what XML keeps
/// for itself.
pub fn xml_name(name: &str, fully: bool, escape_period: bool) -> String {
    let mut out = String::with_capacity(name.len());
    for (at, c) in name.char_indices() {
        let first = at == 0;
        let behind = &name[at + c.len_utf8()..];
        let reserved =
            fully && first && name.get(..3).is_some_and(|n| n.eq_ignore_ascii_case("xml"));
        let escape = match c {
            ':' => first || fully,
            '_' => behind.starts_with('x'),
            '.' => first || escape_period,
            'x' | 'X' => reserved,
            c if first => !is_name_start(c),
            c => !is_name_char(c),
        };
        match escape {
            true => out.push_str(&format!("_x{:04X}_", u32::from(c))),
            false => out.push(c),
        }
    }
    out
}

/// Binary values in lines of base64, as libxml2 writes them.
fn base64_lines(bytes: &[u8], out: &mut Builder) -> Result<()> {
    use base64::Engine;
    const LINE_BYTES: usize = 54;
    for (at, line) in bytes.chunks(LINE_BYTES).enumerate() {
        if at > 0 {
            out.push_str("\r\n")?;
        }
        out.push_str(&base64::engine::general_purpose::STANDARD.encode(line))?;
    }
    Ok(())
}

fn no_infinity(what: &str, values: &str) -> SqlError {
    SqlError::new(
        SqlState::DATETIME_FIELD_OVERFLOW,
        format!("{what} out of range"),
    )
    .detail(format!("XML does not support infinite {values} values."))
}

/// A date or time as XML Schema writes it.
fn moment(cx: &dyn IoContext, ty: SqlType, d: &Datum) -> Result<String> {
    let mut style = OutputStyle::of(cx);
    style.date.form = DateForm::Iso;
    let mut text = text_io::to_text(d, ty, &style)?;
    if matches!(d, Datum::Date(_)) {
        return Ok(text);
    }
    if let Some(at) = text.find(' ') {
        text.replace_range(at..=at, "T");
    }
    if matches!(d, Datum::TimestampTz(_)) {
        let end = text.find(' ').unwrap_or(text.len());
        // Whole hours are written with their minutes.
        let tail = text.as_bytes().get(end.saturating_sub(3)..end);
        if matches!(tail, Some([b'+' | b'-', _, _])) {
            text.insert_str(end, ":00");
        }
    }
    Ok(text)
}

/// Appends what a value is in XML. `escape`: what has a meaning in XML is written so that it has none.
pub fn append_value(
    cx: &dyn IoContext,
    ty: SqlType,
    d: &Datum,
    escape: bool,
    out: &mut Builder,
) -> Result<()> {
    let ty = user::base_type(ty);
    if let (Datum::Array(array), Some(element)) = (d, info::element_of(ty.oid)) {
        for item in array.items.iter().filter(|item| !item.is_null()) {
            out.push_str("<element>")?;
            append_value(cx, SqlType::of(element), item, true, out)?;
            out.push_str("</element>")?;
        }
        return Ok(());
    }
    match d {
        Datum::Bool(v) => out.push_str(if *v { "true" } else { "false" }),
        Datum::Date(i32::MIN | i32::MAX) => Err(no_infinity("date", "date")),
        Datum::Timestamp(i64::MIN | i64::MAX) | Datum::TimestampTz(i64::MIN | i64::MAX) => {
            Err(no_infinity("timestamp", "timestamp"))
        }
        Datum::Date(_) | Datum::Timestamp(_) | Datum::TimestampTz(_) => {
            out.push_str(&moment(cx, ty, d)?)
        }
        Datum::Bytea(bytes) => match cx.setting("xmlbinary").as_deref() {
            Some("hex") => {
                for b in bytes.iter() {
                    out.push_str(&format!("{b:02X}"))?;
                }
                Ok(())
            }
            _ => base64_lines(bytes, out),
        },
        Datum::Text(text) if ty.oid == XML => out.push_str(&xml::shown(text)),
        Datum::Text(text) if escape => escaped(text, out),
        Datum::Text(text) => out.push_str(text),
        _ => {
            let text = text_io::to_text(d, ty, &OutputStyle::of(cx))?;
            match escape {
                true => escaped(&text, out),
                false => out.push_str(&text),
            }
        }
    }
}

/// The same of a value of a type that no setting has a say in.
pub(crate) fn append_constant(d: &Datum, ty: TypeId, out: &mut Builder) -> Result<()> {
    escaped(
        &text_io::to_text(d, SqlType::of(ty), &OutputStyle::UTC)?,
        out,
    )
}

/// XMLELEMENT: its name, how many attributes it has, the names and values of these, and what is in it.
fn element(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Datum> {
    let [name, Datum::Int4(count), rest @ ..] = a else {
        return Err(bad_args(a));
    };
    let types = types.get(2..).unwrap_or_default();
    let attributes = usize::try_from(*count).unwrap_or(0) * 2;
    let name = name.as_str()?;
    let mut out = Builder::default();
    out.push_byte(b'<')?;
    out.push_str(name)?;
    for (named, ty) in rest[..attributes].chunks(2).zip(types.chunks(2)) {
        let ([attribute, value], [_, ty]) = (named, ty) else {
            return Err(bad_args(a));
        };
        if value.is_null() {
            continue;
        }
        out.push_byte(b' ')?;
        out.push_str(attribute.as_str()?)?;
        out.push_byte(b'=')?;
        let mut text = Builder::default();
        append_value(cx, *ty, value, false, &mut text)?;
        quoted(&text.finish_string()?, true, &mut out)?;
    }
    let content = rest[attributes..].iter().zip(&types[attributes..]);
    let mut content = content.filter(|(d, _)| !d.is_null()).peekable();
    if content.peek().is_none() {
        out.push_str("/>")?;
        return out.finish_text();
    }
    out.push_byte(b'>')?;
    for (d, ty) in content {
        append_value(cx, *ty, d, true, &mut out)?;
    }
    out.push_str("</")?;
    out.push_str(name)?;
    out.push_byte(b'>')?;
    out.finish_text()
}

/// XMLFOREST: names and values.
fn forest(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Datum> {
    let mut out: Option<Builder> = None;
    for (named, ty) in a.chunks(2).zip(types.chunks(2)) {
        let ([name, value], [_, ty]) = (named, ty) else {
            return Err(bad_args(a));
        };
        if value.is_null() {
            continue;
        }
        let name = name.as_str()?;
        let out = out.get_or_insert_default();
        out.push_byte(b'<')?;
        out.push_str(name)?;
        out.push_byte(b'>')?;
        append_value(cx, *ty, value, true, out)?;
        out.push_str("</")?;
        out.push_str(name)?;
        out.push_byte(b'>')?;
    }
    out.map_or(Ok(Datum::Null), Builder::finish_text)
}

/// Values one behind the other, under one declaration.
#[derive(Default)]
struct XmlConcat {
    /// Behind the declaration.
    text: Builder,
    /// What the declaration says: none before there is a value.
    declared: Option<Declaration>,
}

impl XmlConcat {
    fn add(&mut self, value: &str) -> Result<()> {
        let (mut found, len) = Declaration::parse(value).unwrap_or_default();
        self.text.push_str(&value[len..])?;
        found.encoding = None;
        self.declared = Some(match self.declared.take() {
            None => found,
            Some(before) => Declaration {
                version: before.version.filter(|v| found.version.as_ref() == Some(v)),
                encoding: None,
                standalone: match (before.standalone, found.standalone) {
                    (Some(x), Some(y)) => Some(x && y),
                    _ => None,
                },
            },
        });
        Ok(())
    }

    fn finish(self) -> Result<Datum> {
        let Some(declared) = self.declared else {
            return Ok(Datum::Null);
        };
        let mut head = String::new();
        if !declared.print(&mut head) {
            return self.text.finish_text();
        }
        let mut out = Builder::with_capacity(head.len() + self.text.len())?;
        out.push_str(&head)?;
        out.push_bytes(&self.text)?;
        out.finish_text()
    }
}

/// XMLCONCAT, and `xmlconcat2`.
fn concat(a: &[Datum]) -> Result<Datum> {
    let mut joined = XmlConcat::default();
    for value in a.iter().filter(|value| !value.is_null()) {
        joined.add(value.as_str()?)?;
    }
    joined.finish()
}

/// `xmlagg`: each value is joined to what came before, whose declaration is read again as it would be printed.
#[derive(Default)]
pub(super) struct XmlAgg(XmlConcat);

impl AggregateState for XmlAgg {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let [value] = args else {
            return Err(bad_args(args));
        };
        if value.is_null() {
            return Ok(());
        }
        let is_first = self.0.declared.is_none();
        self.0.add(value.as_str()?)?;
        // The first value is kept as it is.
        if !is_first {
            self.0.declared = self.0.declared.take().map(Declaration::printed);
        }
        Ok(())
    }

    fn value(&self) -> Result<Datum> {
        let Some(declared) = &self.0.declared else {
            return Ok(Datum::Null);
        };
        let mut head = String::new();
        declared.print(&mut head);
        let mut out = Builder::with_capacity(head.len() + self.0.text.len())?;
        out.push_str(&head)?;
        out.push_bytes(&self.0.text)?;
        out.finish_text()
    }

    fn finish(&mut self) -> Result<Datum> {
        std::mem::take(&mut self.0).finish()
    }

    fn size_bytes(&self) -> usize {
        self.0.text.capacity()
    }
}

fn option_named(word: &Datum) -> Result<XmlOption> {
    Ok(match word.as_str()? {
        "DOCUMENT" => XmlOption::Document,
        _ => XmlOption::Content,
    })
}

/// XMLPARSE: as what, and the text. What it says of white space changes nothing, as in PostgreSQL.
fn parse(a: &[Datum]) -> Result<Datum> {
    let [option, text, ..] = a else {
        return Err(bad_args(a));
    };
    xml::check(text.as_str()?, option_named(option)?)?;
    Ok(text.clone())
}

fn wrong_instruction(detail: String) -> SqlError {
    SqlError::new(
        SqlState::INVALID_XML_PROCESSING_INSTRUCTION,
        "invalid XML processing instruction",
    )
    .detail(detail)
}

/// XMLPI: the target, and what it is told.
fn instruction(a: &[Datum]) -> Result<Datum> {
    let (target, content) = match a {
        [target] => (target.as_str()?, None),
        [target, content] => (target.as_str()?, Some(content)),
        _ => return Err(bad_args(a)),
    };
    if target.eq_ignore_ascii_case("xml") {
        return Err(wrong_instruction(format!(
            "XML processing instruction target name cannot be \"{target}\"."
        )));
    }
    let mut out = Builder::default();
    out.push_str("<?")?;
    out.push_str(target)?;
    match content {
        None => {}
        Some(Datum::Null) => return Ok(Datum::Null),
        Some(content) => {
            let content = content.as_str()?;
            if content.contains("?>") {
                return Err(wrong_instruction(
                    "XML processing instruction cannot contain \"?>\".".to_owned(),
                ));
            }
            out.push_byte(b' ')?;
            out.push_str(content.trim_start_matches(' '))?;
        }
    }
    out.push_str("?>")?;
    out.finish_text()
}

/// XMLROOT: the value, the version, and what STANDALONE says.
fn root(a: &[Datum]) -> Result<Datum> {
    let [value, version, standalone] = a else {
        return Err(bad_args(a));
    };
    if value.is_null() {
        return Ok(Datum::Null);
    }
    let value = value.as_str()?;
    let (mut declared, len) = Declaration::parse(value).unwrap_or_default();
    declared.version = match version {
        Datum::Null => None,
        version => Some(version.as_str()?.to_owned()),
    };
    match standalone {
        Datum::Null => {}
        said => {
            declared.standalone = match said.as_str()? {
                "YES" => Some(true),
                "NO" => Some(false),
                _ => None,
            }
        }
    }
    let mut head = String::new();
    declared.print(&mut head);
    let mut out = Builder::with_capacity(head.len() + value.len())?;
    out.push_str(&head)?;
    out.push_str(&value[len..])?;
    out.finish_text()
}

/// XMLSERIALIZE: as what, and the value.
fn serialize(a: &[Datum]) -> Result<Datum> {
    let [option, value] = a else {
        return Err(bad_args(a));
    };
    let option = option_named(option)?;
    if option == XmlOption::Document && !is_well_formed(value.as_str()?, option)? {
        return Err(xml::not_of_kind());
    }
    Ok(value.clone())
}

fn is_document(a: &[Datum]) -> Result<Datum> {
    match a {
        [value] => is_well_formed(value.as_str()?, XmlOption::Document).map(Datum::Bool),
        _ => Err(bad_args(a)),
    }
}

fn is_content(a: &[Datum]) -> Result<Datum> {
    match a {
        [value] => is_well_formed(value.as_str()?, XmlOption::Content).map(Datum::Bool),
        _ => Err(bad_args(a)),
    }
}

fn is_of_option(cx: &dyn IoContext, a: &[Datum]) -> Result<Datum> {
    match a {
        [value] => is_well_formed(value.as_str()?, XmlOption::of(Some(cx))).map(Datum::Bool),
        _ => Err(bad_args(a)),
    }
}

/// `xml(text)`
fn of_text(cx: &dyn IoContext, a: &[Datum]) -> Result<Datum> {
    let [value] = a else {
        return Err(bad_args(a));
    };
    xml::check(value.as_str()?, XmlOption::of(Some(cx)))?;
    Ok(value.clone())
}

/// `text(xml)`
fn to_text(a: &[Datum]) -> Result<Datum> {
    match a {
        [value] => Ok(value.clone()),
        _ => Err(bad_args(a)),
    }
}

fn comment(a: &[Datum]) -> Result<Datum> {
    let [value] = a else {
        return Err(bad_args(a));
    };
    let text = value.as_str()?;
    if text.contains("--") || text.ends_with('-') {
        return Err(SqlError::new(
            SqlState::INVALID_XML_COMMENT,
            "invalid XML comment",
        ));
    }
    let mut out = Builder::with_capacity(text.len() + 7)?;
    out.push_str("<!--")?;
    out.push_str(text)?;
    out.push_str("-->")?;
    out.finish_text()
}

fn validate(_: &[Datum]) -> Result<Datum> {
    Err(SqlError::unsupported_text("xmlvalidate is not implemented"))
}

/// What a construct is made of: not in `pg_proc`. They do what they do when the statement runs, as PostgreSQL's.
const fn construct(
    name: &'static str,
    result: TypeId,
    strict: bool,
    body: FunctionImpl,
) -> Function {
    let volatility = match body {
        FunctionImpl::Pure(_) => Volatility::Immutable,
        _ => Volatility::Stable,
    };
    f(0, name, &[], Some(ANY), result, strict, volatility, body)
}

/// XMLCONCAT
pub static XML_CONCAT: Function = construct("xmlconcat", XML, false, FunctionImpl::Pure(concat));
/// XMLELEMENT
pub static XML_ELEMENT: Function =
    construct("xmlelement", XML, false, FunctionImpl::Typed(element));
/// XMLFOREST
pub static XML_FOREST: Function = construct("xmlforest", XML, false, FunctionImpl::Typed(forest));
/// XMLPARSE
pub static XML_PARSE: Function = construct("xmlparse", XML, true, FunctionImpl::Pure(parse));
/// XMLPI
pub static XML_PI: Function = construct("xmlpi", XML, false, FunctionImpl::Pure(instruction));
/// XMLROOT
pub static XML_ROOT: Function = construct("xmlroot", XML, false, FunctionImpl::Pure(root));
/// XMLSERIALIZE
pub static XML_SERIALIZE: Function =
    construct("xmlserialize", TEXT, true, FunctionImpl::Pure(serialize));
/// IS DOCUMENT
pub static XML_IS_DOCUMENT: Function =
    construct("xmldocument", BOOL, true, FunctionImpl::Pure(is_document));

/// Functions by name.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    f(2895, "xmlcomment", &[TEXT], None, XML, true, Immutable, FunctionImpl::Pure(comment)),
    f(2896, "xml", &[TEXT], None, XML, true, Stable, FunctionImpl::Io(of_text)),
    f(2897, "xmlvalidate", &[XML, TEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(validate)),
    f(2900, "xmlconcat2", &[XML, XML], None, XML, false, Immutable, FunctionImpl::Pure(concat)),
    f(2922, "text", &[XML], None, TEXT, true, Immutable, FunctionImpl::Pure(to_text)),
    f(3051, "xml_is_well_formed", &[TEXT], None, BOOL, true, Stable, FunctionImpl::Io(is_of_option)),
    f(3052, "xml_is_well_formed_document", &[TEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(is_document)),
    f(3053, "xml_is_well_formed_content", &[TEXT], None, BOOL, true, Immutable, FunctionImpl::Pure(is_content)),
];

/// Casts.
pub(super) static CASTS: &[CastRow] = &[
    c(XML, TEXT, 0, CastContext::Assignment, false),
    c(XML, VARCHAR, 0, CastContext::Assignment, false),
    c(XML, BPCHAR, 0, CastContext::Assignment, false),
    c(TEXT, XML, 2896, CastContext::Explicit, false),
    c(VARCHAR, XML, 2896, CastContext::Explicit, false),
    c(BPCHAR, XML, 2896, CastContext::Explicit, false),
];
