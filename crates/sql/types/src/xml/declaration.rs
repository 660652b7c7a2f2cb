//! The XML declaration as PostgreSQL's `parse_xml_decl` and `print_xml_decl` have it.

use super::names::{after_space, is_name_char};

/// What a value's declaration says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declaration {
    /// The version that it names.
    pub version: Option<String>,
    /// The encoding that it names.
    pub encoding: Option<String>,
    /// Whether it says that the document stands alone.
    pub standalone: Option<bool>,
}

/// The version of a document that does not say any.
const DEFAULT_VERSION: &str = "1.0";

/// A value in quotes behind `=`, and the text behind it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let text = after_space(after_space(text).strip_prefix('=')?);
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    text[1..].split_once(quote)
}

impl Declaration {
    /// The declaration at the beginning of a text, and its length: 0 if there is none. None if it is wrong.
    pub fn parse(text: &str) -> Option<(Declaration, usize)> {
        let mut found = Declaration::default();
        let Some(rest) = text.strip_prefix("<?xml") else {
            return Some((found, 0));
        };
        // A processing instruction of another name, `<?xml-stylesheet ...?>`.
        if rest.starts_with(is_name_char) {
            return Some((found, 0));
        }
        let behind = after_space(rest);
        if behind.len() == rest.len() {
            return None;
        }
        let (version, mut rest) = quoted(behind.strip_prefix("version")?)?;
        found.version = Some(version.to_owned());
        let spaced = |rest: &str| after_space(rest).len() < rest.len();
        if let Some(value) = after_space(rest).strip_prefix("encoding") {
            if !spaced(rest) {
                return None;
            }
            let (encoding, behind) = quoted(value)?;
            found.encoding = Some(encoding.to_owned());
            rest = behind;
        }
        if let Some(value) = after_space(rest).strip_prefix("standalone") {
            if !spaced(rest) {
                return None;
            }
            let (standalone, behind) = quoted(value)?;
            found.standalone = Some(match standalone {
                "yes" => true,
                "no" => false,
                _ => return None,
            });
            rest = behind;
        }
        let rest = after_space(rest).strip_prefix("?>")?;
        let len = text.len() - rest.len();
        text.is_char_boundary(len).then_some(())?;
        text[..len].is_ascii().then_some((found, len))
    }

    /// Writes it where it says more than every reader assumes; whether it does.
    pub fn print(&self, out: &mut String) -> bool {
        let version = self.version.as_deref();
        if version.is_none_or(|version| version == DEFAULT_VERSION) && self.standalone.is_none() {
            return false;
        }
        out.push_str("<?xml version=\"");
        out.push_str(version.unwrap_or(DEFAULT_VERSION));
        out.push('"');
        match self.standalone {
            Some(true) => out.push_str(" standalone=\"yes\""),
            Some(false) => out.push_str(" standalone=\"no\""),
            None => {}
        }
        out.push_str("?>");
        true
    }

    /// What another reads of it that was printed.
    pub fn printed(mut self) -> Declaration {
        self.encoding = None;
        if self.print(&mut String::new()) {
            self.version
                .get_or_insert_with(|| DEFAULT_VERSION.to_owned());
            return self;
        }
        Declaration::default()
    }
}
