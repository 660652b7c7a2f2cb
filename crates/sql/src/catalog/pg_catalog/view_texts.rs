//! The queries that PostgreSQL's system views are made of, as `pg_get_viewdef` prints them there. Programs read them (`\sv`, `pg_views`); what the views show here is
//! made by code of its own.

/// As `pg_get_viewdef(oid)` gives them; each behind a line of its name.
const PLAIN: &str = include_str!("system_views.txt");
/// As `pg_get_viewdef(oid, true)` does.
const PRETTY: &str = include_str!("system_views_pretty.txt");

/// The query of a system view; `None` for what PostgreSQL does not have.
pub(crate) fn text_of(schema: &str, name: &str, pretty: bool) -> Option<&'static str> {
    let all = if pretty { PRETTY } else { PLAIN };
    let mut views = all.split("== ");
    views.find_map(|view| {
        let (title, text) = view.split_once('\n')?;
        let (of, called) = title.split_once('.')?;
        (of == schema && called == name).then(|| text.trim_end_matches('\n'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_two_forms_and_ends_as_a_query_does() {
        let names = |all: &'static str| {
            let titles = all
                .split("== ")
                .skip(1)
                .filter_map(|view| view.split_once('\n'));
            titles.map(|(title, _)| title).collect::<Vec<_>>()
        };
        assert_eq!(names(PLAIN), names(PRETTY));
        for title in names(PLAIN) {
            let (schema, name) = title.split_once('.').unwrap();
            for pretty in [false, true] {
                let text = text_of(schema, name, pretty).unwrap();
                assert!(text.starts_with(' ') && text.ends_with(';'), "{title}");
            }
        }
        assert!(text_of("pg_catalog", "pg_class", false).is_none());
    }
}
