//! The internal subset of a document type: the entities that it declares. Nothing else of it has a meaning here, and
//! nothing outside is read.

use super::names::{after_space, leading_name};
use std::collections::HashMap;

/// What an entity stands for.
#[derive(Clone, Debug)]
pub(super) enum Entity {
    /// A text, markup in it included.
    Internal(String),
    /// Something elsewhere, which is not read.
    External,
    /// Something that is no XML.
    Unparsed,
}

/// What a document type declares.
#[derive(Debug, Default)]
pub(super) struct Dtd {
    pub(super) entities: HashMap<String, Entity>,
    /// Some of it is elsewhere, so an entity that is not declared here may be there.
    pub(super) is_partial: bool,
}

/// A quoted literal, and what follows it.
fn literal(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    text[1..].split_once(quote)
}

/// White space that has to be there.
fn space(text: &str) -> Option<&str> {
    let rest = after_space(text);
    (rest.len() < text.len()).then_some(rest)
}

fn name(text: &str) -> Option<(&str, &str)> {
    let name = leading_name(text);
    (!name.is_empty()).then(|| (name, &text[name.len()..]))
}

/// SYSTEM "..." or PUBLIC "..." "...": what follows it, none if it is neither.
fn external(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix("SYSTEM") {
        return literal(space(rest)?).map(|(_, rest)| rest);
    }
    let (_, rest) = literal(space(text.strip_prefix("PUBLIC")?)?)?;
    literal(space(rest)?).map(|(_, rest)| rest)
}

/// The end of a declaration: its first `>` outside of quotes.
fn end_of_declaration(text: &str) -> Option<&str> {
    let mut quote = None;
    for (at, b) in text.bytes().enumerate() {
        match quote {
            Some(open) if b == open => quote = None,
            Some(_) => {}
            None if b == b'>' => return Some(&text[at + 1..]),
            None if matches!(b, b'"' | b'\'') => quote = Some(b),
            None => {}
        }
    }
    None
}

/// The number of a reference to a character, `#65` or `#x41`.
pub(super) fn character(reference: &str) -> Option<char> {
    let digits = reference.strip_prefix('#')?;
    let (digits, radix) = match digits.strip_prefix('x') {
        Some(digits) => (digits, 16),
        None => (digits, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    char::from_u32(u32::from_str_radix(digits, radix).ok()?).filter(|c| super::is_char(*c))
}

/// The characters that references in an entity's literal stand for are part of it; references to entities stay.
fn with_characters(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("&#") {
        out.push_str(before);
        let (digits, behind) = behind.split_once(';')?;
        out.push(character(&format!("#{digits}"))?);
        rest = behind;
    }
    out.push_str(rest);
    Some(out)
}

impl Dtd {
    /// Reads what stands behind `<!DOCTYPE`, up to its `>`; none if it is wrong. `look` is asked between declarations.
    pub(super) fn parse<E>(text: &str, look: impl Fn() -> Result<(), E>) -> Result<Option<Dtd>, E> {
        let mut dtd = Dtd::default();
        let Some(rest) = dtd.head(text) else {
            return Ok(None);
        };
        let Some(mut rest) = rest.strip_prefix('[') else {
            return Ok(rest.is_empty().then_some(dtd));
        };
        loop {
            look()?;
            rest = after_space(rest);
            if let Some(behind) = rest.strip_prefix(']') {
                return Ok(after_space(behind).is_empty().then_some(dtd));
            }
            match dtd.declaration(rest) {
                Some(behind) => rest = behind,
                None => return Ok(None),
            }
        }
    }

    /// The name and the place of the external subset; what follows.
    fn head<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let (_, rest) = name(space(text)?)?;
        let behind = after_space(rest);
        if behind.starts_with("SYSTEM") || behind.starts_with("PUBLIC") {
            space(rest)?;
            self.is_partial = true;
            return external(behind).map(after_space);
        }
        Some(behind)
    }

    fn declaration<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        if let Some(rest) = text.strip_prefix("<!--") {
            let (comment, rest) = rest.split_once("--")?;
            comment.chars().all(super::is_char).then_some(())?;
            return rest.strip_prefix('>');
        }
        if let Some(rest) = text.strip_prefix("<?") {
            let (target, _) = name(rest)?;
            (!target.eq_ignore_ascii_case("xml")).then_some(())?;
            return rest.split_once("?>").map(|(_, rest)| rest);
        }
        if let Some(rest) = text.strip_prefix('%') {
            let (_, rest) = name(rest)?;
            // What it stands for is not put in its place: what that declares is not known.
            self.is_partial = true;
            return rest.strip_prefix(';');
        }
        if let Some(rest) = text.strip_prefix("<!ENTITY") {
            return self.entity(space(rest)?);
        }
        for kind in ["<!ELEMENT", "<!ATTLIST", "<!NOTATION"] {
            if let Some(rest) = text.strip_prefix(kind) {
                let (_, rest) = name(space(rest)?)?;
                return end_of_declaration(rest);
            }
        }
        None
    }

    fn entity<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let (is_parameter, text) = match text.strip_prefix('%') {
            Some(rest) => (true, space(rest)?),
            None => (false, text),
        };
        let (named, rest) = name(text)?;
        let rest = space(rest)?;
        let (entity, rest) = match literal(rest) {
            Some((value, rest)) => (Entity::Internal(with_characters(value)?), rest),
            None => {
                let rest = external(rest)?;
                match space(rest).and_then(|rest| rest.strip_prefix("NDATA")) {
                    Some(rest) if !is_parameter => {
                        let (_, rest) = name(space(rest)?)?;
                        (Entity::Unparsed, rest)
                    }
                    _ => (Entity::External, rest),
                }
            }
        };
        if !is_parameter {
            // The first declaration of a name counts.
            self.entities.entry(named.to_owned()).or_insert(entity);
        }
        after_space(rest).strip_prefix('>')
    }
}
