//! Which characters XML 1.0 allows, and where.

/// May it stand in a document?
pub fn is_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// May a name begin with it?
pub fn is_name_start(c: char) -> bool {
    matches!(c,
        ':' | '_' | 'A'..='Z' | 'a'..='z'
        | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}'
        | '\u{200c}' | '\u{200d}' | '\u{2070}'..='\u{218f}' | '\u{2c00}'..='\u{2fef}' | '\u{3001}'..='\u{d7ff}'
        | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}' | '\u{10000}'..='\u{effff}')
}

/// May it stand in a name?
pub fn is_name_char(c: char) -> bool {
    is_name_start(c)
        || matches!(c, '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}

/// Is it white space?
pub(super) fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r')
}

/// The name that a text begins with, maybe an empty one.
pub(super) fn leading_name(text: &str) -> &str {
    let mut chars = text.char_indices();
    match chars.next() {
        Some((_, c)) if is_name_start(c) => {}
        _ => return "",
    }
    let end = chars
        .find(|(_, c)| !is_name_char(*c))
        .map_or(text.len(), |(at, _)| at);
    &text[..end]
}

/// A text behind its leading white space.
pub(super) fn after_space(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\r'])
}
