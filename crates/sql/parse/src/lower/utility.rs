//! PREPARE and EXECUTE, DECLARE, EXPLAIN, COPY, DO, CALL.

use super::{Lower, Lowered};
use crate::ast::{
    CallStmt, DeclareCursorStmt, DefArg, DefElem, DoStmt, ExecuteStmt, ExplainStmt, Expr, Location,
    PrepareStmt, SelectBody, SelectStmt, Stmt,
};
use crate::lowered as library;
use crate::{CreateView, DeclareCursor, DoBlock, StatementKind, ViewCommand};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

fn lowered(statement: library::Statement, kind: StatementKind) -> Lowered {
    Lowered {
        statement,
        kind,
        as_of: None,
    }
}

impl Lower<'_> {
    /// Lowers a statement that has another one, or an expression, in it.
    pub(super) fn utility(&self, stmt: &Stmt) -> Result<Lowered> {
        use StatementKind as K;
        match stmt {
            Stmt::Prepare(prepare) => self.prepare(prepare),
            Stmt::Execute(execute) => Ok(lowered(self.execute(execute)?, K::Prepared)),
            Stmt::DeclareCursor(declare) => self.declare_cursor(declare),
            Stmt::Explain(explain) => self.explain(explain),
            Stmt::Copy(copy) => self.copy(copy),
            Stmt::Do(block) => self.do_block(block),
            Stmt::Call(call) => self.call(call),
            _ => Err(SqlError::internal("a statement of another kind")),
        }
    }

    fn prepare(&self, prepare: &PrepareStmt) -> Result<Lowered> {
        let types = prepare.argtypes.iter();
        let statement = library::Statement::Prepare {
            name: self.ident(&prepare.name, Location::UNKNOWN),
            data_types: types.map(|ty| self.data_type(ty)).collect::<Result<_>>()?,
            statement: Box::new(self.preparable(&prepare.query)?),
        };
        Ok(Lowered {
            statement,
            kind: StatementKind::Prepared,
            as_of: self.as_of_stmt(&prepare.query),
        })
    }

    /// What a statement in another one is as of.
    pub(super) fn as_of_stmt(&self, stmt: &Stmt) -> Option<crate::AsOf> {
        match stmt {
            Stmt::Select(query) => self.as_of(query),
            _ => None,
        }
    }

    /// Lowers EXECUTE.
    pub(super) fn execute(&self, execute: &ExecuteStmt) -> Result<library::Statement> {
        let name = self.ident(&execute.name, Location::UNKNOWN);
        Ok(library::Statement::Execute {
            name,
            parameters: self.exprs(&execute.params)?,
        })
    }

    fn declare_cursor(&self, declare: &DeclareCursorStmt) -> Result<Lowered> {
        let both = |one: &str, other: &str| {
            let message = format!("cannot specify both {one} and {other}");
            Err(SqlError::new(SqlState::new(b"42P11"), message))
        };
        if declare.scroll && declare.no_scroll {
            return both("SCROLL", "NO SCROLL");
        }
        if declare.asensitive && declare.insensitive {
            return both("ASENSITIVE", "INSENSITIVE");
        }
        let query = self.query_alone(&declare.query)?;
        let cursor = DeclareCursor {
            name: declare.portalname.to_string(),
            binary: declare.binary,
            insensitive: declare.insensitive,
            scroll: match (declare.scroll, declare.no_scroll) {
                (true, _) => Some(true),
                (false, true) => Some(false),
                (false, false) => None,
            },
            hold: declare.hold,
        };
        Ok(lowered(query, StatementKind::Declare(Box::new(cursor))))
    }

    /// A query that may have no INTO.
    fn query_alone(&self, query: &SelectStmt) -> Result<library::Statement> {
        let mut first = query;
        while let SelectBody::SetOp(operation) = &first.body {
            first = &operation.larg;
        }
        if let SelectBody::Select(core) = &first.body
            && let Some(into) = &core.into_clause
        {
            let message = "SELECT ... INTO is not allowed here";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message)
                .at(self.error_position(into.location)));
        }
        Ok(library::Statement::Query(Box::new(self.query(query)?)))
    }

    fn explain(&self, explain: &ExplainStmt) -> Result<Lowered> {
        let statement = match &explain.query {
            Stmt::Select(query) => self.query_or_into(query)?.statement,
            Stmt::Insert(_) | Stmt::Update(_) | Stmt::Delete(_) | Stmt::Merge(_) => {
                self.preparable(&explain.query)?
            }
            Stmt::DeclareCursor(declare) => self.declare_cursor(declare)?.statement,
            Stmt::Execute(execute) => self.execute(execute)?,
            other => {
                let made = self.statement(other)?;
                match (made.kind, made.statement) {
                    (StatementKind::TableOfExecute(_), _) => {
                        return Err(SqlError::unsupported("EXPLAIN of CREATE TABLE AS EXECUTE"));
                    }
                    (StatementKind::View(command), _) => match *command {
                        ViewCommand::Create(view) => materialized_view(view),
                        _ => return Err(SqlError::unsupported("EXPLAIN of this statement")),
                    },
                    // What is not in the tree has no plan here.
                    (_, library::Statement::Command) => {
                        return Err(SqlError::unsupported("EXPLAIN of this statement"));
                    }
                    (_, statement) => statement,
                }
            }
        };
        let options = explain.options.iter();
        let options = options.map(|option| self.explain_option(option));
        let statement = library::Statement::Explain {
            statement: Box::new(statement),
            options: options.collect(),
        };
        Ok(Lowered {
            statement,
            kind: StatementKind::Explain,
            as_of: self.as_of_stmt(&explain.query),
        })
    }

    fn explain_option(&self, option: &DefElem) -> library::UtilityOption {
        let arg = match &option.arg {
            Some(DefArg::Integer(number)) => Some(number.to_string()),
            Some(DefArg::Float(word) | DefArg::String(word)) => Some(word.to_string()),
            _ => None,
        };
        library::UtilityOption {
            name: self.ident(&option.name, option.location),
            arg,
        }
    }

    fn do_block(&self, block: &DoStmt) -> Result<Lowered> {
        let (mut language, mut body) = (None, None);
        for arg in &block.args {
            let Some(DefArg::String(text)) = &arg.arg else {
                return Err(SqlError::internal("an argument of DO that is no text"));
            };
            let is_again = match &*arg.name {
                "language" => language.replace(text.to_lowercase()).is_some(),
                _ => {
                    let begins = self.literal_begins(arg.location, text);
                    body.replace((text.to_string(), begins)).is_some()
                }
            };
            if is_again {
                let message = "conflicting or redundant options";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message)
                    .at(self.error_position(arg.location)));
            }
        }
        let Some((body, begins)) = body else {
            let message = "no inline code specified";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        };
        let language = language.unwrap_or_else(|| "plpgsql".to_owned());
        let block = DoBlock::new(language, body, begins);
        Ok(Lowered::command(StatementKind::Do(Box::new(block))))
    }

    /// The character at which the value of a literal begins, from 1, if it stands in the text as it is.
    pub(super) fn literal_begins(&self, location: Location, value: &str) -> Option<usize> {
        let written = self.text().get(location.byte()?..)?;
        let lead = match written.strip_prefix('$') {
            Some(rest) => rest.find('$')? + 2,
            None if written.starts_with('\'') && !value.contains('\'') => 1,
            None => return None,
        };
        let as_it_is = written.get(lead..)?.starts_with(value);
        let lead = written.get(..lead)?.chars().count();
        as_it_is.then_some(self.error_position(location)? + lead)
    }

    fn call(&self, call: &CallStmt) -> Result<Lowered> {
        let function = Expr::FuncCall(call.funccall.clone().into());
        match self.expr(&function)? {
            library::Expr::Function(function) => Ok(lowered(
                library::Statement::Call(function),
                StatementKind::Call,
            )),
            _ => Err(SqlError::unsupported("CALL of this function")),
        }
    }
}

/// CREATE MATERIALIZED VIEW as EXPLAIN has it.
fn materialized_view(view: CreateView) -> library::Statement {
    library::Statement::CreateMaterializedView {
        name: view.name,
        if_not_exists: view.if_not_exists,
        query: view.query,
    }
}
