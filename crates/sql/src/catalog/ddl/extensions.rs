//! CREATE and DROP EXTENSION. One extension is always there, as in a new database of PostgreSQL: plpgsql, which migrations ask for
//! without using it. No other can be had.

use super::DdlContext;
use crate::error::{Result, SqlError};
use crate::parse::ExtensionCommand;
use logstead_types::SqlState;

/// The extension that is always there.
const PLPGSQL: &str = "plpgsql";

/// Runs a statement about extensions.
pub(super) fn execute(command: &ExtensionCommand, cx: &mut DdlContext<'_>) -> Result<()> {
    match command {
        ExtensionCommand::Create {
            if_not_exists,
            name,
        } if name == PLPGSQL => {
            let exists = format!("extension \"{name}\" already exists");
            if !if_not_exists {
                return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, exists));
            }
            cx.notice(SqlState::DUPLICATE_OBJECT, format!("{exists}, skipping"));
            Ok(())
        }
        ExtensionCommand::Create { name, .. } => Err(not_available(name)),
        ExtensionCommand::Drop { if_exists, names } => {
            for name in names {
                if name == PLPGSQL {
                    return Err(SqlError::unsupported("DROP EXTENSION plpgsql"));
                }
                let absent = format!("extension \"{name}\" does not exist");
                if !if_exists {
                    return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, absent));
                }
                cx.notice(
                    SqlState::SUCCESSFUL_COMPLETION,
                    format!("{absent}, skipping"),
                );
            }
            Ok(())
        }
    }
}

fn not_available(name: &str) -> SqlError {
    let error = SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("extension \"{name}\" is not available"),
    );
    match name {
        "uuid-ossp" | "pgcrypto" => {
            error.hint("gen_random_uuid() makes random UUIDs without an extension.")
        }
        _ => error,
    }
}
