//! Reads a text as XML and tells what is in it, if it is well-formed.
//!
//! Namespaces are no matter of well-formedness: who builds a tree looks at them.

use super::dtd::{Dtd, Entity, character};
use super::names::{after_space, is_space, leading_name};
use super::{Declaration, XmlError};
use crate::error::Result as SqlResult;
use crate::interrupt::check_for_interrupts;
use crate::memory::{MemoryReservation, STRIDE_BYTES};
use quick_xml::events::Event;
use quick_xml::reader::Reader as Markup;
use std::borrow::Cow;
use std::collections::HashSet;

/// How deep elements may be nested, as libxml2 has it.
const DEPTH_MAX: usize = 256;
/// How deep entities may stand for others, as libxml2 has it.
const ENTITY_DEPTH_MAX: usize = 40;
/// What entities may come to in any document, and how many times its length.
const EXPANSION_BYTES: usize = 1 << 20;
const EXPANSION_FACTOR: usize = 10;
/// An element of so many attributes is asked for one of them twice by a set.
const FEW_ATTRIBUTES: usize = 8;

/// What is told of a text, in its order.
pub(crate) trait SaxHandler<'a> {
    /// Whether it wants values, not only their being right.
    const BUILDS: bool;

    fn start(&mut self, name: Cow<'a, str>) -> Result<(), XmlError>;
    fn attribute(&mut self, name: Cow<'a, str>, value: Cow<'a, str>) -> Result<(), XmlError>;
    /// The attributes of the element that was started have all been told. What is wrong with its namespaces, if it
    /// cares for them.
    fn started(&mut self) -> Result<Option<String>, XmlError>;
    fn end(&mut self) -> Result<(), XmlError>;
    fn text(&mut self, text: Cow<'a, str>) -> Result<(), XmlError>;
    fn cdata(&mut self, text: Cow<'a, str>) -> Result<(), XmlError>;
    fn comment(&mut self, text: Cow<'a, str>) -> Result<(), XmlError>;
    fn instruction(&mut self, target: Cow<'a, str>, content: Cow<'a, str>) -> Result<(), XmlError>;
}

/// Wants to know that it is well-formed only.
pub(crate) struct WellFormednessCheck;

impl<'a> SaxHandler<'a> for WellFormednessCheck {
    const BUILDS: bool = false;

    fn start(&mut self, _: Cow<'a, str>) -> Result<(), XmlError> {
        Ok(())
    }
    fn attribute(&mut self, _: Cow<'a, str>, _: Cow<'a, str>) -> Result<(), XmlError> {
        Ok(())
    }
    fn started(&mut self) -> Result<Option<String>, XmlError> {
        Ok(None)
    }
    fn end(&mut self) -> Result<(), XmlError> {
        Ok(())
    }
    fn text(&mut self, _: Cow<'a, str>) -> Result<(), XmlError> {
        Ok(())
    }
    fn cdata(&mut self, _: Cow<'a, str>) -> Result<(), XmlError> {
        Ok(())
    }
    fn comment(&mut self, _: Cow<'a, str>) -> Result<(), XmlError> {
        Ok(())
    }
    fn instruction(&mut self, _: Cow<'a, str>, _: Cow<'a, str>) -> Result<(), XmlError> {
        Ok(())
    }
}

/// What a text is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum XmlTextKind {
    /// One element, and what may stand around it.
    Document,
    /// What may stand in an element.
    Content,
}

/// How parts of a text that is being read get to the sink.
type Lend<'t, 'a> = fn(&'t str) -> Cow<'a, str>;

pub(super) struct Reader<'a, 's, S> {
    sink: &'s mut S,
    text: &'a str,
    /// Where in the text it is, for errors.
    place: usize,
    dtd: Dtd,
    /// The elements that have begun, each with its place.
    open: Vec<(Cow<'a, str>, usize)>,
    /// What entities have come to.
    expanded_bytes: usize,
    entity_depth: usize,
    room: MemoryReservation,
}

/// Reads a whole text.
pub(crate) fn read<'a, S: SaxHandler<'a>>(
    text: &'a str,
    form: XmlTextKind,
    sink: &mut S,
) -> Result<(), XmlError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader {
        sink,
        text,
        place: 0,
        dtd: Dtd::default(),
        open: Vec::new(),
        expanded_bytes: 0,
        entity_depth: 0,
        room: MemoryReservation::default(),
    };
    reader.content(text, Cow::Borrowed, Some(form))
}

/// What stands between two marks; none where they overlap or are written otherwise.
fn between<'t>(raw: &'t str, open: &str, close: &str) -> Option<&'t str> {
    raw.strip_prefix(open)?.strip_suffix(close)
}

/// An attribute's value with white space for what separates lines.
fn is_plain_value(raw: &str) -> bool {
    !raw.bytes()
        .any(|b| matches!(b, b'&' | b'\t' | b'\n' | b'\r'))
}

/// Lines end as XML has it.
pub(super) fn with_plain_lines<'a>(text: Cow<'a, str>) -> Cow<'a, str> {
    match memchr::memchr(b'\r', text.as_bytes()) {
        Some(_) => Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")),
        None => text,
    }
}

