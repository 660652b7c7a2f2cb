//! XML's constructs as text, as PostgreSQL prints stored ones.

use crate::deparse::expr::{Parent, Printer};
use crate::text::{quote_ident, quote_literal};
use logstead_sql_parse::lowered::{self as ast, Expr};
use logstead_sql_parse::xml_call;

/// The text of a literal, whatever type it was given.
fn literal(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::TypeCast(cast) => literal(&cast.arg),
        Expr::Nested(expr) => literal(expr),
        expr => expr.literal(),
    }
}

fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::TypeCast(cast) => is_null(&cast.arg),
        Expr::Nested(expr) => is_null(expr),
        expr => expr.is_null(),
    }
}

fn arguments(function: &ast::Function) -> Vec<&Expr> {
    let ast::FunctionArguments::List(list) = &function.args else {
        return Vec::new();
    };
    plain(&list.args)
}

fn plain(args: &[ast::FunctionArg]) -> Vec<&Expr> {
    let values = args.iter().filter_map(|arg| match arg {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(value)) => Some(value),
        _ => None,
    });
    values.collect()
}

impl Printer {
    /// `x IS DOCUMENT`
    pub(super) fn document_test(&self, value: &Expr) -> String {
        match self.is_pretty() {
            true => format!("({}) IS DOCUMENT", self.print(value, Parent::Free)),
            false => format!("{} IS DOCUMENT", self.print(value, Parent::Tight)),
        }
    }

    fn all(&self, values: &[&Expr]) -> Vec<String> {
        let printed = values.iter().map(|value| self.print(value, Parent::Free));
        printed.collect()
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

    /// `value AS name, ...` of names and values in turn.
    fn named(&self, args: &[&Expr]) -> String {
        let pairs = args.chunks(2).filter_map(|pair| match pair {
            [name, value] => Some(format!(
                "{} AS {}",
                self.untyped(value),
                quote_ident(literal(name)?)
            )),
            _ => None,
        });
        pairs.collect::<Vec<_>>().join(", ")
    }

    /// A value of a type, which a literal has not yet.
    fn of_type(&self, value: &Expr, ty: &str) -> String {
        match (value, literal(value)) {
            (Expr::Const(_), Some(text)) => format!("{}::{ty}", quote_literal(text)),
            _ => self.print(value, Parent::Free),
        }
    }

    /// XMLTABLE, of the call that it travels as.
    pub(super) fn xml_table_call(&self, args: &[ast::FunctionArg]) -> String {
        match plain(args).as_slice() {
            [row, document, rest @ ..] => self.xml_table(row, document, rest),
            _ => String::new(),
        }
    }

    fn xml_table(&self, row: &Expr, document: &Expr, rest: &[&Expr]) -> String {
        let mut text = "XMLTABLE(".to_owned();
        let mut columns = Vec::new();
        for part in rest {
            let Expr::Function(part) = part else { continue };
            let items = arguments(part);
            if xml_call(part) != Some("xmlnamespaces") {
                columns.push(self.xml_table_column(&items));
                continue;
            }
            let pairs = items.chunks(2).filter_map(|pair| match pair {
                [name, uri] => Some(match literal(name)? {
                    "" => format!("DEFAULT {}", self.of_type(uri, "text")),
                    name => format!("{} AS {}", self.of_type(uri, "text"), quote_ident(name)),
                }),
                _ => None,
            });
            let pairs = pairs.collect::<Vec<_>>().join(", ");
            text.push_str(&format!("XMLNAMESPACES ({pairs}), "));
        }
        text.push_str(&format!(
            "({}) PASSING ({}) COLUMNS {})",
            self.of_type(row, "text"),
            self.of_type(document, "xml"),
            columns.join(", ")
        ));
        text
    }

    fn xml_table_column(&self, items: &[&Expr]) -> String {
        let [name, ty, path, default, said] = items else {
            return String::new();
        };
        let mut text = quote_ident(literal(name).unwrap_or_default());
        let said = literal(said).unwrap_or_default();
        let Expr::TypeCast(cast) = ty else {
            return format!("{text} FOR ORDINALITY");
        };
        let ty = crate::deparse::expr::type_text(&cast.type_name);
        text.push_str(&format!(" {ty}"));
        if !is_null(default) {
            text.push_str(&format!(" DEFAULT ({})", self.of_type(default, &ty)));
        }
        if !is_null(path) {
            text.push_str(&format!(" PATH ({})", self.of_type(path, "text")));
        }
        if !said.is_empty() {
            text.push_str(&format!(" {said}"));
        }
        text
    }

    /// A construct that travels as a call.
    pub(super) fn xml_construct(&self, construct: &str, function: &ast::Function) -> String {
        let args = arguments(function);
        let one = |value: &Expr| self.print(value, Parent::Free);
        match (construct, args.as_slice()) {
            ("xmlelement", [name, rest @ ..]) => {
                let mut parts = vec![format!(
                    "NAME {}",
                    quote_ident(literal(name).unwrap_or_default())
                )];
                let mut content = rest;
                if let [Expr::Function(first), behind @ ..] = rest
                    && xml_call(first) == Some("xmlattributes")
                {
                    parts.push(format!("XMLATTRIBUTES({})", self.named(&arguments(first))));
                    content = behind;
                }
                parts.extend(content.iter().map(|value| self.untyped(value)));
                format!("XMLELEMENT({})", parts.join(", "))
            }
            ("xmlforest", values) => format!("XMLFOREST({})", self.named(values)),
            ("xmlparse", [kind, text, rest @ ..]) => format!(
                "XMLPARSE({} {} {} WHITESPACE)",
                literal(kind).unwrap_or_default(),
                one(text),
                rest.first()
                    .and_then(|word| literal(word))
                    .unwrap_or("STRIP")
            ),
            ("xmlpi", [target, rest @ ..]) => {
                let mut parts = vec![format!(
                    "NAME {}",
                    quote_ident(literal(target).unwrap_or_default())
                )];
                parts.extend(self.all(rest));
                format!("XMLPI({})", parts.join(", "))
            }
            ("xmlroot", [value, version, rest @ ..]) => {
                let version = match is_null(version) {
                    true => "NO VALUE".to_owned(),
                    false => one(version),
                };
                let standalone = rest.first().and_then(|word| literal(word));
                let standalone = standalone.map(|said| format!(", STANDALONE {said}"));
                format!(
                    "XMLROOT({}, VERSION {version}{})",
                    one(value),
                    standalone.unwrap_or_default()
                )
            }
            ("xmlserialize", [kind, value, target]) => {
                let ty = match target {
                    Expr::TypeCast(cast) => crate::deparse::expr::type_text(&cast.type_name),
                    _ => "text".to_owned(),
                };
                let text = format!(
                    "XMLSERIALIZE({} {} AS {ty})",
                    literal(kind).unwrap_or_default(),
                    one(value)
                );
                match (ty.as_str(), self.is_pretty()) {
                    ("text", _) => text,
                    (_, true) => format!("{text}::{ty}"),
                    (_, false) => format!("({text})::{ty}"),
                }
            }
            ("xmlexists", [path, value]) => {
                format!("XMLEXISTS(({}) PASSING ({}))", one(path), one(value))
            }
            (construct, values) => {
                format!(
                    "{}({})",
                    construct.to_uppercase(),
                    self.all(values).join(", ")
                )
            }
        }
    }
}
