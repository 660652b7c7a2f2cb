//! Columns that every table has without declaring them: what is known of a row besides its values.
//!
//! A scan gives the row's number and which version of it was read ([`crate::Scan::row_id`]); these columns are
//! computed from the two. The
//! version is told by its writer's transaction id, where somebody has asked for that, and by its writer's CSN
//! otherwise, so `xmin` is another with
//! each change of the row, and stays the same until then. `ctid` is the row's number, which stays when the row is
//! changed; PostgreSQL's is another then.
//! A transaction that is only ending or locking the row is not told: `xmax` is 0 but for rows that the statement itself
//! has written over, which
//! RETURNING shows.

use super::assignment_target::AssignmentTarget;
use super::scope::{NsColumnSource, ambiguous};
use super::{Binder, COLUMN_BASE, Clause, RelSource};
use crate::query::expr::Expr;
use logstead_sql_catalog::Relation;
use logstead_sql_func::{Function, FunctionImpl, ServerFunction, Volatility, function};
use logstead_sql_parse::ast;
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, oid, tid};
use logstead_types::SqlState;

const TABLEOID: &str = "tableoid";
const CTID: &str = "ctid";
const XMIN: &str = "xmin";
const XMAX: &str = "xmax";
/// Columns every stored table has.
pub(super) const SYSTEM_COLUMNS: [&str; 6] = [TABLEOID, CTID, XMIN, "cmin", XMAX, "cmax"];

/// The number of a row as `ctid`.
static ROW_CTID: Function = function(
    0,
    CTID,
    &[oid::INT8],
    None,
    oid::TID,
    true,
    Volatility::Immutable,
    FunctionImpl::Pure(|args| {
        Ok(match args {
            [Datum::Int8(rid)] => tid::of_rid(*rid),
            _ => Datum::Null,
        })
    }),
);

/// Which transaction has written a version, by its token.
static ROW_XMIN: Function = of_version(
    XMIN,
    oid::XID,
    FunctionImpl::Server(ServerFunction::VersionXmin),
);

/// Which transaction has written over it, of a version that the statement has.
static ROW_XMAX: Function = of_version(
    XMAX,
    oid::XID,
    FunctionImpl::Server(ServerFunction::VersionXmax),
);

/// Which command of the running transaction has written a version; 0 of others.
static ROW_CMIN: Function = of_version(
    "cmin",
    oid::CID,
    FunctionImpl::Server(ServerFunction::VersionCmin),
);

const fn of_version(name: &'static str, result: TypeId, body: FunctionImpl) -> Function {
    function(
        0,
        name,
        &[oid::INT8],
        None,
        result,
        true,
        Volatility::Stable,
        body,
    )
}

impl Binder<'_> {
    /// What SET assigns to.
    pub(super) fn set_target<'t>(
        &self,
        target: &'t ast::ResTarget,
        relation: &Relation,
    ) -> Result<AssignmentTarget<'t>> {
        let column = target.column();
        if SYSTEM_COLUMNS.contains(&column) && relation.view().is_none() {
            let message = format!("cannot assign to system column \"{column}\"");
            let state = SqlState::FEATURE_NOT_SUPPORTED;
            return Err(SqlError::new(state, message).at(self.at(target.location)));
        }
        self.part_target(target, relation)
    }

    /// A system column of the FROM item, or of the only table in sight.
    pub(super) fn system_column(
        &mut self,
        item: Option<(usize, usize)>,
        name: &str,
        at: Option<usize>,
    ) -> Result<Option<Expr>> {
        if !SYSTEM_COLUMNS.contains(&name) {
            return Ok(None);
        }
        let (level, index) = match item {
            Some(found) => found,
            None => {
                let level = self
                    .frames
                    .iter()
                    .rposition(|f| f.ns.iter().any(|i| i.columns_visible && i.table.is_some()));
                let Some(level) = level else {
                    return Ok(None);
                };
                let items = self.frames[level].ns.iter().enumerate();
                let mut tables = items.filter(|(_, i)| i.rel_visible && i.table.is_some());
                match (tables.next(), tables.next()) {
                    (Some((index, _)), None) => (level, index),
                    (None, _) => return Ok(None),
                    (Some(_), Some(_)) => return Err(ambiguous(name)),
                }
            }
        };
        let item = &self.frames[level].ns[index];
        let Some(table) = item.table else {
            return Ok(None);
        };
        let source = item.rel.map(|rel| &self.range.rels[rel].source);
        if matches!(source, Some(RelSource::Virtual(_, view)) if view.is_view()) {
            return Ok(None);
        }
        let item_rel = item.rel;
        let own = item.columns.iter().find_map(|column| match column.what {
            NsColumnSource::Column(id) => Some(id),
            _ => None,
        });
        if let Some(own) = own {
            self.name_system_column(own);
        }
        if name == TABLEOID {
            let ty = SqlType::of(oid::OID);
            return Ok(Some(Expr::Const(Datum::Oid(table.get()), ty)));
        }
        if let Some(message) = refused(name, self.clause()) {
            let state = SqlState::INVALID_COLUMN_REFERENCE;
            return Err(SqlError::new(state, message).at(at));
        }
        let unsupported = || SqlError::unsupported(format!("system column \"{name}\"")).at(at);
        let rel = item_rel.ok_or_else(unsupported)?;
        match &self.range.rels[rel].source {
            RelSource::Table(_)
                if self.range.rels[rel].scanned || self.range.rels[rel].row_id.is_some() => {}
            RelSource::Virtual(..) => match name {
                // Catalogs are as their last change has made them.
                XMIN => return Ok(Some(number(oid::XID, xid(self.cx.catalog.csn.get())))),
                XMAX => return Ok(Some(number(oid::XID, 0))),
                // The row's place among those that are made.
                CTID => {}
                _ => return Ok(Some(number(oid::CID, 0))),
            },
            _ => return Err(unsupported()),
        }
        self.give_row_id(rel);
        let Some(row_id) = self.range.rels[rel].row_id else {
            return Ok(None);
        };
        let (function, id): (&'static Function, _) = match name {
            CTID => (&ROW_CTID, row_id),
            XMIN => (&ROW_XMIN, row_id + 1),
            XMAX => (&ROW_XMAX, row_id + 1),
            _ => (&ROW_CMIN, row_id + 1),
        };
        debug_assert!(id >= COLUMN_BASE);
        if !self.frames[level].in_aggregate {
            self.frames[level].references.push((id, at));
        }
        Ok(Some(Expr::Call {
            function,
            args: vec![Expr::Column(id, SqlType::of(oid::INT8))],
            ty: SqlType::of(function.result),
        }))
    }
}

/// Why a clause may not name it.
fn refused(name: &str, clause: Clause) -> Option<String> {
    match clause {
        Clause::MergeWhen => Some(format!(
            "cannot use system column \"{name}\" in MERGE WHEN condition"
        )),
        Clause::Check => Some(format!(
            "system column \"{name}\" reference in check constraint is invalid"
        )),
        Clause::Generated => Some(format!(
            "cannot use system column \"{name}\" in column generation expression"
        )),
        _ => None,
    }
}

fn number(ty: TypeId, value: u32) -> Expr {
    Expr::Const(Datum::Oid(value), SqlType::of(ty))
}

/// A transaction's id, of which PostgreSQL shows 32 bits. The first three are no transactions'.
pub fn xid(number: u64) -> u32 {
    (number as u32).max(1)
}
