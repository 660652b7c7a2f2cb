//! Statements about databases and extensions.

use super::object::unexpected_object;
use super::{Lower, Lowered};
use crate::ast::{AlterDatabaseStmt, CreateExtensionStmt, DefArg, DefElem, Stmt};
use crate::{DatabaseCommand, DatabaseOption, ExtensionCommand, OptionValue, StatementKind};
use logstead_sql_types::error::Result;

fn of_database(command: DatabaseCommand) -> Lowered {
    Lowered::command(StatementKind::Database(Box::new(command)))
}

fn of_extension(command: ExtensionCommand) -> Lowered {
    Lowered::command(StatementKind::Extension(Box::new(command)))
}

impl Lower<'_> {
    /// Lowers a statement about databases or extensions.
    pub(super) fn of_database(&self, stmt: &Stmt) -> Result<Lowered> {
        Ok(match stmt {
            Stmt::Createdb(create) => of_database(DatabaseCommand::Create {
                name: create.dbname.to_string(),
                options: self.database_options(&create.options)?,
            }),
            Stmt::AlterDatabase(alter) => of_database(self.alter_database(alter)?),
            Stmt::AlterDatabaseRefreshColl(alter) => {
                of_database(DatabaseCommand::RefreshCollation {
                    name: alter.dbname.to_string(),
                })
            }
            Stmt::AlterDatabaseSet(alter) => of_database(DatabaseCommand::Setting {
                name: alter.dbname.to_string(),
                role: None,
                change: self.setting_change(&alter.setstmt)?,
                of_role: false,
            }),
            Stmt::Dropdb(drop) => of_database(DatabaseCommand::Drop {
                if_exists: drop.missing_ok,
                name: drop.dbname.to_string(),
                force: !drop.options.is_empty(),
            }),
            Stmt::CreateExtension(create) => of_extension(self.create_extension(create)?),
            Stmt::AlterExtension(alter) if alter.options.is_empty() => {
                of_extension(ExtensionCommand::Update {
                    name: alter.extname.to_string(),
                })
            }
            Stmt::AlterExtension(_) => Lowered::unsupported("ALTER EXTENSION ... UPDATE TO"),
            Stmt::AlterExtensionContents(_) => Lowered::unsupported("this ALTER EXTENSION"),
            _ => return Err(unexpected_object()),
        })
    }

    fn database_options(&self, options: &[DefElem]) -> Result<Vec<DatabaseOption>> {
        let options = options.iter().map(|option| {
            Ok(DatabaseOption {
                name: option.name.to_string(),
                value: match &option.arg {
                    None => OptionValue::Default,
                    Some(DefArg::Integer(number)) => OptionValue::Number(*number),
                    Some(DefArg::Float(text) | DefArg::String(text)) => {
                        OptionValue::Word(text.to_string())
                    }
                    Some(_) => return Err(unexpected_object()),
                },
                position: option.location.character(self.text()),
            })
        });
        options.collect()
    }

    fn alter_database(&self, stmt: &AlterDatabaseStmt) -> Result<DatabaseCommand> {
        let name = stmt.dbname.to_string();
        // SET TABLESPACE is an option as well.
        if let [option] = stmt.options.as_slice()
            && &*option.name == "tablespace"
            && let Some(DefArg::String(tablespace)) = &option.arg
        {
            let tablespace = tablespace.to_string();
            return Ok(DatabaseCommand::Move { name, tablespace });
        }
        let options = self.database_options(&stmt.options)?;
        Ok(DatabaseCommand::Alter { name, options })
    }

    fn create_extension(&self, stmt: &CreateExtensionStmt) -> Result<ExtensionCommand> {
        let (mut schema, mut version, mut cascade) = (None, None, None);
        for option in &stmt.options {
            match (&*option.name, &option.arg) {
                ("schema", Some(DefArg::String(name))) => {
                    self.once(&mut schema, name.to_string(), option)?;
                }
                ("new_version", Some(DefArg::String(name))) => {
                    self.once(&mut version, name.to_string(), option)?;
                }
                ("cascade", _) => self.once(&mut cascade, (), option)?,
                _ => return Err(unexpected_object()),
            }
        }
        Ok(ExtensionCommand::Create {
            if_not_exists: stmt.if_not_exists,
            name: stmt.extname.to_string(),
            schema,
            version,
        })
    }
}
