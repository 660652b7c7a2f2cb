//! Characteristics of transactions: isolation, READ ONLY, DEFERRABLE.
//!
//! Owns: [`TransactionModes`], by which settings they begin, and what SET TRANSACTION and SET SESSION CHARACTERISTICS
//! may still change of them.

use super::Session;
use crate::as_of_snapshot::read_write;
use logstead_engine::Isolation;
use logstead_sql_parse::ast::{IsolationLevel, TransactionMode};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// Characteristics of a transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct TransactionModes {
    pub(super) isolation: Isolation,
    pub(super) read_only: bool,
    /// A read-only SERIALIZABLE transaction waits for a snapshot from which it cannot fail.
    pub(super) deferrable: bool,
    /// As SHOW transaction_isolation says.
    pub(super) isolation_name: &'static str,
}

const READ_COMMITTED: &str = "read committed";
const REPEATABLE_READ: &str = "repeatable read";
const SERIALIZABLE: &str = "serializable";

impl Session {
    /// Characteristics for a transaction that begins now.
    pub(super) fn default_modes(&self) -> Result<TransactionModes> {
        let settings = self.context.settings.borrow();
        let typed = settings.typed();
        let mut modes = TransactionModes {
            isolation: Isolation::ReadCommitted,
            read_only: typed.default_read_only || self.is_at_replica(),
            deferrable: typed.default_deferrable,
            isolation_name: READ_COMMITTED,
        };
        set_isolation(&mut modes, &typed.default_isolation)?;
        Ok(modes)
    }

    /// What reads the past is read-only.
    pub(super) fn refuse_read_write_in_past(&self, modes: &[TransactionMode]) -> Result<()> {
        let is_wanted =
            |mode: &TransactionMode| matches!(mode, TransactionMode::ReadOnly(false, _));
        match self.reads_as_of() && modes.iter().any(is_wanted) {
            true => Err(read_write()),
            false => Ok(()),
        }
    }

    /// SET TRANSACTION inside a transaction.
    pub(super) fn set_modes(&mut self, modes: &[TransactionMode]) -> Result<()> {
        let mut chosen = self.modes;
        apply(&mut chosen, modes)?;
        self.check_modes(&chosen, deferrable(modes))?;
        self.modes = chosen;
        self.context.take_modes(&chosen);
        Ok(())
    }

    /// May the transaction's characteristics become `chosen`? After its first query only some may.
    pub(super) fn check_modes(
        &self,
        chosen: &TransactionModes,
        deferrable: Option<bool>,
    ) -> Result<()> {
        let refused = |why| Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, why));
        let is_within = !self.savepoints.is_empty();
        let has_begun = self.open.is_some();
        let writes = self.modes.read_only && !chosen.read_only;
        if deferrable.is_some() && is_within {
            return refused(
                "SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction",
            );
        }
        if deferrable.is_some() && has_begun {
            return refused("SET TRANSACTION [NOT] DEFERRABLE must be called before any query");
        }
        if chosen.isolation != self.modes.isolation && has_begun {
            return Err(too_late());
        }
        if chosen.isolation != self.modes.isolation && is_within {
            return refused(
                "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction",
            );
        }
        if writes && is_within {
            return refused(
                "cannot set transaction read-write mode inside a read-only transaction",
            );
        }
        if writes && has_begun {
            return refused("transaction read-write mode must be set before any query");
        }
        Ok(())
    }

    pub(super) fn set_session_characteristics(&mut self, modes: &[TransactionMode]) -> Result<()> {
        let mut chosen = self.default_modes()?;
        // What every transaction of a replica is says nothing of the setting.
        chosen.read_only = self.context.settings.borrow().typed().default_read_only;
        apply(&mut chosen, modes)?;
        let mut settings = self.context.settings.borrow_mut();
        settings.set(
            "default_transaction_isolation",
            chosen.isolation_name,
            false,
        )?;
        settings.set(
            "default_transaction_read_only",
            on_off(chosen.read_only),
            false,
        )?;
        if deferrable(modes).is_some() {
            settings.set(
                "default_transaction_deferrable",
                on_off(chosen.deferrable),
                false,
            )?;
        }
        Ok(())
    }

    /// SET transaction_isolation / transaction_read_only / transaction_deferrable.
    pub(super) fn set_mode_by_name(&mut self, name: &str, value: &str) -> Result<()> {
        let mut chosen = self.modes;
        let mut deferrable = None;
        match name {
            "transaction_isolation" => {
                set_isolation(&mut chosen, &value.to_ascii_lowercase())?;
            }
            "transaction_read_only" => {
                chosen.read_only =
                    logstead_sql_catalog::settings::parse_bool(value).unwrap_or(false)
            }
            "transaction_deferrable" => {
                chosen.deferrable =
                    logstead_sql_catalog::settings::parse_bool(value).unwrap_or(false);
                deferrable = Some(chosen.deferrable);
            }
            _ => {}
        }
        if name == "transaction_read_only" && !chosen.read_only {
            if self.reads_as_of() {
                return Err(read_write());
            }
            self.refuse_read_write_at_replica()?;
        }
        if name == "transaction_isolation" && chosen.isolation == Isolation::Serializable {
            self.refuse_serializable_at_replica()?;
        }
        self.check_modes(&chosen, deferrable)?;
        self.modes = chosen;
        self.context.take_modes(&chosen);
        Ok(())
    }
}

/// A flag as settings have it.
pub(super) fn on_off(flag: bool) -> &'static str {
    if flag { "on" } else { "off" }
}

/// What the modes say of DEFERRABLE.
pub(super) fn deferrable(modes: &[TransactionMode]) -> Option<bool> {
    modes.iter().rev().find_map(|mode| match mode {
        TransactionMode::Deferrable(deferrable, _) => Some(*deferrable),
        _ => None,
    })
}

pub(super) fn apply(chosen: &mut TransactionModes, modes: &[TransactionMode]) -> Result<()> {
    for mode in modes {
        match mode {
            TransactionMode::ReadOnly(read_only, _) => chosen.read_only = *read_only,
            TransactionMode::Deferrable(deferrable, _) => chosen.deferrable = *deferrable,
            TransactionMode::Isolation(level, _) => set_isolation(
                chosen,
                match level {
                    IsolationLevel::ReadUncommitted => "read uncommitted",
                    IsolationLevel::ReadCommitted => READ_COMMITTED,
                    IsolationLevel::RepeatableRead => REPEATABLE_READ,
                    IsolationLevel::Serializable => SERIALIZABLE,
                },
            )?,
        }
    }
    Ok(())
}

fn set_isolation(modes: &mut TransactionModes, name: &str) -> Result<()> {
    (modes.isolation, modes.isolation_name) = match name {
        // READ UNCOMMITTED behaves as READ COMMITTED, but is shown by its own name, as in PostgreSQL.
        "read uncommitted" => (Isolation::ReadCommitted, "read uncommitted"),
        READ_COMMITTED => (Isolation::ReadCommitted, READ_COMMITTED),
        REPEATABLE_READ => (Isolation::RepeatableRead, REPEATABLE_READ),
        SERIALIZABLE => (Isolation::Serializable, SERIALIZABLE),
        other => {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("invalid value for parameter \"transaction_isolation\": \"{other}\""),
            ));
        }
    };
    Ok(())
}

fn too_late() -> SqlError {
    SqlError::new(
        SqlState::ACTIVE_SQL_TRANSACTION,
        "SET TRANSACTION ISOLATION LEVEL must be called before any query",
    )
}
