//! What DROP says of objects that depend on others: that they are in the way, or that CASCADE takes them along.
//!
//! Does not: find them (`find_dependents`) or drop them (`drop_dependents`).

use crate::DdlContext;
use logstead_sql_types::error::SqlError;
use logstead_types::SqlState;

pub(crate) const CASCADE_HINT: &str = "Use DROP ... CASCADE to drop the dependent objects too.";

/// 2BP01.
pub(crate) fn still_used(what: &str, detail: &str) -> SqlError {
    SqlError::new(
        SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
        format!("cannot drop {what} because other objects depend on it"),
    )
    .detail(detail)
    .hint(CASCADE_HINT)
}

/// The notice of what CASCADE takes along.
pub(crate) fn cascade_notice(cx: &mut DdlContext<'_>, labels: &[String]) {
    match labels {
        [] => {}
        [one] => cx.notice(
            SqlState::SUCCESSFUL_COMPLETION,
            format!("drop cascades to {one}"),
        ),
        many => {
            let message = format!("drop cascades to {} other objects", many.len());
            cx.notice(SqlState::SUCCESSFUL_COMPLETION, message);
            let lines: Vec<_> = many
                .iter()
                .map(|l| format!("drop cascades to {l}"))
                .collect();
            if let Some(notice) = cx.notices.last_mut() {
                notice.detail = Some(lines.join("\n"));
            }
        }
    }
}
