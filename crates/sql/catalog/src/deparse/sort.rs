//! Keys of ORDER BY as text.

use logstead_sql_parse::ast::{self, SortByDir};
use logstead_sql_parse::{nulls_first, sort_direction, sort_operator};

/// How a key of ORDER BY, which was bound before, is sorted, as it is shown behind it.
pub(super) fn sort_shown(key: &ast::SortBy) -> String {
    let nulls = |first| if first { " NULLS FIRST" } else { " NULLS LAST" };
    let said = nulls_first(key.nulls);
    if let SortByDir::Using(operator) = &key.dir
        && let Some(operator) = sort_operator(operator)
        && !matches!(operator, "<" | ">")
    {
        let first = said.unwrap_or(operator.contains('>'));
        return format!(" USING {operator}{}", nulls(first));
    }
    let desc = sort_direction(&key.dir, key.nulls).is_ok_and(|(desc, _)| desc);
    let direction = if desc { " DESC" } else { "" };
    match said {
        Some(first) if first != desc => format!("{direction}{}", nulls(first)),
        _ => direction.to_owned(),
    }
}