impl<'a, S: SaxHandler<'a>> Reader<'a, '_, S> {
    fn line_of(&self, place: usize) -> usize {
        let before = &self.text.as_bytes()[..place.min(self.text.len())];
        1 + memchr::memchr_iter(b'\n', before).count()
    }

    fn flaw<T>(&self, what: impl Into<String>) -> Result<T, XmlError> {
        Err(XmlError::Malformed(self.line_of(self.place), what.into()))
    }

    /// Content, or a whole document; `form` is none for what an entity stands for.
    fn content<'t>(
        &mut self,
        text: &'t str,
        lend: Lend<'t, 'a>,
        form: Option<XmlTextKind>,
    ) -> Result<(), XmlError> {
        let outer = self.open.len();
        let is_document = form == Some(XmlTextKind::Document);
        let (mut has_root, mut has_type) = (false, false);
        let mut markup = Markup::from_str(text);
        let config = markup.config_mut();
        config.allow_unmatched_ends = true;
        config.check_end_names = false;
        loop {
            check_for_interrupts()?;
            let start = position(markup.buffer_position());
            if form.is_some() {
                self.place = start;
            }
            let event = match markup.read_event() {
                Ok(event) => event,
                Err(error) => return self.unfinished(&text[start..], &error),
            };
            let raw = &text[start..position(markup.buffer_position())];
            let outside = is_document && self.open.is_empty();
            if outside && has_root && matches!(event, Event::Start(_) | Event::Empty(_)) {
                return self.flaw("Extra content at the end of the document");
            }
            match event {
                Event::Eof => break,
                Event::Start(_) => {
                    has_root = true;
                    self.tag(&raw[1..raw.len() - 1], lend)?;
                }
                Event::Empty(_) => {
                    has_root = true;
                    self.tag(&raw[1..raw.len() - 2], lend)?;
                    self.open.pop();
                    self.sink.end()?;
                }
                Event::End(_) => {
                    let name = raw[2..raw.len() - 1].trim_end_matches([' ', '\t', '\n', '\r']);
                    match self.open.pop() {
                        Some((opened, _)) if self.open.len() >= outer && opened == name => {
                            self.sink.end()?;
                        }
                        Some((opened, at)) if self.open.len() >= outer => {
                            let line = self.line_of(at);
                            return self.flaw(format!(
                                "Opening and ending tag mismatch: {opened} line {line} and {name}"
                            ));
                        }
                        _ => return self.flaw("chunk is not well balanced"),
                    }
                }
                Event::Text(_) if outside => self.between(raw, has_root)?,
                Event::CData(_) | Event::GeneralRef(_) if outside => {
                    return self.flaw(match has_root {
                        true => "Extra content at the end of the document",
                        false => "Start tag expected, '<' not found",
                    });
                }
                Event::Text(_) => {
                    self.characters(raw, "PCDATA")?;
                    if memchr::memmem::find(raw.as_bytes(), b"]]>").is_some() {
                        return self.flaw("Sequence ']]>' not allowed in content");
                    }
                    if S::BUILDS {
                        self.sink.text(with_plain_lines(lend(raw)))?;
                    }
                }
                Event::CData(_) => {
                    let Some(inside) = between(raw, "<![CDATA[", "]]>") else {
                        return self.flaw("CData section not finished");
                    };
                    self.characters(inside, "CData section")?;
                    if S::BUILDS {
                        self.sink.cdata(with_plain_lines(lend(inside)))?;
                    }
                }
                Event::GeneralRef(_) => self.reference(&raw[1..raw.len() - 1], lend)?,
                Event::Comment(_) => {
                    let Some(inside) = between(raw, "<!--", "-->") else {
                        return self.flaw("Comment not terminated");
                    };
                    self.characters(inside, "xmlParseComment:")?;
                    let doubled = memchr::memmem::find(inside.as_bytes(), b"--").is_some();
                    if doubled || inside.ends_with('-') {
                        return self.flaw("Double hyphen within comment");
                    }
                    if S::BUILDS {
                        self.sink.comment(with_plain_lines(lend(inside)))?;
                    }
                }
                Event::Decl(_) if is_document && start == 0 => self.declaration(text)?,
                Event::Decl(_) | Event::PI(_) => self.instruction(raw, lend)?,
                Event::DocType(_) => {
                    if !outside || has_root || has_type {
                        return self.flaw("StartTag: invalid element name");
                    }
                    has_type = true;
                    let Some(inside) = between(raw, "<!DOCTYPE", ">") else {
                        return self.flaw("StartTag: invalid element name");
                    };
                    self.characters(inside, "DOCTYPE")?;
                    match Dtd::parse(inside, check_for_interrupts)? {
                        Some(dtd) => self.dtd = dtd,
                        None => return self.flaw("DOCTYPE improperly terminated"),
                    }
                }
            }
        }
        if self.open.len() > outer
            && let Some((name, at)) = self.open.last()
        {
            let line = self.line_of(*at);
            return self.flaw(format!("Premature end of data in tag {name} line {line}"));
        }
        if is_document && !has_root {
            return self.flaw(match after_space(text).is_empty() {
                true => "Document is empty",
                false => "Start tag expected, '<' not found",
            });
        }
        Ok(())
    }

    /// Text outside of the element of a document.
    fn between(&self, raw: &str, has_root: bool) -> Result<(), XmlError> {
        if after_space(raw).is_empty() {
            return Ok(());
        }
        self.flaw(match has_root {
            true => "Extra content at the end of the document",
            false => "Start tag expected, '<' not found",
        })
    }

    /// What the library stops at: markup that does not end, for the most part.
    fn unfinished(&self, rest: &str, error: &quick_xml::Error) -> Result<(), XmlError> {
        use quick_xml::errors::{IllFormedError, SyntaxError};
        match error {
            quick_xml::Error::IllFormed(IllFormedError::UnclosedReference) => {
                let name = rest.strip_prefix('&').map(leading_name);
                self.flaw(match name {
                    Some("") => "xmlParseEntityRef: no name",
                    _ => "EntityRef: expecting ';'",
                })
            }
            quick_xml::Error::Syntax(
                SyntaxError::UnclosedTag
                | SyntaxError::UnclosedSingleQuotedAttributeValue
                | SyntaxError::UnclosedDoubleQuotedAttributeValue,
            ) => {
                let name = rest.strip_prefix('<').map_or("", leading_name);
                let line = self.line_of(self.place);
                self.flaw(match name {
                    "" => "StartTag: invalid element name".to_owned(),
                    name => format!("Couldn't find end of Start Tag {name} line {line}"),
                })
            }
            quick_xml::Error::Syntax(SyntaxError::UnclosedComment) => {
                self.flaw("Comment not terminated")
            }
            quick_xml::Error::Syntax(SyntaxError::UnclosedCData) => {
                self.flaw("CData section not finished")
            }
            quick_xml::Error::Syntax(SyntaxError::UnclosedPI | SyntaxError::UnclosedXmlDecl) => {
                let name = rest.strip_prefix("<?").map_or("", leading_name);
                self.flaw(format!("ParsePI: PI {name} never end ..."))
            }
            quick_xml::Error::Syntax(SyntaxError::UnclosedDoctype) => {
                self.flaw("DOCTYPE improperly terminated")
            }
            _ => self.flaw("StartTag: invalid element name"),
        }
    }

    /// The declaration at the beginning of a document.
    fn declaration(&self, text: &str) -> Result<(), XmlError> {
        let Some((found, _)) = Declaration::parse(text) else {
            return self.flaw("parsing XML declaration: '?>' expected");
        };
        let version = found.version.unwrap_or_default();
        let minor = version.strip_prefix("1.").unwrap_or("x");
        if !minor.bytes().all(|b| b.is_ascii_digit()) {
            return self.flaw(format!("Unsupported version '{version}'"));
        }
        let encoding = found.encoding.unwrap_or_else(|| "UTF-8".to_owned());
        let known = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        match encoding.starts_with(|c: char| c.is_ascii_alphabetic()) && encoding.bytes().all(known)
        {
            true => Ok(()),
            false => self.flaw("Invalid XML encoding name"),
        }
    }

    /// All characters of a part of the text are ones of XML.
    fn characters(&self, text: &str, what: &str) -> Result<(), XmlError> {
        let control = |b: &u8| *b < b' ' && !is_space(*b);
        for part in text.as_bytes().chunks(STRIDE_BYTES) {
            check_for_interrupts()?;
            if let Some(b) = part.iter().find(|b| control(b)) {
                return self.flaw(format!("{what} invalid Char value {b}"));
            }
        }
        for (bytes, number) in [(b"\xef\xbf\xbe", 65_534), (b"\xef\xbf\xbf", 65_535)] {
            if memchr::memmem::find(text.as_bytes(), bytes).is_some() {
                return self.flaw(format!("{what} invalid Char value {number}"));
            }
        }
        Ok(())
    }

    fn instruction<'t>(&mut self, raw: &'t str, lend: Lend<'t, 'a>) -> Result<(), XmlError> {
        let Some(inside) = between(raw, "<?", "?>") else {
            return self.flaw("xmlParsePI : no target name");
        };
        let target = leading_name(inside);
        let content = &inside[target.len()..];
        if target.is_empty() {
            return self.flaw("xmlParsePI : no target name");
        }
        if target == "xml" {
            return self.flaw("XML declaration allowed only at the start of the document");
        }
        if target.eq_ignore_ascii_case("xml") {
            return self.flaw("Invalid PI name");
        }
        if !content.is_empty() && after_space(content).len() == content.len() {
            return self.flaw(format!("ParsePI: PI {target} space expected"));
        }
        self.characters(content, "PI")?;
        match S::BUILDS {
            true => {
                let content = with_plain_lines(lend(after_space(content)));
                self.sink.instruction(lend(target), content)
            }
            false => Ok(()),
        }
    }

    /// A tag, without its brackets.
    fn tag<'t>(&mut self, inside: &'t str, lend: Lend<'t, 'a>) -> Result<(), XmlError> {
        let name = leading_name(inside);
        if name.is_empty() {
            return self.flaw("StartTag: invalid element name");
        }
        if self.open.len() >= DEPTH_MAX {
            return self.flaw(format!(
                "Excessive depth in document: {DEPTH_MAX} use XML_PARSE_HUGE option"
            ));
        }
        self.sink.start(lend(name))?;
        self.open.push((lend(name), self.place));
        let mut rest = &inside[name.len()..];
        let mut met: Vec<&str> = Vec::new();
        let mut set: HashSet<&str> = HashSet::new();
        loop {
            let behind = after_space(rest);
            if behind.is_empty() {
                break;
            }
            check_for_interrupts()?;
            let attribute = leading_name(behind);
            if attribute.is_empty() || behind.len() == rest.len() {
                return self.flaw("attributes construct error");
            }
            let value = after_space(&behind[attribute.len()..]);
            let Some(value) = value.strip_prefix('=') else {
                return self.flaw(format!(
                    "Specification mandates value for attribute {attribute}"
                ));
            };
            let value = after_space(value);
            let Some(quote) = value.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
                return self.flaw("AttValue: \" or ' expected");
            };
            let Some((value, behind)) = value[1..].split_once(quote) else {
                return self.flaw("AttValue: ' expected");
            };
            rest = behind;
            let is_new = match met.len() < FEW_ATTRIBUTES {
                true => !met.contains(&attribute),
                false => {
                    if set.is_empty() {
                        set.extend(met.iter().copied());
                    }
                    self.room.hold(set.len() * 64)?;
                    set.insert(attribute)
                }
            };
            if !is_new {
                return self.flaw(format!("Attribute {attribute} redefined"));
            }
            if met.len() < FEW_ATTRIBUTES {
                met.push(attribute);
            }
            let value = self.attribute_value(value, lend)?;
            if S::BUILDS {
                self.sink.attribute(lend(attribute), value)?;
            }
        }
        match self.sink.started()? {
            Some(wrong) => self.flaw(wrong),
            None => Ok(()),
        }
    }

    /// The value of an attribute; an empty one if nobody wants it.
    fn attribute_value<'t>(
        &mut self,
        raw: &'t str,
        lend: Lend<'t, 'a>,
    ) -> Result<Cow<'a, str>, XmlError> {
        if raw.contains('<') {
            return self.flaw("Unescaped '<' not allowed in attributes values");
        }
        self.characters(raw, "AttValue:")?;
        if is_plain_value(raw) {
            return Ok(lend(raw));
        }
        let mut value = String::new();
        self.expanded_value(raw, &mut value)?;
        Ok(Cow::Owned(value))
    }

    fn expanded_value(&mut self, raw: &str, value: &mut String) -> Result<(), XmlError> {
        let mut rest = raw;
        loop {
            let (plain, reference) = match rest.split_once('&') {
                Some((plain, reference)) => (plain, Some(reference)),
                None => (rest, None),
            };
            if S::BUILDS {
                let plain = plain.replace("\r\n", " ");
                value.push_str(&plain.replace(['\r', '\n', '\t'], " "));
            }
            let Some(reference) = reference else {
                return Ok(());
            };
            check_for_interrupts()?;
            let Some((name, behind)) = reference.split_once(';') else {
                return self.flaw("EntityRef: expecting ';'");
            };
            rest = behind;
            if let Some(c) = self.character_of(name)? {
                value.push(c);
                continue;
            }
            match self.entity(name)? {
                Some(Entity::Internal(text)) => {
                    if text.contains('<') {
                        return self.flaw(format!(
                            "'<' in entity '{name}' is not allowed in attributes values"
                        ));
                    }
                    self.expand(name, &text)?;
                    self.expanded_value(&text, value)?;
                    self.entity_depth -= 1;
                }
                Some(Entity::External) => {
                    return self.flaw(format!("Attribute references external entity '{name}'"));
                }
                _ => {}
            }
        }
    }

    /// What a reference stands for that is one character by itself.
    fn character_of(&self, name: &str) -> Result<Option<char>, XmlError> {
        if name.starts_with('#') {
            return match character(name) {
                Some(c) => Ok(Some(c)),
                None => self.flaw("xmlParseCharRef: invalid xmlChar value"),
            };
        }
        Ok(match name {
            "lt" => Some('<'),
            "gt" => Some('>'),
            "amp" => Some('&'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => None,
        })
    }

    /// The entity of a name; none if it may be declared where nobody reads.
    fn entity(&self, name: &str) -> Result<Option<Entity>, XmlError> {
        if name.is_empty() || leading_name(name) != name {
            return self.flaw(match leading_name(name) {
                "" => "xmlParseEntityRef: no name",
                _ => "EntityRef: expecting ';'",
            });
        }
        match self.dtd.entities.get(name) {
            Some(Entity::Unparsed) => {
                self.flaw(format!("Entity reference to unparsed entity {name}"))
            }
            Some(entity) => Ok(Some(entity.clone())),
            None if self.dtd.is_partial => Ok(None),
            None => self.flaw(format!("Entity '{name}' not defined")),
        }
    }

    /// Counts what an entity comes to, before it is put in its place.
    fn expand(&mut self, name: &str, text: &str) -> Result<(), XmlError> {
        self.entity_depth += 1;
        self.expanded_bytes += text.len() + name.len();
        if self.entity_depth > ENTITY_DEPTH_MAX
            || self.expanded_bytes > EXPANSION_BYTES.max(EXPANSION_FACTOR * self.text.len())
        {
            return self.flaw("Detected an entity reference loop");
        }
        Ok(())
    }

    fn reference<'t>(&mut self, name: &'t str, _: Lend<'t, 'a>) -> Result<(), XmlError> {
        if let Some(c) = self.character_of(name)? {
            return match S::BUILDS {
                true => self.sink.text(Cow::Owned(c.to_string())),
                false => Ok(()),
            };
        }
        if let Some(Entity::Internal(text)) = self.entity(name)? {
            self.expand(name, &text)?;
            self.content(&text, |part| Cow::Owned(part.to_owned()), None)?;
            self.entity_depth -= 1;
        }
        Ok(())
    }
}

/// A place that the library tells.
fn position(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

/// Whether a text has a document type where content may have one: behind white space, comments and instructions.
pub(crate) fn has_document_type(text: &str) -> SqlResult<bool> {
    let mut rest = text;
    loop {
        check_for_interrupts()?;
        rest = after_space(rest);
        let behind = if let Some(comment) = rest.strip_prefix("<!--") {
            comment.split_once("-->")
        } else if let Some(instruction) = rest.strip_prefix("<?") {
            instruction.split_once("?>")
        } else {
            return Ok(rest.starts_with("<!DOCTYPE"));
        };
        match behind {
            Some((_, behind)) => rest = behind,
            None => return Ok(false),
        }
    }
}
