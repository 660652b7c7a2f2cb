//! CASE.

use super::Binder;
use crate::query::expr::Expr;
use logstead_sql_parse::ast::{self, Expr as Ast};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{SqlType, oid};
use logstead_types::SqlState;

impl Binder<'_> {
    pub(crate) fn case(&mut self, node: &ast::CaseExpr) -> Result<Expr> {
        let (arms, otherwise) = (node.args.as_slice(), node.defresult.as_ref());
        let met = self.sets_met();
        let Some(operand) = &node.arg else {
            let case = self.case_of(None, arms, otherwise)?;
            self.refuse_sets_since(met, "CASE")?;
            return Ok(case);
        };
        let bound = self.expr(operand)?;
        let bound = self.settle(bound)?;
        let at = self.at(operand.location());
        let case = self.once(bound, |b, operand| {
            b.case_of(Some((operand, at)), arms, otherwise)
        })?;
        self.refuse_sets_since(met, "CASE")?;
        Ok(case)
    }

    fn case_of(
        &mut self,
        operand: Option<(Expr, Option<usize>)>,
        arms: &[ast::CaseWhen],
        otherwise: Option<&Ast>,
    ) -> Result<Expr> {
        let mut conditions = Vec::with_capacity(arms.len());
        // PostgreSQL looks at ELSE first when it chooses the result type.
        let mut results = Vec::with_capacity(arms.len() + 1);
        for arm in arms {
            let condition = match &operand {
                Some((operand, at)) => {
                    let value = self.expr(&arm.expr)?;
                    self.operator("=", operand.clone(), value, *at)?
                }
                None => {
                    let met = self.sets_met();
                    let condition = self.condition_of(&arm.expr, "CASE/WHEN")?;
                    if self.sets_met() > met {
                        return Err(SqlError::new(
                            SqlState::DATATYPE_MISMATCH,
                            "argument of CASE/WHEN must not return a set",
                        )
                        .at(self.at(arm.expr.location())));
                    }
                    condition
                }
            };
            conditions.push(condition);
            let result = self.expr(&arm.result)?;
            results.push((result, self.at(arm.result.location())));
        }
        let has_else = otherwise.is_some();
        if let Some(otherwise) = otherwise {
            let bound = self.expr(otherwise)?;
            results.insert(0, (bound, self.at(otherwise.location())));
        }
        let (mut results, mut ty) = self.unify(results, "CASE")?;
        if !has_else && ty.oid != oid::RECORD {
            // The NULL that stands for it has no modifier. A record's is its shape, which NULL may have.
            ty = SqlType::of(ty.oid);
        }
        let otherwise = has_else.then(|| Box::new(results.remove(0)));
        let arms: Vec<(Expr, Expr)> = conditions.into_iter().zip(results).collect();
        Ok(Expr::Case {
            arms,
            otherwise,
            ty,
        })
    }
}
