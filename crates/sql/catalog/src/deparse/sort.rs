//! Keys of ORDER BY as text.

use logstead_sql_parse::lowered as ast;
use logstead_sql_parse::{sort_operator, sorts_down};

/// How a key of ORDER BY, which was bound before, is sorted, as it is shown behind it.
pub(super) fn sort_shown(options: &ast::OrderByOptions) -> String {
    let nulls = |first| if first { " NULLS FIRST" } else { " NULLS LAST" };
    if let Some(ast::OrderBySort::Using(operator)) = &options.sort
        && let Some(operator) = sort_operator(operator)
        && !matches!(operator, "<" | ">")
    {
        let first = options.nulls_first.unwrap_or(operator.contains('>'));
        return format!(" USING {operator}{}", nulls(first));
    }
    let desc = sorts_down(options);
    let direction = if desc { " DESC" } else { "" };
    match options.nulls_first {
        Some(first) if first != desc => format!("{direction}{}", nulls(first)),
        _ => direction.to_owned(),
    }
}
