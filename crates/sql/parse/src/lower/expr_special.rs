//! Functions that SQL's own words call: EXTRACT, SUBSTRING, TRIM, OVERLAY, POSITION, AT TIME ZONE and their like.

use super::Lower;
use crate::ast::{Const, Expr, FuncCall, TypeCast, Value};
use crate::lowered::{self as library, Expr as L};
use logstead_sql_types::error::Result;

impl Lower<'_> {
    /// A call by SQL's own words. The arguments are in the order of the function's.
    pub(super) fn call_by_words(&self, node: &FuncCall) -> Result<L> {
        let args: Vec<&Expr> = node.args.iter().map(|arg| &arg.value).collect();
        match (node.words().unwrap_or_default(), args.as_slice()) {
            ("timezone", [zone, timestamp]) => self.at_time_zone(timestamp, zone, node.location),
            ("extract", [field, from]) => Ok(L::Extract {
                field: word_of(field).into(),
                expr: self.boxed(from)?,
            }),
            ("normalize", [text, form]) => {
                let form = L::column_ref([word_of(form).into()]);
                let args = vec![self.expr(text)?, form];
                let call = self.call_of_word("normalize", node.location);
                Ok(L::Function(self.call_with(call, args)))
            }
            ("is_normalized", _) => self.normalized_test(node, false),
            ("position", [whole, part]) => Ok(L::Position {
                expr: self.boxed(part)?,
                r#in: self.boxed(whole)?,
            }),
            ("overlay", [text, what, from, rest @ ..]) => Ok(L::Overlay {
                expr: self.boxed(text)?,
                overlay_what: self.boxed(what)?,
                overlay_from: self.boxed(from)?,
                overlay_for: self.boxed_if(rest.first().copied())?,
            }),
            ("substring", [text, rest @ ..]) => self.substring(text, rest),
            ("ltrim" | "rtrim" | "btrim", [text, rest @ ..]) => self.trim(node, text, rest),
            ("overlaps", [a, b, c, d]) => Ok(L::Overlaps(Box::new(library::OverlapsExpr {
                args: [self.expr(a)?, self.expr(b)?, self.expr(c)?, self.expr(d)?],
                location: node.location,
            }))),
            (word @ ("normalize" | "pg_collation_for"), _) => {
                let args: Result<Vec<L>> = args.iter().map(|arg| self.expr(arg)).collect();
                let call = self.call_of_word(word, node.location);
                Ok(L::Function(self.call_with(call, args?)))
            }
            _ => self.plain_call(node).map(L::Function),
        }
    }

    /// `IS NORMALIZED`
    pub(super) fn normalized_test(&self, node: &FuncCall, negated: bool) -> Result<L> {
        use library::NormalizationForm as Form;
        let mut args = node.args.iter().map(|arg| &arg.value);
        let Some(text) = args.next() else {
            return self.plain_call(node).map(L::Function);
        };
        let form = args.next().map(|form| match word_of(form) {
            "NFD" => Form::NFD,
            "NFKC" => Form::NFKC,
            "NFKD" => Form::NFKD,
            _ => Form::NFC,
        });
        Ok(L::IsNormalized {
            expr: self.operand_of_is(text)?,
            form,
            negated,
        })
    }

    /// SUBSTRING; a length alone has the grammar's beginning in front of it.
    fn substring(&self, text: &Expr, rest: &[&Expr]) -> Result<L> {
        let expr = self.boxed(text)?;
        let (from, length) = match rest {
            [Expr::Const(Const { location, .. }), Expr::TypeCast(cast)]
                if location.is_unknown() =>
            {
                let TypeCast { arg, .. } = &**cast;
                (None, Some(arg))
            }
            [from, rest @ ..] => (Some(*from), rest.first().copied()),
            [] => (None, None),
        };
        Ok(L::Substring {
            expr,
            substring_from: self.boxed_if(from)?,
            substring_for: self.boxed_if(length)?,
            special: false,
            shorthand: false,
        })
    }

    /// TRIM. With several characters it is a list of arguments.
    fn trim(&self, node: &FuncCall, text: &Expr, rest: &[&Expr]) -> Result<L> {
        let trim_where = match node.words() {
            Some("ltrim") => Some(library::TrimWhereField::Leading),
            Some("rtrim") => Some(library::TrimWhereField::Trailing),
            _ => None,
        };
        let (what, characters) = match rest {
            [] => (None, None),
            [what] => (Some(self.boxed(what)?), None),
            all => {
                let all: Result<Vec<L>> = all.iter().map(|what| self.expr(what)).collect();
                (None, Some(all?))
            }
        };
        Ok(L::Trim {
            expr: self.boxed(text)?,
            trim_where,
            trim_what: what,
            trim_characters: characters,
        })
    }
}

/// The text of a literal that stands for a word.
fn word_of(expr: &Expr) -> &str {
    match expr {
        Expr::Const(Const {
            value: Value::String(word),
            ..
        }) => word,
        _ => "",
    }
}
