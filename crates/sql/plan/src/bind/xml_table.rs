//! XMLTABLE in FROM.

use super::{Binder, Clause, RelSource};
use crate::query::expr::Expr;
use crate::query::{From, FromList};
use crate::walk;
use logstead_sql_catalog::ColumnOrigin;
use logstead_sql_func as func;
use logstead_sql_func::CastContext;
use logstead_sql_parse::ast::{Expr as Ast, RangeTableFunc, RangeTableFuncCol};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, oid, user};
use logstead_types::SqlState;
use std::sync::Arc;

const TEXT: SqlType = SqlType::of(oid::TEXT);

/// What columns are declared.
#[derive(Default)]
struct Columns {
    /// Those of the rows: what is declared as a domain is of its base type.
    of_rows: Vec<(Arc<str>, SqlType, Option<ColumnOrigin>)>,
    /// Domains, and arrays over some, by the columns that are declared as these.
    domains: Vec<(usize, TypeId)>,
    /// Defaults that are computed for each row that needs one, by their columns.
    defaults: Vec<(usize, Expr)>,
}

fn constant(text: impl Into<Arc<str>>) -> Expr {
    Expr::Const(Datum::Text(text.into()), TEXT)
}

impl Binder<'_> {
    /// Rows of a document.
    pub(super) fn xml_table(&mut self, table: &RangeTableFunc) -> Result<FromList> {
        let alias = table.alias.as_deref();
        let mut args = Vec::new();
        args.push(self.xml_table_text(&table.rowexpr, TEXT)?);
        args.push(self.xml_table_text(&table.docexpr, SqlType::of(oid::XML))?);
        let mut columns = Columns::default();
        let mut of_columns = Vec::new();
        let mut pairs = Vec::new();
        for (name, uri) in &table.namespaces {
            pairs.push(constant(name.as_deref().unwrap_or_default()));
            pairs.push(self.xml_table_text(uri, TEXT)?);
        }
        for column in &table.columns {
            self.xml_table_column(column, &mut columns, &mut of_columns)?;
        }
        let Columns {
            of_rows: columns,
            domains,
            defaults,
        } = columns;
        if let Some(alias) = alias
            && alias.colnames.len() > columns.len()
        {
            return Err(SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!(
                    "XMLTABLE function has {} columns available but {} columns specified",
                    columns.len(),
                    alias.colnames.len()
                ),
            ));
        }
        args.push(Expr::Array(pairs, SqlType::of(oid::TEXT_ARRAY)));
        args.append(&mut of_columns);
        // Domains are asked when the rows are there.
        let mut asked: Vec<(usize, Expr)> = Vec::with_capacity(domains.len() + defaults.len());
        for (place, default) in defaults {
            let ty = default.ty();
            let value = Expr::Coalesce(vec![Expr::Column(place, ty), default], ty);
            asked.push((place, value));
        }
        for (place, domain) in domains {
            let Some((_, base, _)) = columns.get(place) else {
                continue;
            };
            let known = asked.iter().position(|(at, _)| *at == place);
            let value = match known {
                Some(at) => asked.swap_remove(at).1,
                None => Expr::Column(place, *base),
            };
            asked.push((place, self.as_domain(value, domain)?));
        }
        let source = RelSource::Function {
            function: &func::XML_TABLE,
            args,
            ordinality: false,
            asked,
        };
        let rel = self.add_item(source, columns, "xmltable", alias)?;
        Ok(FromList {
            items: vec![From::Rel(rel)],
            conditions: Vec::new(),
        })
    }

    fn xml_table_text(&mut self, value: &Ast, ty: SqlType) -> Result<Expr> {
        let at = self.at(value.location());
        let value = self.in_clause(Clause::From, |b| b.expr(value))?;
        self.coerce(value, ty, CastContext::Assignment, at)
    }

    fn xml_table_column(
        &mut self,
        column: &RangeTableFuncCol,
        columns: &mut Columns,
        args: &mut Vec<Expr>,
    ) -> Result<()> {
        let at = self.at(column.location);
        let name: Arc<str> = (&*column.colname).into();
        let ty = match &column.type_name {
            Some(type_name) => logstead_sql_catalog::type_name::sql_type(type_name, self.lookup())?,
            None => SqlType::of(oid::INT4),
        };
        let said = match (&column.type_name, column.is_not_null) {
            (None, _) => "ORDINALITY",
            (Some(_), true) => "NOT NULL",
            (Some(_), false) => "",
        };
        if columns.of_rows.iter().any(|(known, ..)| *known == name) {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("column name \"{name}\" is not unique"),
            )
            .at(at));
        }
        let declared = ty;
        let ty = self.user_types().base_type(declared);
        if self.user_types().row_with_domains(ty.oid).is_some() {
            let what = "a column of XMLTABLE that is of a row type with columns of domains";
            return Err(SqlError::unsupported(what).at(at));
        }
        if user::domain_in(declared.oid).is_some() {
            columns.domains.push((columns.of_rows.len(), declared.oid));
        }
        let path = match &column.colexpr {
            Some(path) if !path.is_null() => self.xml_table_text(path, TEXT)?,
            _ => constant(Arc::clone(&name)),
        };
        let mut default = match &column.coldefexpr {
            Some(default) => self.xml_table_text(default, ty)?,
            None => Expr::Const(Datum::Null, ty),
        };
        if said.is_empty() && is_computed_later(&default) {
            let none = Expr::Const(Datum::Null, ty);
            let later = std::mem::replace(&mut default, none);
            columns.defaults.push((columns.of_rows.len(), later));
        }
        args.push(Expr::Const(Datum::Null, ty));
        args.push(constant(Arc::clone(&name)));
        args.push(path);
        args.push(default);
        args.push(constant(said));
        columns.of_rows.push((name, ty, None));
        Ok(())
    }
}

/// Is a default more than a constant, and of its own: of no row beside it?
fn is_computed_later(default: &Expr) -> bool {
    let is_fixed = matches!(default, Expr::Const(..) | Expr::Param(..));
    let reads = |e: &Expr| {
        matches!(
            e,
            Expr::Column(..) | Expr::Outer { .. } | Expr::Subquery(_) | Expr::SubLink(_)
        )
    };
    !is_fixed && !walk::any(default, &reads)
}
