//! Golden files: each case is a line `-- statement` and the text that follows up to an empty line.

use super::world::{error, plan};

fn check(golden: &str, actual: impl Fn(&str) -> String) {
    let mut wrong = String::new();
    for case in golden.split("\n\n").filter(|c| !c.trim().is_empty()) {
        let case = case.trim_matches('\n');
        let (sql, expected) = case.split_once('\n').unwrap_or((case, ""));
        let sql = sql.trim_start_matches("-- ");
        let found = actual(sql);
        if found != expected {
            wrong.push_str(&format!("-- {sql}\n{found}\n\n"));
        }
    }
    assert!(
        wrong.is_empty(),
        "these differ from the golden file; now:\n{wrong}"
    );
}

#[test]
fn plans() {
    check(include_str!("plans.golden"), plan);
}

/// Checked against PostgreSQL 15: code, position, message | DETAIL | HINT.
#[test]
fn errors() {
    check(include_str!("errors.golden"), error);
}
