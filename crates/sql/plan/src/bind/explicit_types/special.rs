//! Arrays, rows, collations, windows and functions with a syntax of their own, with the types of what they are made
//! of written out.

use super::{Typed, Typer, string};
use logstead_sql_func as func;
use logstead_sql_parse::ast::{
    self, Expr, FrameMode, FuncArg, FuncCall, FuncFormat, FuncName, NodeBox,
};
use logstead_sql_types::value::{SqlType, info, oid};

const TEXT: SqlType = SqlType::of(oid::TEXT);

impl Typer<'_> {
    pub(super) fn special(&self, expr: &Expr) -> Option<Typed> {
        Some(match expr {
            Expr::ArrayExpr(array) if !array.elements.iter().any(is_array) => {
                self.array(array, expr)
            }
            Expr::CollateClause(node) => {
                let (operand, ty) = self.expr(&node.arg);
                let ty = ty.map(|ty| match ty.oid {
                    oid::UNKNOWN => (self.to((operand.clone(), Some(ty)), TEXT), TEXT),
                    _ => (operand.clone(), ty),
                });
                let (operand, ty) = match ty {
                    Some((operand, ty)) => (operand, Some(ty)),
                    None => (operand, None),
                };
                let collated = ast::CollateClause {
                    arg: operand,
                    collname: node.collname.clone(),
                    location: node.location,
                };
                (Expr::CollateClause(NodeBox::new(collated)), ty)
            }
            Expr::RowExpr(node) if logstead_sql_parse::row_of(expr).is_some() => {
                let row = ast::RowExpr {
                    args: node.args.iter().map(|item| self.expr(item).0).collect(),
                    ..**node
                };
                (Expr::RowExpr(NodeBox::new(row)), self.names.type_of(expr))
            }
            Expr::CoalesceExpr(node) => {
                let (args, ty) = self.unified(&node.args);
                let location = node.location;
                let coalesce = ast::CoalesceExpr { args, location };
                (Expr::CoalesceExpr(NodeBox::new(coalesce)), ty)
            }
            Expr::MinMaxExpr(node) => {
                let (args, ty) = self.unified(&node.args);
                let min_max = ast::MinMaxExpr { args, ..**node };
                (Expr::MinMaxExpr(NodeBox::new(min_max)), ty)
            }
            Expr::GroupingFunc(node) => {
                let grouping = ast::GroupingFunc {
                    args: node.args.iter().map(|arg| self.expr(arg).0).collect(),
                    location: node.location,
                };
                let integer = SqlType::of(oid::INT4);
                (Expr::GroupingFunc(NodeBox::new(grouping)), Some(integer))
            }
            _ => return None,
        })
    }

    /// A call by SQL's own words; none if it is one as any other.
    pub(super) fn sql_syntax(&self, call: &FuncCall, written: &Expr) -> Option<Typed> {
        let values = call.values()?;
        let function = call.sql_syntax()?;
        let of = |e: &&Expr| self.expr(e).0;
        let text = |e: &&Expr| *self.text_operand(e);
        let mut typed = call.clone();
        let (args, ty): (Vec<Expr>, Option<SqlType>) = match (function, values.as_slice()) {
            // The first, or the second, is a word.
            ("extract", [field, from]) => {
                let args = vec![(*field).clone(), of(from)];
                (args, self.names.type_of(written))
            }
            ("normalize" | "is_normalized", [operand, form @ ..]) => {
                let form = form.iter().map(|form| (*form).clone());
                let ty = match function {
                    "normalize" => TEXT,
                    _ => SqlType::of(oid::BOOL),
                };
                ([text(operand)].into_iter().chain(form).collect(), Some(ty))
            }
            ("overlaps", all) => (all.iter().map(of).collect(), Some(SqlType::of(oid::BOOL))),
            ("timezone", [zone, timestamp]) => {
                let zone = match string(zone) {
                    Some(_) => text(zone),
                    None => of(zone),
                };
                (vec![zone, of(timestamp)], self.names.type_of(written))
            }
            ("ltrim" | "rtrim" | "btrim", all @ ([_] | [_, _])) => {
                (all.iter().map(text).collect(), Some(TEXT))
            }
            ("position" | "overlay" | "substring" | "xmlexists", all) => {
                let arguments = self.arguments_of(function, all.iter().copied());
                let Some((args, types, result)) = arguments else {
                    return Some((written.clone(), self.names.type_of(written)));
                };
                // By a pattern it is a call like others.
                if function == "substring"
                    && matches!(types.as_slice(), [_, ty] if ty.oid == oid::TEXT)
                {
                    typed.funcformat = FuncFormat::ExplicitCall;
                    typed.funcname = FuncName::of([function]);
                }
                (args, Some(result))
            }
            _ => return None,
        };
        typed.args = args.into_iter().map(FuncArg::from).collect();
        Some((Expr::FuncCall(NodeBox::new(typed)), ty))
    }

    /// The arguments of a function of that name, of which types they are, and what it gives.
    fn arguments_of<'e>(
        &self,
        name: &str,
        operands: impl Iterator<Item = &'e Expr>,
    ) -> Option<(Vec<Expr>, Vec<SqlType>, SqlType)> {
        let typed: Vec<Typed> = operands.map(|e| self.expr(e)).collect();
        let types: Vec<SqlType> = typed.iter().map(|t| t.1).collect::<Option<_>>()?;
        let resolved = func::resolve_function(None, name, &types, self.lookup.types()).ok()?;
        let args = { typed.into_iter().zip(&resolved.args) }.map(|(arg, ty)| self.to(arg, *ty));
        Some((args.collect(), resolved.args, resolved.result))
    }

    fn array(&self, array: &ast::AArrayExpr, expr: &Expr) -> Typed {
        let (elem, common) = self.unify(array.elements.iter().map(|e| self.expr(e)).collect());
        let ty = common
            .and_then(|ty| info::array_of(ty.oid))
            .map(SqlType::of);
        (Expr::array(elem), ty.or_else(|| self.names.type_of(expr)))
    }

    /// `ARRAY[...]::type[]`: the elements are brought to the type, and the array is of it. Of none it stays a cast.
    pub(super) fn cast_array(&self, array: &Expr, ty: SqlType) -> Option<Expr> {
        let element = self
            .lookup
            .catalog
            .types
            .element_of(ty.oid)
            .filter(|_| ty.typmod < 0)?;
        let Expr::ArrayExpr(array) = array else {
            return None;
        };
        if array.elements.is_empty() {
            return None;
        }
        let elem = array.elements.iter().map(|e| match is_array(e) {
            true => self.cast_array(e, ty),
            false => Some(self.to(self.expr(e), SqlType::of(element))),
        });
        Some(Expr::array(elem.collect::<Option<_>>()?))
    }

    /// The operands of a comparison with the elements of an array or the rows of a query.
    pub(super) fn array_operands(&self, left: &Expr, right: &Expr) -> (Box<Expr>, Box<Expr>) {
        let (left, array) = (self.expr(left), self.expr(right));
        let unknown = |ty: SqlType| ty.oid == oid::UNKNOWN;
        let (left_type, array_type) = (left.1, array.1);
        let element = array_type.and_then(|ty| self.lookup.catalog.types.element_of(ty.oid));
        let left = match (left_type.is_some_and(unknown), element) {
            (true, Some(element)) => self.to(left, SqlType::of(element)),
            _ => left.0,
        };
        let wanted = left_type.filter(|ty| !unknown(*ty));
        let wanted = wanted.and_then(|ty| info::array_of(ty.oid));
        let is_query = |e: &Expr| e.scalar_query().is_some();
        let right = match (array_type, wanted) {
            (Some(ty), Some(wanted)) if unknown(ty) => self.to(array, SqlType::of(wanted)),
            // Without its cast it would be a query whose rows are compared.
            (Some(ty), _) if !is_query(right) && is_query(&array.0) => self.cast(array.0, ty),
            _ => array.0,
        };
        (Box::new(left), Box::new(right))
    }

    /// A window: an offset that is a bare constant takes the type that the frame asks for.
    pub(super) fn window(&self, spec: &mut ast::WindowDef) {
        for e in &mut spec.partition_clause {
            *e = self.expr(e).0;
        }
        let mut key = None;
        for item in &mut spec.order_clause {
            let (e, ty) = self.expr(&item.node);
            item.node = e;
            key = key.or(ty);
        }
        let Some(frame) = &mut spec.frame else {
            return;
        };
        let offset = match frame.mode {
            FrameMode::Range => key.map(|key| match key.oid {
                oid::DATE | oid::TIME | oid::TIMETZ | oid::TIMESTAMP | oid::TIMESTAMPTZ => {
                    oid::INTERVAL
                }
                oid::FLOAT4 => oid::FLOAT8,
                other => other,
            }),
            FrameMode::Rows | FrameMode::Groups => Some(oid::INT8),
        };
        for bound in [Some(&mut frame.start), frame.end.as_mut()] {
            let Some(e) = bound.and_then(ast::FrameBound::offset_mut) else {
                continue;
            };
            *e = match (string(e), offset) {
                (Some(_), Some(ty)) => self.expr(&self.cast(e.clone(), SqlType::of(ty))).0,
                _ => self.expr(e).0,
            };
        }
    }
}

fn is_array(expr: &Expr) -> bool {
    matches!(expr, Expr::ArrayExpr(_))
}
