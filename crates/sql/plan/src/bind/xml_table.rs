//! XMLTABLE in FROM: `parse::xml` makes a call of it.

use super::xml::written;
use super::{Binder, Clause, Source};
use crate::query::expr::Expr;
use crate::query::{From, FromList};
use crate::walk;
use logstead_sql_func as func;
use logstead_sql_func::CastContext;
use logstead_sql_parse::ast::AnyName;
use logstead_sql_parse::lowered::{self as ast, Expr as Ast, FunctionArg, FunctionArgExpr};
use logstead_sql_parse::{string_literal, xml_call};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, Oid, SqlType, oid, user};
use logstead_types::SqlState;
use std::sync::Arc;

const TEXT: SqlType = SqlType::of(oid::TEXT);

/// What columns are declared.
#[derive(Default)]
struct Columns {
    /// Those of the rows: what is declared as a domain is of its base type.
    of_rows: Vec<(Arc<str>, SqlType, (u32, i16))>,
    /// Domains, and arrays over some, by the columns that are declared as these.
    domains: Vec<(usize, Oid)>,
    /// Defaults that are computed for each row that needs one, by their columns.
    defaults: Vec<(usize, Expr)>,
}

fn constant(text: impl Into<Arc<str>>) -> Expr {
    Expr::Const(Datum::Text(text.into()), TEXT)
}

impl Binder<'_> {
    /// Rows of a document.
    pub(super) fn xml_table(
        &mut self,
        args: &[FunctionArg],
        alias: Option<&ast::TableAlias>,
    ) -> Result<FromList> {
        let plain: Vec<&Ast> = args
            .iter()
            .filter_map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value),
                _ => None,
            })
            .collect();
        let [row, document, rest @ ..] = plain.as_slice() else {
            return Err(SqlError::internal("XMLTABLE without its arguments"));
        };
        let mut args = Vec::new();
        args.push(self.xml_table_text(row, TEXT)?);
        args.push(self.xml_table_text(document, SqlType::of(oid::XML))?);
        let mut columns = Columns::default();
        let mut of_columns = Vec::new();
        let mut pairs = Vec::new();
        for part in rest {
            let Ast::Function(part) = part else { continue };
            let items = written(part);
            match xml_call(part) {
                Some("xmlnamespaces") => {
                    for pair in items.chunks(2) {
                        let [name, uri] = pair else { continue };
                        pairs.push(constant(string_literal(name).unwrap_or_default()));
                        pairs.push(self.xml_table_text(uri, TEXT)?);
                    }
                }
                _ => self.xml_table_column(&items, &mut columns, &mut of_columns)?,
            }
        }
        let Columns {
            of_rows: columns,
            domains,
            defaults,
        } = columns;
        if let Some(alias) = alias
            && alias.columns.len() > columns.len()
        {
            return Err(SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!(
                    "XMLTABLE function has {} columns available but {} columns specified",
                    columns.len(),
                    alias.columns.len()
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
        let source = Source::Function {
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
        items: &[&Ast],
        columns: &mut Columns,
        args: &mut Vec<Expr>,
    ) -> Result<()> {
        let [name, ty, path, default, said] = items else {
            return Err(SqlError::internal("a column of XMLTABLE without its parts"));
        };
        let at = self.at(name.location());
        let name: Arc<str> = string_literal(name).unwrap_or_default().into();
        let ty = match ty {
            Ast::TypeCast(cast) => logstead_sql_catalog::type_name::sql_type(&cast.type_name)?,
            _ => SqlType::of(oid::INT4),
        };
        if columns.of_rows.iter().any(|(known, ..)| *known == name) {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("column name \"{name}\" is not unique"),
            )
            .at(at));
        }
        let declared = ty;
        let ty = user::base_type(declared);
        if user::row_with_domains(ty.oid).is_some() {
            let what = "a column of XMLTABLE that is of a row type with columns of domains";
            return Err(SqlError::unsupported(what).at(at));
        }
        if user::domain_in(declared.oid).is_some() {
            columns.domains.push((columns.of_rows.len(), declared.oid));
        }
        let path = match path.is_null() {
            true => constant(Arc::clone(&name)),
            false => self.xml_table_text(path, TEXT)?,
        };
        let default_at = self.at(default.location());
        let default = self.in_clause(Clause::From, |b| b.expr(default))?;
        let mut default = self.coerce(default, ty, CastContext::Assignment, default_at)?;
        if string_literal(said).unwrap_or_default().is_empty() && is_computed_later(&default) {
            let none = Expr::Const(Datum::Null, ty);
            let later = std::mem::replace(&mut default, none);
            columns.defaults.push((columns.of_rows.len(), later));
        }
        args.push(Expr::Const(Datum::Null, ty));
        args.push(constant(Arc::clone(&name)));
        args.push(path);
        args.push(default);
        args.push(constant(string_literal(said).unwrap_or_default()));
        columns.of_rows.push((name, ty, (0, 0)));
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

/// Whether a call in FROM is XMLTABLE.
pub(super) fn is_xml_table(name: &AnyName) -> bool {
    let name = name.names.last();
    name.is_some_and(|name| logstead_sql_parse::xml_construct(name) == Some("xmltable"))
}
