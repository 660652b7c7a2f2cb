//! Large objects in DDL: whose they are, what is granted on them, what is said of them. Whether they are there, the
//! session has asked.

use super::object_address::large_object_of;
use super::{DdlContext, owners};
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::large_objects::PG_LARGEOBJECT;
use logstead_sql_catalog::privileges::denied;
use logstead_sql_catalog::role::acl::AclKind;
use logstead_sql_parse::ast::{ObjectRef, RoleSpec};
use logstead_sql_types::RoleId;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Oid;

/// Says whose a new object is; of one that goes, forgets what is known of it.
pub async fn set_privileges(
    object: Oid,
    owner: Option<RoleId>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let database = cx.catalog()?.database;
    cx.state.begin_statement(cx.txn, cx.store, database);
    if let Some(owner) = owner {
        return cx
            .own_new_as(owner, (PG_LARGEOBJECT, object), None, AclKind::LargeObject)
            .await;
    }
    cx.lock_privileges().await?;
    cx.delete_privileges((PG_LARGEOBJECT, object)).await?;
    cx.put_comment(PG_LARGEOBJECT, object, 0, None).await?;
    cx.state.push(CatalogChange::DropLargeObject(object));
    Ok(())
}

/// Runs ALTER LARGE OBJECT ... OWNER TO.
pub(super) async fn alter_owner(
    object: &ObjectRef,
    owner: &RoleSpec,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let object = large_object_of(object)?;
    let owner = cx.find_role(owner)?.oid;
    if cx.catalog()?.owner_of((PG_LARGEOBJECT, object)) == owner {
        return Ok(());
    }
    must_own(object, cx)?;
    owners::must_be_member(owner, cx)?;
    owners::give((PG_LARGEOBJECT, object), owner, cx).await
}

/// 42501 unless the large object is the role's.
pub(super) fn must_own(object: Oid, cx: &mut DdlContext<'_>) -> Result<()> {
    match cx
        .with_acl_checker(|acl_checker, role| acl_checker.owns(role, (PG_LARGEOBJECT, object)))?
    {
        true => Ok(()),
        false => Err(denied(format!("must be owner of large object {object}"))),
    }
}
