//! Upper and lower case, one character to one, as PostgreSQL's default collation maps them.

/// Simple case mapping: one character to one.
pub fn case(c: char, upper: bool) -> char {
    let single = |mut i: &mut dyn Iterator<Item = char>| -> Option<char> {
        let first = (&mut i).next()?;
        i.next().is_none().then_some(first)
    };
    if upper {
        single(&mut c.to_uppercase())
    } else {
        single(&mut c.to_lowercase())
    }
    .unwrap_or(c)
}

/// Lower case of a text.
pub fn lower_text(t: &str) -> String {
    match t.is_ascii() {
        true => t.to_ascii_lowercase(),
        false => t.chars().map(|c| case(c, false)).collect(),
    }
}
