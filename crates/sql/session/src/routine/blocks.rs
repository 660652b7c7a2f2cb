//! Blocks: their variables, and their handlers, for which the block is a part of the transaction that can be undone
//! alone.

use super::{Activation, Flow, Session};
use crate::client::{Client, LocalFuture};
use logstead_sql_parse::plpgsql::tree::{Block, Condition, ExceptionBlock};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, oid};
use logstead_types::SqlState;
use std::rc::Rc;

use super::values::VariableKind;

const ASSERT_FAILURE: SqlState = SqlState::new(b"P0004");

/// Does a condition fit an error?
fn fits(condition: Condition, error: &SqlError) -> bool {
    let code = error.code();
    match condition {
        Condition::Others => code != SqlState::QUERY_CANCELED && code != ASSERT_FAILURE,
        Condition::State(state) => {
            let class = state.as_str().strip_suffix("000");
            state == code || class.is_some_and(|class| code.as_str().starts_with(class))
        }
    }
}

impl Session {
    /// Runs a block.
    pub(super) fn block<'a>(
        &'a mut self,
        act: &'a mut Activation,
        block: &'a Block,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<Flow>> {
        Box::pin(async move {
            self.declare(act, block, client).await?;
            let flow = match &block.handlers {
                None => self.statements(act, &block.body, client).await?,
                Some(handlers) => self.handled(act, block, handlers, client).await?,
            };
            Ok(match flow {
                Flow::Exit(Some(label)) if block.label.as_ref() == Some(&label) => Flow::Next,
                flow => flow,
            })
        })
    }

    /// Gives a block's variables their first values.
    fn declare<'a>(
        &'a mut self,
        act: &'a mut Activation,
        block: &'a Block,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let routine = Rc::clone(&act.routine);
            let before = (act.line, act.doing);
            for number in &block.declares {
                let declared = &routine.body.variables[*number];
                act.line = declared.line;
                act.doing = "during statement block local variable initialization";
                act.values[*number] = Datum::Null;
                act.types[*number] = routine.first_types[*number];
                // A bound cursor has its own name.
                if declared.cursor.is_some() {
                    act.values[*number] = Datum::text(declared.name.as_str());
                    continue;
                }
                match (&declared.default, routine.kinds[*number]) {
                    (Some(default), _) => {
                        let (value, ty) = self.value(act, default, client).await?;
                        self.assign_variable(act, *number, value, ty)?;
                    }
                    // A domain may refuse NULL.
                    (None, VariableKind::Scalar(ty)) if ty.oid != oid::UNKNOWN => {
                        let base = self.context.base_type(ty);
                        self.assign_variable(act, *number, Datum::Null, base)?;
                    }
                    (None, _) => {}
                }
            }
            (act.line, act.doing) = before;
            Ok(())
        })
    }

    /// An error leaves a block with handlers, none of which takes it, or which is not undone yet.
    fn leave_block(&mut self, index: usize) {
        self.give_up(index);
        self.context.level.set(self.savepoints.len());
    }

    fn handled<'a>(
        &'a mut self,
        act: &'a mut Activation,
        block: &'a Block,
        handlers: &'a ExceptionBlock,
        client: &'a mut dyn Client,
    ) -> LocalFuture<'a, Result<Flow>> {
        Box::pin(async move {
            // A savepoint rolls back what is in it alone: the transaction has to be there first.
            self.transaction()?;
            let index = self.savepoints.len();
            self.make_savepoint(String::new());
            self.context.level.set(self.savepoints.len());
            act.parts += 1;
            self.atomic += 1;
            let ran = self.statements(act, &block.body, client).await;
            act.parts -= 1;
            self.atomic = self.atomic.saturating_sub(1);
            let error = match ran {
                Ok(flow) => {
                    self.release(index);
                    self.context.level.set(self.savepoints.len());
                    return Ok(flow);
                }
                Err(error) => error,
            };
            if error.fields().fatal {
                return Err(error);
            }
            let arm = handlers.arms.iter().find(|(conditions, _)| {
                conditions.iter().any(|condition| fits(*condition, &error))
            });
            let Some((_, body)) = arm else {
                self.leave_block(index);
                return Err(error);
            };
            if error.code() == SqlState::QUERY_CANCELED {
                // It was asked for once.
                self.signals.statement().answered();
            }
            // Whoever is told of the error is told of what it rests on: the transaction goes on, and depends on that.
            if let Err(error) = self.roll_back_to(index).await {
                self.leave_block(index);
                return Err(error);
            }
            self.release(index);
            self.context.level.set(self.savepoints.len());
            let text = error.code().as_str().to_owned();
            act.values[handlers.state] = Datum::text(text.as_str());
            act.values[handlers.message] = Datum::text(error.fields().message.as_str());
            let error = error.context(act.context());
            act.errors.push(error);
            let ran = self.statements(act, body, client).await;
            act.errors.pop();
            ran
        })
    }
}
