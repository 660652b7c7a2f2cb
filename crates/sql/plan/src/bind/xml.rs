//! XML: what makes it, and XMLSERIALIZE.

use super::Binder;
use crate::query::expr::Expr;
use logstead_sql_func as func;
use logstead_sql_func::{CastContext, xml_name};
use logstead_sql_parse::ast::{
    Expr as Ast, XmlExpr, XmlExprOp as Op, XmlNamedArg, XmlOption, XmlSerialize, XmlStandalone,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{Datum, SqlType, oid};
use logstead_types::SqlState;

/// Wants that its argument can be a text; names it in errors.
const WORD: SqlType = SqlType::of(oid::TEXT);
const XML: SqlType = SqlType::of(oid::XML);

fn constant(text: impl Into<String>) -> Expr {
    Expr::Const(Datum::text(text.into()), WORD)
}

/// The name of an element or of a processing instruction.
fn name_of(node: &XmlExpr) -> Expr {
    let name = node.name.as_deref().unwrap_or_default();
    constant(xml_name(name, false, false))
}

impl Binder<'_> {
    /// What makes XML.
    pub(super) fn xml_expr(&mut self, node: &XmlExpr) -> Result<Expr> {
        match node.op {
            Op::XmlConcat => {
                let values = self.xml_values(&node.args, XML, "XMLCONCAT")?;
                self.call(&func::XML_CONCAT, values, XML)
            }
            Op::XmlElement => {
                let mut attributes = self.named_values(&node.named_args, "attribute")?;
                self.distinct_names(&attributes, &node.named_args)?;
                let count = i32::try_from(attributes.len() / 2).unwrap_or(i32::MAX);
                let count = Expr::Const(Datum::Int4(count), SqlType::of(oid::INT4));
                let mut args = vec![name_of(node), count];
                args.append(&mut attributes);
                for value in &node.args {
                    let value = self.expr(value)?;
                    args.push(self.settle(value)?);
                }
                self.call(&func::XML_ELEMENT, args, XML)
            }
            Op::XmlForest => {
                let args = self.named_values(&node.named_args, "element")?;
                self.call(&func::XML_FOREST, args, XML)
            }
            Op::XmlParse => {
                let option = node.xmloption.unwrap_or(XmlOption::Content);
                let text = self.xml_values(&node.args, WORD, "XMLPARSE")?;
                let args = [vec![constant(option.word())], text].concat();
                self.call(&func::XML_PARSE, args, XML)
            }
            Op::XmlPi => {
                let content = self.xml_values(&node.args, WORD, "XMLPI")?;
                self.call(&func::XML_PI, [vec![name_of(node)], content].concat(), XML)
            }
            Op::XmlRoot => {
                let (value, version) = node.args.split_at(node.args.len().min(1));
                let mut args = self.xml_values(value, XML, "XMLROOT")?;
                args.extend(self.xml_values(version, WORD, "XMLROOT")?);
                args.push(match node.standalone.and_then(XmlStandalone::word) {
                    Some(word) => constant(word),
                    None => Expr::Const(Datum::Null, WORD),
                });
                self.call(&func::XML_ROOT, args, XML)
            }
            Op::IsDocument => {
                let value = self.xml_values(&node.args, XML, "IS DOCUMENT")?;
                self.call(&func::XML_IS_DOCUMENT, value, SqlType::of(oid::BOOL))
            }
        }
    }

    /// XMLSERIALIZE
    pub(super) fn xml_serialize(&mut self, node: &XmlSerialize) -> Result<Expr> {
        let at = self.at(node.location);
        let type_at = self.at(node.type_name.location);
        let target = logstead_sql_catalog::type_name::sql_type(&node.type_name, self.lookup())
            .map_err(|error| error.at(type_at))?;
        let value = self.xml_values(std::slice::from_ref(&node.expr), XML, "XMLSERIALIZE")?;
        let args = [vec![constant(node.xmloption.word())], value].concat();
        let text = self.call(&func::XML_SERIALIZE, args, WORD)?;
        self.coerce(text, target, CastContext::Implicit, at)
            .map_err(|error| match error.code() {
                SqlState::CANNOT_COERCE | SqlState::DATATYPE_MISMATCH => SqlError::new(
                    SqlState::CANNOT_COERCE,
                    format!(
                        "cannot cast XMLSERIALIZE result to {}",
                        self.types().format_type(target)
                    ),
                )
                .at(at),
                _ => error,
            })
    }

    /// Values of one type.
    fn xml_values(&mut self, values: &[Ast], ty: SqlType, construct: &str) -> Result<Vec<Expr>> {
        let mut out = Vec::with_capacity(values.len());
        for value in values {
            let at = self.at(value.location());
            let value = self.expr(value)?;
            let from = value.ty();
            // What PostgreSQL's coerce_to_specific_type says.
            let told = |error: SqlError, types: TypeLookup<'_>| match error.code() {
                SqlState::CANNOT_COERCE | SqlState::DATATYPE_MISMATCH => SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "argument of {construct} must be type {}, not type {}",
                        types.format_type(ty),
                        types.format_type(from)
                    ),
                )
                .at(at),
                _ => error,
            };
            out.push(
                self.coerce(value, ty, CastContext::Assignment, at)
                    .map_err(|error| told(error, self.types()))?,
            );
        }
        Ok(out)
    }

    /// Names and values in turn.
    fn named_values(&mut self, args: &[XmlNamedArg], what: &str) -> Result<Vec<Expr>> {
        let mut out = Vec::with_capacity(2 * args.len());
        for arg in args {
            let value = self.expr(&arg.value)?;
            let Some(name) = arg.name() else {
                let message = format!("unnamed XML {what} value must be a column reference");
                return Err(
                    SqlError::new(SqlState::SYNTAX_ERROR, message).at(self.at(arg.location))
                );
            };
            out.push(constant(xml_name(name, false, false)));
            out.push(self.settle(value)?);
        }
        Ok(out)
    }

    fn distinct_names(&self, attributes: &[Expr], written: &[XmlNamedArg]) -> Result<()> {
        let names = attributes.iter().step_by(2).filter_map(|name| match name {
            Expr::Const(Datum::Text(name), _) => Some(name),
            _ => None,
        });
        let mut met = std::collections::HashSet::new();
        for (name, arg) in names.zip(written) {
            if !met.insert(name) {
                return Err(SqlError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("XML attribute name \"{name}\" appears more than once"),
                )
                .at(self.at(arg.location)));
            }
        }
        Ok(())
    }
}
