//! Names that PostgreSQL invents: for constraints, indexes and sequences without one.

use logstead_sql_catalog::text::NAME_LENGTH_MAX;
use logstead_sql_catalog::{Catalog, Relation};
use logstead_sql_parse::ast::Name;
use logstead_sql_types::SchemaId;

/// Names of a statement.
pub(super) fn strings(names: &[Name]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// `first_second_label`, its parts cut evenly so that it fits into 63 bytes.
pub(super) fn object_name(first: &str, second: Option<&str>, label: &str) -> String {
    let overhead = second.map_or(0, |_| 1) + if label.is_empty() { 0 } else { label.len() + 1 };
    let room = NAME_LENGTH_MAX.saturating_sub(overhead);
    let (mut a, mut b) = (first.len(), second.map_or(0, str::len));
    while a + b > room {
        if a > b { a -= 1 } else { b -= 1 }
    }
    let mut name = cut(first, a).to_owned();
    if let Some(second) = second {
        name.push('_');
        name.push_str(cut(second, b));
    }
    if !label.is_empty() {
        name.push('_');
        name.push_str(label);
    }
    name
}

fn cut(text: &str, mut length: usize) -> &str {
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    text.get(..length).unwrap_or(text)
}

/// An invented name that is free: numbers follow the label.
pub(super) fn free_name(
    first: &str,
    second: Option<&str>,
    label: &str,
    mut taken: impl FnMut(&str) -> bool,
) -> String {
    let mut name = object_name(first, second, label);
    let mut pass = 0_u32;
    while taken(&name) {
        pass += 1;
        name = object_name(first, second, &format!("{label}{pass}"));
    }
    name
}

/// True if a relation or index of the schema, or a constraint of the table, has the name.
pub(super) fn is_taken(
    catalog: &Catalog,
    schema: SchemaId,
    table: Option<&Relation>,
    name: &str,
) -> bool {
    catalog.names.contains_key(&(schema, name.to_owned()))
        || table.is_some_and(|t| t.constraints.iter().any(|c| c.name == name))
}

/// The columns' part of an index's name: joined, up to the length of a name.
pub(super) fn columns_part<'a>(columns: impl IntoIterator<Item = &'a str>) -> String {
    let mut part = String::new();
    for column in columns {
        if !part.is_empty() {
            part.push('_');
        }
        part.push_str(column);
        if part.len() >= NAME_LENGTH_MAX {
            break;
        }
    }
    cut(&part, part.len().min(NAME_LENGTH_MAX)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_bytes_evenly() {
        assert_eq!(object_name("t", Some("a"), "key"), "t_a_key");
        assert_eq!(object_name("t", None, "pkey"), "t_pkey");
        let name = object_name(&"x".repeat(60), Some(&"y".repeat(60)), "seq");
        assert_eq!(name, format!("{}_{}_seq", "x".repeat(29), "y".repeat(29)));
        assert_eq!(
            free_name("t", None, "check", |n| n == "t_check"),
            "t_check1"
        );
        assert_eq!(columns_part(["a", "b"]), "a_b");
    }
}
