//! What a statement asks of rows that are guarded: by row security, or by a view that is a security barrier.
//!
//! The order lives here. A [`SecurityQuals`] holds the guard and the statement's own condition together; the condition
//! cannot be had without the guard before it, and what evaluates them (`exec::security_quals::passes`, and the scans,
//! condition by condition) goes on to nothing behind a part that a row does not pass. So no function and no error of
//! the statement's meets a row that its role may not see, whichever operator asks: the scan, the recheck of a newer
//! version of a row that is locked, updated, deleted or merged, and ON CONFLICT DO UPDATE of the row in the way.

use super::{Check, Layout};
use crate::query::expr::Expr;
use logstead_sql_catalog::Relation;
use std::sync::Arc;

/// A condition behind its guard.
#[derive(Clone, Default)]
pub struct SecurityQuals {
    /// What fails for a row that it refuses.
    row_security: Option<Box<RowSecurityChecks>>,
    /// What hides rows, then what the statement asks: each only of rows for which all before it hold.
    condition: Option<Expr>,
}

/// What row security asks of a row that is to be changed and was not found by a scan.
#[derive(Clone)]
pub struct RowSecurityChecks {
    pub table: Arc<Relation>,
    pub checks: Vec<Check>,
}

impl SecurityQuals {
    /// Conditions of a statement behind those of a guard that hides rows.
    pub(crate) fn hiding(guard: Vec<Expr>, own: impl IntoIterator<Item = Expr>) -> SecurityQuals {
        let mut all = guard;
        all.extend(own);
        SecurityQuals {
            row_security: None,
            condition: crate::query::expr::and(all),
        }
    }

    /// The same behind a guard that fails for the rows of `table` that it refuses.
    pub fn behind(self, table: &Arc<Relation>, checks: Vec<Check>) -> SecurityQuals {
        let row_security = (!checks.is_empty()).then(|| {
            Box::new(RowSecurityChecks {
                table: Arc::clone(table),
                checks,
            })
        });
        SecurityQuals {
            row_security,
            ..self
        }
    }

    /// The same over a row of that layout.
    pub fn over(self, layout: &Layout) -> SecurityQuals {
        SecurityQuals {
            condition: self.condition.map(|condition| layout.resolve(condition)),
            ..self
        }
    }

    /// Does it let every row through?
    pub fn is_empty(&self) -> bool {
        self.row_security.is_none() && self.condition.is_none()
    }

    /// The guard that fails for rows that it refuses.
    pub fn row_security(&self) -> Option<&RowSecurityChecks> {
        self.row_security.as_deref()
    }

    /// All that hides rows, as one condition: of several an AND, to be asked in this order.
    pub fn condition(&self) -> Option<&Expr> {
        self.condition.as_ref()
    }

    /// As [`SecurityQuals::condition`], to change what is in it.
    pub(crate) fn condition_mut(&mut self) -> Option<&mut Expr> {
        self.condition.as_mut()
    }

    /// Its parts, in the order in which they are asked.
    pub fn conjuncts(&self) -> &[Expr] {
        match &self.condition {
            None => &[],
            Some(Expr::And(all)) => all,
            Some(one) => std::slice::from_ref(one),
        }
    }

    /// All its expressions.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let checks = self
            .row_security
            .iter()
            .flat_map(|row_security| &row_security.checks);
        checks.map(|check| &check.expr).chain(&self.condition)
    }
}

impl From<Expr> for SecurityQuals {
    /// A condition of rows that nothing guards.
    fn from(condition: Expr) -> SecurityQuals {
        SecurityQuals {
            row_security: None,
            condition: Some(condition),
        }
    }
}
