//! Which rule a statement is read by.

use super::Parser;
use crate::ast::{DiscardMode, Stmt};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;

impl Parser<'_> {
    /// `toplevel_stmt`
    pub(super) fn toplevel_stmt(&mut self) -> Result<Stmt> {
        let stmt = match self.kind() {
            T::Keyword(K::Begin | K::End) => self.transaction_stmt_legacy()?,
            _ => self.stmt()?,
        };
        self.check_as_of(&stmt)?;
        Ok(stmt)
    }

    /// `stmt`
    pub(super) fn stmt(&mut self) -> Result<Stmt> {
        if self.at_preparable() {
            return self.preparable_stmt();
        }
        let T::Keyword(word) = self.kind() else {
            return self.unexpected();
        };
        match word {
            K::Create => self.create(),
            K::Alter => self.alter(),
            K::Drop => self.drop(),
            K::Comment => self.comment_stmt(),
            K::Security => self.sec_label_stmt(),
            K::Grant => self.grant(),
            K::Revoke => self.revoke(),
            K::Copy => self.copy_stmt(),
            K::Truncate => self.truncate_stmt(),
            K::Refresh => self.refresh_mat_view_stmt(),
            K::Import => self.import_foreign_schema_stmt(),
            K::Reassign => self.reassign_owned_stmt(),
            K::Abort | K::Start | K::Commit | K::Rollback | K::Savepoint | K::Release => {
                self.transaction_stmt()
            }
            K::Prepare => {
                self.pass();
                match self.is(K::Transaction) && self.kind_at(1) == T::SConst {
                    true => self.prepare_transaction(),
                    false => self.prepare_stmt(),
                }
            }
            K::Set => self.set_stmt(),
            K::Reset => self
                .variable_reset()
                .map(|stmt| Stmt::VariableSet(Box::new(stmt))),
            K::Show => self.variable_show_stmt(),
            K::Discard => self.discard_stmt(),
            K::Execute => Ok(Stmt::Execute(Box::new(self.execute_stmt()?))),
            K::Deallocate => self.deallocate_stmt(),
            K::Declare => self.declare_cursor_stmt(),
            K::Fetch | K::Move => self.fetch_stmt(),
            K::Close => self.close_portal_stmt(),
            K::Explain => self.explain_stmt(),
            K::Call => self.call_stmt(),
            K::Do => self.do_stmt(),
            K::Lock => self.lock_stmt(),
            K::Notify => self.notify_stmt(),
            K::Listen => {
                self.pass();
                Ok(Stmt::Listen(self.col_id()?))
            }
            K::Unlisten => {
                self.pass();
                match self.take_token(T::Star) {
                    true => Ok(Stmt::Unlisten(None)),
                    false => Ok(Stmt::Unlisten(Some(self.col_id()?))),
                }
            }
            K::Vacuum => self.vacuum_stmt(),
            K::Analyze | K::Analyse => self.analyze_stmt(),
            K::Cluster => self.cluster_stmt(),
            K::Reindex => self.reindex_stmt(),
            K::Checkpoint => {
                self.pass();
                Ok(Stmt::CheckPoint)
            }
            K::Load => {
                self.pass();
                Ok(Stmt::Load(self.sconst()?))
            }
            _ => self.unexpected(),
        }
    }

    /// `DiscardStmt`
    fn discard_stmt(&mut self) -> Result<Stmt> {
        self.pass();
        let mode = match self.kind() {
            T::Keyword(K::All) => DiscardMode::All,
            T::Keyword(K::Temp | K::Temporary) => DiscardMode::Temp,
            T::Keyword(K::Plans) => DiscardMode::Plans,
            T::Keyword(K::Sequences) => DiscardMode::Sequences,
            _ => return self.unexpected(),
        };
        self.pass();
        Ok(Stmt::Discard(mode))
    }
}
