//! What follows from conditions that OR joins.
//!
//! What all arms say is said beside the OR: `(a.x = b.x AND p) OR (a.x = b.x AND q)` joins by `a.x = b.x`. And if every
//! arm says something of one item alone, so does the OR: `(a.x = 1 AND b.y = 2) OR (a.x = 3 AND b.y = 4)` narrows a to
//! `a.x = 1 OR a.x = 3`. PostgreSQL does both.

use crate::query::conjuncts;
use crate::query::expr::Expr;
use crate::walk;
use logstead_sql_func as func;
use logstead_sql_types::error::{Result, SqlError};

/// Conditions compared between two looks at whether the statement is to end.
const COMPARED: usize = 1024;

/// Takes out of every OR among conditions what all its arms say. `interrupted` fails when the statement is to end.
pub(crate) fn factor(
    conditions: &mut Vec<Expr>,
    interrupted: &dyn Fn() -> Result<()>,
) -> Result<()> {
    if !conditions.iter().any(|c| matches!(c, Expr::Or(_))) {
        return Ok(());
    }
    let mut done = Vec::with_capacity(conditions.len());
    for condition in conditions.drain(..) {
        match condition {
            Expr::Or(arms) => factored(arms, &mut done, interrupted)?,
            other => done.push(other),
        }
    }
    *conditions = done;
    Ok(())
}

fn factored(
    arms: Vec<Expr>,
    out: &mut Vec<Expr>,
    interrupted: &dyn Fn() -> Result<()>,
) -> Result<()> {
    let mut split: Vec<Vec<Expr>> = Vec::with_capacity(arms.len());
    for arm in arms {
        let mut parts = Vec::new();
        conjuncts(arm, &mut parts);
        split.push(parts);
    }
    let Some((first, others)) = split.split_first() else {
        return Ok(());
    };
    let mut compared = 0;
    let mut among = |parts: &[Expr], part: &Expr| {
        compared += parts.len();
        if compared >= COMPARED {
            compared = 0;
            interrupted()?;
        }
        Ok::<_, SqlError>(parts.iter().any(|p| walk::same(p, part)))
    };
    let mut common: Vec<Expr> = Vec::new();
    'parts: for part in first {
        for arm in others {
            if !among(arm, part)? {
                continue 'parts;
            }
        }
        common.push(part.clone());
    }
    let mut rest: Vec<Expr> = Vec::with_capacity(split.len());
    let mut open = true;
    for arm in split {
        let mut left = Vec::new();
        for part in arm {
            if !among(&common, &part)? {
                left.push(part);
            }
        }
        match crate::query::expr::and(left) {
            Some(left) => rest.push(left),
            // This arm says nothing more: the others do not matter.
            None => open = false,
        }
    }
    out.extend(common);
    if open {
        out.push(match rest.len() {
            1 => rest.remove(0),
            _ => Expr::Or(rest),
        });
    }
    Ok(())
}

/// What an OR says of the rows for which `own` tells whether a condition is about them alone.
pub(crate) fn restriction(condition: &Expr, own: impl Fn(&Expr) -> bool) -> Option<Expr> {
    let Expr::Or(arms) = condition else {
        return None;
    };
    let mut narrowed = Vec::with_capacity(arms.len());
    for arm in arms {
        let mut parts = Vec::new();
        conjuncts(arm.clone(), &mut parts);
        parts.retain(|part| own(part) && is_harmless(part));
        narrowed.push(crate::query::expr::and(parts)?);
    }
    Some(Expr::Or(narrowed))
}

/// Whether judging a condition where the statement does not can do no harm: it is cheap and cannot fail.
fn is_harmless(expr: &Expr) -> bool {
    !walk::any(expr, &|e| match e {
        Expr::Call { function, .. } => {
            func::operator_class(function.oid).is_none()
                && !matches!(
                    function.name,
                    "textlike" | "textnlike" | "bpcharlike" | "bpcharnlike"
                )
        }
        Expr::CastViaText(..)
        | Expr::CoerceTypmod { .. }
        | Expr::Subquery(_)
        | Expr::SubLink(_)
        | Expr::Subscript { .. }
        | Expr::Case { .. } => true,
        _ => false,
    })
}
