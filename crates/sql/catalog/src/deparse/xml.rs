//! XML as text, as PostgreSQL prints what it keeps.

use crate::deparse::expr::{Parent, Printer, type_text};
use crate::text::{quote_ident, quote_literal};
use logstead_sql_parse::ast::{
    Expr, RangeTableFunc, RangeTableFuncCol, XmlExpr, XmlExprOp as Op, XmlNamedArg, XmlOption,
    XmlSerialize, XmlStandalone,
};
use logstead_sql_types::value::user::TypeSpelling;

/// The text of a literal, whatever type it was given.
fn literal(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::TypeCast(cast) => literal(&cast.arg),
        expr => expr.literal(),
    }
}

fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::TypeCast(cast) => is_null(&cast.arg),
        expr => expr.is_null(),
    }
}

/// What makes XML, by what prints values, and what prints those that may be of any type.
pub(super) fn xml_expr(
    node: &XmlExpr,
    value: &dyn Fn(&Expr) -> String,
    untyped: &dyn Fn(&Expr) -> String,
) -> String {
    let named = |args: &[XmlNamedArg]| {
        let args = args.iter().map(|arg| {
            let shown = untyped(&arg.value);
            match arg.name() {
                Some(name) => format!("{shown} AS {}", quote_ident(name)),
                None => shown,
            }
        });
        args.collect::<Vec<_>>().join(", ")
    };
    let name = || {
        let name = node.name.as_deref().unwrap_or_default();
        format!("NAME {}", quote_ident(name))
    };
    let mut parts: Vec<String> = Vec::with_capacity(node.args.len() + 2);
    match (node.op, node.args.as_slice()) {
        (Op::XmlConcat, args) => {
            parts.extend(args.iter().map(value));
            format!("XMLCONCAT({})", parts.join(", "))
        }
        (Op::XmlElement, args) => {
            parts.push(name());
            if !node.named_args.is_empty() {
                parts.push(format!("XMLATTRIBUTES({})", named(&node.named_args)));
            }
            parts.extend(args.iter().map(untyped));
            format!("XMLELEMENT({})", parts.join(", "))
        }
        (Op::XmlForest, _) => format!("XMLFOREST({})", named(&node.named_args)),
        (Op::XmlParse, args) => {
            parts.extend(args.iter().map(value));
            let option = node.xmloption.unwrap_or(XmlOption::Content).word();
            let whitespace = match node.preserve_whitespace {
                true => "PRESERVE",
                false => "STRIP",
            };
            format!(
                "XMLPARSE({option} {} {whitespace} WHITESPACE)",
                parts.join(", ")
            )
        }
        (Op::XmlPi, args) => {
            parts.push(name());
            parts.extend(args.iter().map(value));
            format!("XMLPI({})", parts.join(", "))
        }
        (Op::XmlRoot, args) => {
            parts.extend(args.first().map(value));
            parts.extend(args.get(1).map(|version| match is_null(version) {
                true => "VERSION NO VALUE".to_owned(),
                false => format!("VERSION {}", value(version)),
            }));
            let standalone = node.standalone.and_then(XmlStandalone::word);
            parts.extend(standalone.map(|word| format!("STANDALONE {word}")));
            format!("XMLROOT({})", parts.join(", "))
        }
        (Op::IsDocument, args) => {
            parts.extend(args.iter().map(value));
            format!("{} IS DOCUMENT", parts.join(", "))
        }
    }
}

/// XMLSERIALIZE, by what prints its value.
pub(super) fn xml_serialize(
    node: &XmlSerialize,
    types: TypeSpelling<'_>,
    value: &dyn Fn(&Expr) -> String,
) -> String {
    let (option, shown) = (node.xmloption.word(), value(&node.expr));
    format!(
        "XMLSERIALIZE({option} {shown} AS {})",
        type_text(&node.type_name, types)
    )
}

impl Printer<'_> {
    pub(super) fn xml_expr(&self, node: &XmlExpr) -> String {
        let free = |value: &Expr| self.print(value, Parent::Free);
        match (node.op, self.is_pretty()) {
            (Op::IsDocument, true) => xml_expr(node, &|value| format!("({})", free(value)), &free),
            (Op::IsDocument, false) => {
                xml_expr(node, &|value| self.print(value, Parent::Tight), &free)
            }
            _ => xml_expr(node, &free, &|value| self.untyped(value)),
        }
    }

    /// XMLSERIALIZE, and the cast to its type.
    pub(super) fn xml_serialize(&self, node: &XmlSerialize) -> String {
        let text = xml_serialize(node, self.types(), &|value| self.print(value, Parent::Free));
        let ty = self.type_text(&node.type_name);
        match (ty.as_str(), self.is_pretty()) {
            ("text", _) => text,
            (_, true) => format!("{text}::{ty}"),
            (_, false) => format!("({text})::{ty}"),
        }
    }

    /// A value of any type: a literal has none.
    fn untyped(&self, value: &Expr) -> String {
        match value {
            value if value.is_null() => "NULL::unknown".to_owned(),
            Expr::Const(_) => match literal(value) {
                Some(text) => quote_literal(text),
                None => self.print(value, Parent::Free),
            },
            value => self.print(value, Parent::Free),
        }
    }

    /// A value of a type, which a literal has not yet.
    fn of_type(&self, value: &Expr, ty: &str) -> String {
        match (value, literal(value)) {
            (Expr::Const(_), Some(text)) => format!("{}::{ty}", quote_literal(text)),
            _ => self.print(value, Parent::Free),
        }
    }

    /// XMLTABLE
    pub(super) fn xml_table(&self, table: &RangeTableFunc) -> String {
        let mut text = "XMLTABLE(".to_owned();
        if !table.namespaces.is_empty() {
            let namespaces = table.namespaces.iter().map(|(name, uri)| {
                let uri = self.of_type(uri, "text");
                match name {
                    None => format!("DEFAULT {uri}"),
                    Some(name) => format!("{uri} AS {}", quote_ident(name)),
                }
            });
            let namespaces = namespaces.collect::<Vec<_>>().join(", ");
            text.push_str(&format!("XMLNAMESPACES ({namespaces}), "));
        }
        let columns = table.columns.iter().map(|c| self.xml_table_column(c));
        text.push_str(&format!(
            "({}) PASSING ({}) COLUMNS {})",
            self.of_type(&table.rowexpr, "text"),
            self.of_type(&table.docexpr, "xml"),
            columns.collect::<Vec<_>>().join(", ")
        ));
        text
    }

    fn xml_table_column(&self, column: &RangeTableFuncCol) -> String {
        let mut text = quote_ident(&column.colname);
        let Some(type_name) = &column.type_name else {
            return format!("{text} FOR ORDINALITY");
        };
        let ty = self.type_text(type_name);
        text.push_str(&format!(" {ty}"));
        if let Some(default) = column.coldefexpr.as_ref().filter(|e| !is_null(e)) {
            text.push_str(&format!(" DEFAULT ({})", self.of_type(default, &ty)));
        }
        if let Some(path) = &column.colexpr {
            text.push_str(&format!(" PATH ({})", self.of_type(path, "text")));
        }
        if column.is_not_null {
            text.push_str(" NOT NULL");
        }
        text
    }
}
