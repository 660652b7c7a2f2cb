//! Values of options: `WITH (name = value)`.

/// What a boolean option says, as PostgreSQL reads them: words may be cut short.
pub fn boolean(value: &str) -> Option<bool> {
    let value = value.to_ascii_lowercase();
    let short = |word: &str| !value.is_empty() && word.starts_with(&value);
    match value.as_str() {
        "1" | "on" => Some(true),
        "0" | "of" | "off" => Some(false),
        _ if short("true") || short("yes") => Some(true),
        _ if short("false") || short("no") => Some(false),
        _ => None,
    }
}
