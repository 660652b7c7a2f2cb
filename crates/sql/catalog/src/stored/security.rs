//! The stored form of row security: the end of a table's definition, in a format that builds without row security do
//! not read. They refuse the database instead of showing everybody all rows.

use crate::row_security::{Policy, RowSecurity};
use crate::stored::bytes::{DefinitionReader, DefinitionWriter, corrupt};
use crate::stored::{read_view, write_view};
use logstead_sql_parse::PolicyCommand;
use logstead_sql_types::RoleId;
use logstead_sql_types::error::Result;
use std::sync::Arc;

/// Adds it to a table's definition.
pub(crate) fn write(w: &mut DefinitionWriter, security: &RowSecurity) {
    w.u8(u8::from(security.enabled) | u8::from(security.forced) << 1);
    w.list(&security.policies, |w, policy| {
        w.u32(policy.oid);
        w.bytes(policy.name.as_bytes());
        // One byte, by construction.
        w.u8(u8::try_from(policy.command.code()).unwrap_or(b'*'));
        w.u8(u8::from(policy.permissive));
        w.list(&policy.roles, |w, role| w.u32(role.get()));
        w.opt(policy.using.as_ref(), |w, view| write_view(w, view));
        w.opt(policy.check.as_ref(), |w, view| write_view(w, view));
    });
}

/// Reads it.
pub(crate) fn read(r: &mut DefinitionReader<'_>) -> Result<RowSecurity> {
    let flags = r.u8()?;
    if flags > 3 {
        return Err(corrupt("unknown flags of row security"));
    }
    let policies = r.list(|r| {
        Ok(Arc::new(Policy {
            oid: r.u32()?,
            name: r.str()?,
            command: PolicyCommand::of_code(r.u8()?)
                .ok_or_else(|| corrupt("unknown command of a policy"))?,
            permissive: r.bool()?,
            roles: r.list(|r| Ok(RoleId::new(r.u32()?)))?,
            using: r.opt(read_view)?.map(Arc::new),
            check: r.opt(read_view)?.map(Arc::new),
        }))
    })?;
    Ok(RowSecurity {
        enabled: flags & 1 != 0,
        forced: flags & 2 != 0,
        policies,
    })
}
