//! XML's constructs: `parse::xml` makes calls of names that nobody can write of them, here they get their types.

use super::Binder;
use crate::query::expr::Expr;
use logstead_sql_func as func;
use logstead_sql_func::{CastContext, xml_name};
use logstead_sql_parse::lowered::{
    self as ast, Expr as Ast, FunctionArg, FunctionArgExpr, FunctionArguments,
};
use logstead_sql_parse::{string_literal, xml_call};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, info, oid};
use logstead_types::SqlState;

/// Wants that its argument can be a text; names it in errors.
const WORD: SqlType = SqlType::of(oid::TEXT);
const XML: SqlType = SqlType::of(oid::XML);

/// The arguments of a construct as they were written.
pub(super) fn written(function: &ast::Function) -> Vec<&Ast> {
    let FunctionArguments::List(list) = &function.args else {
        return Vec::new();
    };
    let args = list.args.iter().filter_map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value),
        _ => None,
    });
    args.collect()
}

/// Whether a construct is written with nothing that calls alone have.
fn is_plain(function: &ast::Function) -> bool {
    let FunctionArguments::List(list) = &function.args else {
        return false;
    };
    let is_value =
        |arg: &FunctionArg| matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::Expr(_)));
    list.args.iter().all(is_value)
        && list.clauses.is_empty()
        && !list.agg_distinct
        && function.filter.is_none()
        && function.over.is_none()
        && function.within_group.is_empty()
}

fn constant(text: impl Into<String>) -> Expr {
    Expr::Const(Datum::text(text.into()), WORD)
}

fn not_understood() -> SqlError {
    SqlError::internal("a construct of XML without its arguments")
}

