//! XML's constructs with the types of what they are made of written out.

use super::{Typed, Typer};
use logstead_sql_parse::lowered::{self as ast, Expr};
use logstead_sql_types::value::{SqlType, oid};

const TEXT: SqlType = SqlType::of(oid::TEXT);
const XML: SqlType = SqlType::of(oid::XML);

/// What becomes of an argument.
enum Wanted {
    /// It is part of the syntax.
    Word,
    /// It may be of any type.
    Any,
    Of(SqlType),
}

fn wanted(construct: &str, at: usize) -> Wanted {
    match (construct, at) {
        ("xmlconcat", _) | ("xmlserialize" | "xmlexists", 1) | ("xmlroot", 0) => Wanted::Of(XML),
        ("xmlparse" | "xmlpi" | "xmlroot", 1) | ("xmlexists", 0) => Wanted::Of(TEXT),
        ("xmlattributes" | "xmlforest", at) if at % 2 == 1 => Wanted::Any,
        ("xmlnamespaces", at) if at % 2 == 1 => Wanted::Of(TEXT),
        ("xmlcolumn", 2) => Wanted::Of(TEXT),
        ("xmlelement", at) if at > 0 => Wanted::Any,
        _ => Wanted::Word,
    }
}

/// What was cast to a type by `to`, before that.
fn unmodified(typed: Expr, ty: SqlType) -> Expr {
    match typed {
        Expr::TypeCast(node)
            if node.arg.literal().is_none()
                && logstead_sql_catalog::type_name::sql_type(&node.type_name)
                    .is_ok_and(|found| found.oid == ty.oid) =>
        {
            node.arg
        }
        other => other,
    }
}

fn is_null(value: &Expr) -> bool {
    value.is_null()
}

impl Typer<'_> {
    /// What IS DOCUMENT is asked of.
    pub(super) fn document(&self, value: &Expr) -> Box<Expr> {
        Box::new(self.to(self.expr(value), XML))
    }

    pub(super) fn xml_construct(&self, construct: &str, written: &ast::Function) -> Typed {
        let mut function = written.clone();
        if let ast::FunctionArguments::List(list) = &mut function.args {
            let column = list.args.get(1).and_then(|ty| match ty {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(Expr::TypeCast(node))) => {
                    logstead_sql_catalog::type_name::sql_type(&node.type_name).ok()
                }
                _ => None,
            });
            for (at, arg) in list.args.iter_mut().enumerate() {
                let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(value)) = arg else {
                    continue;
                };
                if construct == "xmlcolumn" && is_null(value) {
                    continue;
                }
                let wanted = match (construct, at, column) {
                    ("xmlcolumn", 3, Some(ty)) => Wanted::Of(ty),
                    _ => wanted(construct, at),
                };
                *value = match wanted {
                    Wanted::Word => continue,
                    Wanted::Any => self.expr(value).0,
                    Wanted::Of(ty) => {
                        let typed = self.to(self.expr(value), ty);
                        match ty.typmod < 0 {
                            true => typed,
                            // What brings it to the modifier is shown, too.
                            false => super::cast(unmodified(typed, ty), ty),
                        }
                    }
                };
            }
        }
        let ty = match (construct, &function.args) {
            ("xmlexists", _) => Some(SqlType::of(oid::BOOL)),
            ("xmlserialize", ast::FunctionArguments::List(list)) => match list.args.last() {
                Some(ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(Expr::TypeCast(
                    node,
                )))) => logstead_sql_catalog::type_name::sql_type(&node.type_name).ok(),
                _ => Some(TEXT),
            },
            _ => Some(XML),
        };
        (Expr::Function(function), ty)
    }
}