impl Binder<'_> {
    /// A construct that looks like a call.
    pub(super) fn xml_call(&mut self, construct: &str, function: &ast::Function) -> Result<Expr> {
        let at = self.at(function.name.location);
        if !is_plain(function) {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("syntax error in {}", construct.to_uppercase()),
            )
            .at(at));
        }
        let args = written(function);
        match (construct, args.as_slice()) {
            ("xmlconcat", values) => {
                let values = self.xml_values(values, XML, "XMLCONCAT")?;
                self.call(&func::XML_CONCAT, values, XML)
            }
            ("xmlelement", [name, rest @ ..]) => {
                let name = string_literal(name).ok_or_else(not_understood)?;
                let mut args = vec![constant(xml_name(name, false, false))];
                let mut content = rest;
                let mut attributes = Vec::new();
                if let [Ast::Function(first), behind @ ..] = rest
                    && xml_call(first) == Some("xmlattributes")
                {
                    attributes = self.named_values(&written(first))?;
                    content = behind;
                    self.distinct_names(&attributes, &written(first))?;
                }
                let count = i32::try_from(attributes.len() / 2).unwrap_or(i32::MAX);
                args.push(Expr::Const(Datum::Int4(count), SqlType::of(oid::INT4)));
                args.append(&mut attributes);
                for value in content {
                    let value = self.expr(value)?;
                    args.push(self.settle(value)?);
                }
                self.call(&func::XML_ELEMENT, args, XML)
            }
            ("xmlforest", values) => {
                let args = self.named_values(values)?;
                self.call(&func::XML_FOREST, args, XML)
            }
            ("xmlparse", [kind, text, ..]) => {
                let kind = string_literal(kind).ok_or_else(not_understood)?;
                let text = self.xml_values(&[text], WORD, "XMLPARSE")?;
                let args = [vec![constant(kind)], text].concat();
                self.call(&func::XML_PARSE, args, XML)
            }
            ("xmlpi", [target, content @ ..]) => {
                let target = string_literal(target).ok_or_else(not_understood)?;
                let target = constant(xml_name(target, false, false));
                let content = self.xml_values(content, WORD, "XMLPI")?;
                self.call(&func::XML_PI, [vec![target], content].concat(), XML)
            }
            ("xmlroot", [value, version, rest @ ..]) => {
                let mut args = self.xml_values(&[value], XML, "XMLROOT")?;
                args.extend(self.xml_values(&[version], WORD, "XMLROOT")?);
                args.push(match rest.first().and_then(|word| string_literal(word)) {
                    Some(said) => constant(said),
                    None => Expr::Const(Datum::Null, WORD),
                });
                self.call(&func::XML_ROOT, args, XML)
            }
            ("xmlserialize", [kind, value, target]) => {
                let kind = string_literal(kind).ok_or_else(not_understood)?;
                let target = self.expr(target)?.ty();
                let value = self.xml_values(&[value], XML, "XMLSERIALIZE")?;
                let args = [vec![constant(kind)], value].concat();
                let text = self.call(&func::XML_SERIALIZE, args, WORD)?;
                self.coerce(text, target, CastContext::Implicit, at)
                    .map_err(|error| match error.code() {
                        SqlState::CANNOT_COERCE | SqlState::DATATYPE_MISMATCH => SqlError::new(
                            SqlState::CANNOT_COERCE,
                            format!(
                                "cannot cast XMLSERIALIZE result to {}",
                                info::format_type(target)
                            ),
                        )
                        .at(at),
                        _ => error,
                    })
            }
            ("xmlexists", values) => {
                let mut args = Vec::with_capacity(values.len());
                for value in values {
                    args.push(self.expr(value)?);
                }
                self.resolved_call(Some("pg_catalog"), "xmlexists", args, at)
            }
            _ => Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("syntax error at or near \"{construct}\""),
            )
            .at(at)),
        }
    }

    /// `value IS [NOT] DOCUMENT`
    pub(super) fn xml_document_test(&mut self, value: &Ast, negated: bool) -> Result<Expr> {
        let value = self.xml_values(&[value], XML, "IS DOCUMENT")?;
        let test = self.call(&func::XML_IS_DOCUMENT, value, SqlType::of(oid::BOOL))?;
        Ok(match negated {
            true => Expr::Not(Box::new(test)),
            false => test,
        })
    }

    /// Values of one type.
    fn xml_values(&mut self, values: &[&Ast], ty: SqlType, construct: &str) -> Result<Vec<Expr>> {
        let mut out = Vec::with_capacity(values.len());
        for value in values {
            let at = self.at(value.location());
            let value = self.expr(value)?;
            let from = value.ty();
            // What PostgreSQL's coerce_to_specific_type says.
            let told = |error: SqlError| match error.code() {
                SqlState::CANNOT_COERCE | SqlState::DATATYPE_MISMATCH => SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "argument of {construct} must be type {}, not type {}",
                        info::format_type(ty),
                        info::format_type(from)
                    ),
                )
                .at(at),
                _ => error,
            };
            out.push(
                self.coerce(value, ty, CastContext::Assignment, at)
                    .map_err(told)?,
            );
        }
        Ok(out)
    }

    /// Names and values in turn.
    fn named_values(&mut self, args: &[&Ast]) -> Result<Vec<Expr>> {
        let mut out = Vec::with_capacity(args.len());
        for pair in args.chunks(2) {
            let [name, value] = pair else {
                return Err(not_understood());
            };
            let name = string_literal(name).ok_or_else(not_understood)?;
            let value = self.expr(value)?;
            out.push(constant(xml_name(name, false, false)));
            out.push(self.settle(value)?);
        }
        Ok(out)
    }

    fn distinct_names(&self, attributes: &[Expr], written: &[&Ast]) -> Result<()> {
        let names = attributes.iter().step_by(2).filter_map(|name| match name {
            Expr::Const(Datum::Text(name), _) => Some(name),
            _ => None,
        });
        let mut met = std::collections::HashSet::new();
        let values = written.iter().skip(1).step_by(2);
        for (name, value) in names.zip(values) {
            if !met.insert(name) {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("XML attribute name \"{name}\" appears more than once"),
                )
                .at(self.at(value.location())));
            }
        }
        Ok(())
    }
}
