//! Access control lists: who was given which privilege on an object, by whom, and whether they may give it on.
//!
//! Owns: the rules of GRANT and REVOKE on one list ([`Acl::change`]), what a list gives a role ([`Acl::mask`]), who is
//! the best grantor ([`best_grantor`]), what an object has that was never granted ([`Acl::default_for`]), and the text
//! form. All of it is pure.
//!
//! Invariants:
//! - An item has a privilege: one that has lost all is taken out. The right to grant is never PUBLIC's.
//! - Whoever loses the right to grant has what it granted taken away as well (CASCADE), or the change is refused
//!   (RESTRICT): every item's grantor is the owner or holds the right to grant what the item gives.
//! - The owner may always grant; what it may do itself is in the list like anybody's, and can be revoked.
//!
//! Does not: store lists (`catalog` does), or know statements.

mod text;

use super::{DATABASE_OWNER, Roles};
use logstead_sql_types::RoleId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// 0LP01.
pub const INVALID_GRANT: SqlState = SqlState::new(b"0LP01");

/// Grantee of what everybody may, in the place of a role.
pub const ACL_ID_PUBLIC: RoleId = RoleId::new(0);

/// A set of privileges.
pub type AclMode = u16;

#[allow(missing_docs, reason = "SQL's own words")]
pub mod privilege {
    use super::AclMode;
    pub const INSERT: AclMode = 1;
    pub const SELECT: AclMode = 1 << 1;
    pub const UPDATE: AclMode = 1 << 2;
    pub const DELETE: AclMode = 1 << 3;
    pub const TRUNCATE: AclMode = 1 << 4;
    pub const REFERENCES: AclMode = 1 << 5;
    pub const TRIGGER: AclMode = 1 << 6;
    pub const EXECUTE: AclMode = 1 << 7;
    pub const USAGE: AclMode = 1 << 8;
    pub const CREATE: AclMode = 1 << 9;
    pub const TEMPORARY: AclMode = 1 << 10;
    pub const CONNECT: AclMode = 1 << 11;
    pub const SET: AclMode = 1 << 12;
    pub(crate) const ALTER_SYSTEM: AclMode = 1 << 13;
}

use privilege as p;

/// A privilege, as lists of privileges and statements write it.
#[derive(Clone, Copy, Debug)]
pub struct Privilege {
    /// Its bit.
    pub mask: AclMode,
    /// Its letter in an item.
    pub letter: char,
    /// Its name in GRANT.
    pub name: &'static str,
}

/// All privileges, in the order in which items show them.
#[rustfmt::skip]
pub const PRIVILEGES: [Privilege; 14] = [
    Privilege { mask: p::INSERT, letter: 'a', name: "INSERT" },
    Privilege { mask: p::SELECT, letter: 'r', name: "SELECT" },
    Privilege { mask: p::UPDATE, letter: 'w', name: "UPDATE" },
    Privilege { mask: p::DELETE, letter: 'd', name: "DELETE" },
    Privilege { mask: p::TRUNCATE, letter: 'D', name: "TRUNCATE" },
    Privilege { mask: p::REFERENCES, letter: 'x', name: "REFERENCES" },
    Privilege { mask: p::TRIGGER, letter: 't', name: "TRIGGER" },
    Privilege { mask: p::EXECUTE, letter: 'X', name: "EXECUTE" },
    Privilege { mask: p::USAGE, letter: 'U', name: "USAGE" },
    Privilege { mask: p::CREATE, letter: 'C', name: "CREATE" },
    Privilege { mask: p::TEMPORARY, letter: 'T', name: "TEMPORARY" },
    Privilege { mask: p::CONNECT, letter: 'c', name: "CONNECT" },
    Privilege { mask: p::SET, letter: 's', name: "SET" },
    Privilege { mask: p::ALTER_SYSTEM, letter: 'A', name: "ALTER SYSTEM" },
];

/// All bits that mean something.
const KNOWN: AclMode = (1 << 14) - 1;

/// Kinds of object that have lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum AclKind {
    Table,
    Column,
    Sequence,
    Database,
    Schema,
    Function,
    Language,
    Type,
    LargeObject,
    Tablespace,
    ForeignData,
    ForeignServer,
    Parameter,
}

impl AclKind {
    /// All privileges that its objects have.
    pub fn all(self) -> AclMode {
        match self {
            AclKind::Table => {
                p::INSERT
                    | p::SELECT
                    | p::UPDATE
                    | p::DELETE
                    | p::TRUNCATE
                    | p::REFERENCES
                    | p::TRIGGER
            }
            AclKind::Column => p::INSERT | p::SELECT | p::UPDATE | p::REFERENCES,
            AclKind::Sequence => p::USAGE | p::SELECT | p::UPDATE,
            AclKind::Database => p::CREATE | p::TEMPORARY | p::CONNECT,
            AclKind::Schema => p::USAGE | p::CREATE,
            AclKind::Function => p::EXECUTE,
            AclKind::Language | AclKind::Type | AclKind::ForeignData | AclKind::ForeignServer => {
                p::USAGE
            }
            AclKind::LargeObject => p::SELECT | p::UPDATE,
            AclKind::Tablespace => p::CREATE,
            AclKind::Parameter => p::SET | p::ALTER_SYSTEM,
        }
    }

    /// What everybody has on its objects, unless it is revoked.
    fn everybodys(self) -> AclMode {
        match self {
            AclKind::Database => p::TEMPORARY | p::CONNECT,
            AclKind::Function => p::EXECUTE,
            AclKind::Language | AclKind::Type => p::USAGE,
            _ => 0,
        }
    }

    /// As `acldefault` calls it.
    pub fn of_letter(letter: char) -> Option<AclKind> {
        Some(match letter {
            'c' => AclKind::Column,
            'r' => AclKind::Table,
            's' => AclKind::Sequence,
            'd' => AclKind::Database,
            'f' => AclKind::Function,
            'l' => AclKind::Language,
            'L' => AclKind::LargeObject,
            'n' => AclKind::Schema,
            'p' => AclKind::Parameter,
            't' => AclKind::Tablespace,
            'F' => AclKind::ForeignData,
            'S' => AclKind::ForeignServer,
            'T' => AclKind::Type,
            _ => return None,
        })
    }

    /// As messages name it in "invalid privilege type ... for ...".
    pub fn words(self) -> &'static str {
        match self {
            AclKind::Table => "relation",
            AclKind::Column => "column",
            AclKind::Sequence => "sequence",
            AclKind::Database => "database",
            AclKind::Schema => "schema",
            AclKind::Function => "function",
            AclKind::Language => "language",
            AclKind::Type => "type",
            AclKind::LargeObject => "large object",
            AclKind::Tablespace => "tablespace",
            AclKind::ForeignData => "foreign-data wrapper",
            AclKind::ForeignServer => "foreign server",
            AclKind::Parameter => "parameter",
        }
    }
}

/// What one role was given by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AclItem {
    /// To whom; [`ACL_ID_PUBLIC`] is everybody.
    pub grantee: RoleId,
    /// By whom.
    pub grantor: RoleId,
    /// What.
    pub privileges: AclMode,
    /// What of it may be given on.
    pub grantable: AclMode,
}

/// A list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acl(
    /// Its items, in the order in which they were made.
    pub Vec<AclItem>,
);

/// Who has whose privileges, in one database.
#[derive(Clone, Copy)]
pub struct Members<'a> {
    /// All roles.
    pub roles: &'a Roles,
    /// The owner of the database: the one member of pg_database_owner.
    pub(crate) database_owner: RoleId,
}

impl Members<'_> {
    /// May it do everything?
    pub fn is_superuser(&self, role: RoleId) -> bool {
        self.roles.is_superuser(role)
    }

    /// Is it subject to no policies? BYPASSRLS goes to no member.
    pub(crate) fn bypasses_policies(&self, role: RoleId) -> bool {
        let found = self.roles.get(role);
        self.is_superuser(role) || found.is_some_and(|found| found.bypass_rls)
    }

    /// Has `member` the privileges of `role`?
    pub fn has_privileges_of(&self, member: RoleId, role: RoleId) -> bool {
        if role == DATABASE_OWNER && member != role {
            return self.roles.has_privileges_of(member, self.database_owner);
        }
        self.roles.has_privileges_of(member, role)
    }

    /// May `member` become `role`?
    pub fn is_member(&self, member: RoleId, role: RoleId) -> bool {
        if role == DATABASE_OWNER && member != role {
            return self.roles.is_member(member, self.database_owner);
        }
        self.roles.is_member(member, role)
    }

    /// The roles whose privileges `role` has, itself first.
    fn sources(&self, role: RoleId) -> Vec<RoleId> {
        let mut all = self.roles.privilege_sources(role);
        if all.contains(&self.database_owner) && !all.contains(&DATABASE_OWNER) {
            all.push(DATABASE_OWNER);
        }
        all
    }
}

/// Part of a change: added or taken away.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AclModification {
    /// GRANT.
    Add,
    /// REVOKE.
    Remove,
}

impl Acl {
    /// What an object of `owner` has before anybody has granted anything.
    pub fn default_for(kind: AclKind, owner: RoleId) -> Acl {
        let mut items = Vec::new();
        let everybodys = kind.everybodys();
        if everybodys != 0 {
            items.push(AclItem {
                grantee: ACL_ID_PUBLIC,
                grantor: owner,
                privileges: everybodys,
                grantable: 0,
            });
        }
        if !matches!(kind, AclKind::Column | AclKind::Parameter) {
            items.push(AclItem {
                grantee: owner,
                grantor: owner,
                privileges: kind.all(),
                grantable: 0,
            });
        }
        Acl(items)
    }

    /// Which of the privileges in `wanted`, and of the grant options in `grantable`, `role` has.
    pub fn mask(
        &self,
        role: RoleId,
        owner: RoleId,
        wanted: AclMode,
        grantable: AclMode,
        members: Members<'_>,
    ) -> (AclMode, AclMode) {
        let mut found = (0, 0);
        if grantable != 0 && members.has_privileges_of(role, owner) {
            found.1 = grantable;
        }
        for item in &self.0 {
            let new = (
                item.privileges & wanted & !found.0,
                item.grantable & grantable & !found.1,
            );
            if new == (0, 0) {
                continue;
            }
            if item.grantee == ACL_ID_PUBLIC
                || item.grantee == role
                || members.has_privileges_of(role, item.grantee)
            {
                found.0 |= new.0;
                found.1 |= new.1;
            }
        }
        found
    }

    /// The grant options that were given to `role` itself.
    fn direct_options(&self, role: RoleId, owner: RoleId, wanted: AclMode) -> AclMode {
        if role == owner {
            return wanted;
        }
        let own = self.0.iter().filter(|item| item.grantee == role);
        own.fold(0, |found, item| found | item.grantable) & wanted
    }

    /// Adds what `change` says, or takes it away.
    pub fn change(
        &mut self,
        change: AclItem,
        mode: AclModification,
        owner: RoleId,
        cascade: bool,
        members: Members<'_>,
    ) -> Result<()> {
        if mode == AclModification::Add && change.grantable != 0 {
            self.refuse_circle(change, owner, members)?;
        }
        let same =
            |item: &AclItem| item.grantee == change.grantee && item.grantor == change.grantor;
        let at = self.0.iter().position(same);
        let before = at
            .and_then(|at| self.0.get(at))
            .map_or(0, |item| item.grantable);
        let old = at
            .and_then(|at| self.0.get(at))
            .copied()
            .unwrap_or(AclItem {
                privileges: 0,
                grantable: 0,
                ..change
            });
        let new = match mode {
            AclModification::Add => AclItem {
                privileges: old.privileges | change.privileges,
                grantable: old.grantable | change.grantable,
                ..old
            },
            AclModification::Remove => AclItem {
                privileges: old.privileges & !change.privileges,
                grantable: old.grantable & !change.grantable,
                ..old
            },
        };
        match (at, new.privileges | new.grantable) {
            (Some(at), 0) => {
                self.0.remove(at);
            }
            (Some(at), _) => self.0[at] = new,
            (None, 0) => {}
            (None, _) => self.0.push(new),
        }
        match before & !new.grantable {
            0 => Ok(()),
            lost => self.revoke_from(change.grantee, lost, owner, cascade, members),
        }
    }

    /// Takes away what `grantor` has granted and may not grant any more.
    fn revoke_from(
        &mut self,
        grantor: RoleId,
        lost: AclMode,
        owner: RoleId,
        cascade: bool,
        members: Members<'_>,
    ) -> Result<()> {
        if grantor == owner {
            return Ok(());
        }
        // Others may have given it the same.
        let (_, still) = self.mask(grantor, owner, 0, lost, members);
        let lost = lost & !still;
        if lost == 0 {
            return Ok(());
        }
        while let Some(item) = self
            .0
            .iter()
            .find(|item| item.grantor == grantor && item.privileges & lost != 0)
            .copied()
        {
            if !cascade {
                return Err(SqlError::new(
                    SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                    "dependent privileges exist",
                )
                .hint("Use CASCADE to revoke them too."));
            }
            let gone = AclItem {
                grantee: item.grantee,
                grantor,
                privileges: lost,
                grantable: lost,
            };
            self.change(gone, AclModification::Remove, owner, cascade, members)?;
        }
        Ok(())
    }

    /// 0LP01 if the grantor has its right to grant from the grantee alone.
    fn refuse_circle(&self, change: AclItem, owner: RoleId, members: Members<'_>) -> Result<()> {
        if change.grantor == owner {
            return Ok(());
        }
        let mut without = self.clone();
        while let Some(item) = without
            .0
            .iter()
            .find(|item| item.grantee == change.grantee && item.grantable != 0)
            .copied()
        {
            without.change(item, AclModification::Remove, owner, true, members)?;
        }
        let (_, own) = without.mask(change.grantor, owner, 0, change.grantable, members);
        match change.grantable & !own {
            0 => Ok(()),
            _ => Err(SqlError::new(
                INVALID_GRANT,
                "grant options cannot be granted back to your own grantor",
            )),
        }
    }

    /// The list when `new` owns the object instead of `old`: items that become the same are one.
    pub fn with_owner(&self, old: RoleId, new: RoleId) -> Acl {
        let mut items: Vec<AclItem> = Vec::with_capacity(self.0.len());
        let swap = |role| if role == old { new } else { role };
        for item in &self.0 {
            let changed = AclItem {
                grantee: swap(item.grantee),
                grantor: swap(item.grantor),
                ..*item
            };
            let same = items
                .iter_mut()
                .find(|i| i.grantee == changed.grantee && i.grantor == changed.grantor);
            match same {
                Some(same) => {
                    same.privileges |= changed.privileges;
                    same.grantable |= changed.grantable;
                }
                None => items.push(changed),
            }
        }
        Acl(items)
    }

    /// The list without everything that `role` was given or has given.
    pub fn without(&self, role: RoleId, owner: RoleId, members: Members<'_>) -> Result<Acl> {
        let mut left = self.clone();
        while let Some(item) = left
            .0
            .iter()
            .find(|item| item.grantee == role || item.grantor == role)
            .copied()
        {
            left.change(item, AclModification::Remove, owner, true, members)?;
            // Of the owner nothing is lost in turn, and the item is gone all the same.
            left.0.retain(|left| *left != item);
        }
        Ok(left)
    }

    /// Is the role named?
    pub fn names(&self, role: RoleId) -> bool {
        self.0
            .iter()
            .any(|item| item.grantee == role || item.grantor == role)
    }

    /// In an order that says whether two lists are the same.
    pub fn sorted(&self) -> Vec<AclItem> {
        let mut items = self.0.clone();
        items.sort_by_key(|item| (item.grantee, item.grantor, item.privileges, item.grantable));
        items
    }
}

/// Who grants when `role` does, and what of `wanted` it may grant: as PostgreSQL chooses among the roles whose
/// privileges `role` has.
pub fn best_grantor(
    role: RoleId,
    wanted: AclMode,
    acl: &Acl,
    owner: RoleId,
    members: Members<'_>,
) -> (RoleId, AclMode) {
    if role == owner || members.is_superuser(role) {
        return (owner, wanted);
    }
    let mut best = (role, 0);
    for other in members.sources(role) {
        let options = acl.direct_options(other, owner, wanted);
        if options == wanted {
            return (other, options);
        }
        if options.count_ones() > AclMode::count_ones(best.1) {
            best = (other, options);
        }
    }
    best
}

impl AclItem {
    /// Can it be stored?
    pub(crate) fn is_sound(&self) -> bool {
        let all = self.privileges | self.grantable;
        all != 0 && all & !KNOWN == 0 && self.grantor != ACL_ID_PUBLIC
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BOOTSTRAP, Membership, Role};
    use super::*;
    use std::sync::Arc;

    const OWNER: RoleId = RoleId::new(20_000);
    const A: RoleId = RoleId::new(20_001);
    const B: RoleId = RoleId::new(20_002);
    const C: RoleId = RoleId::new(20_003);
    const MEMBER: RoleId = RoleId::new(20_010);
    const GONE: RoleId = RoleId::new(99_999);

    fn roles() -> Roles {
        let mut roles = Roles::default();
        for (oid, name) in [(OWNER, "owner"), (A, "a"), (B, "b \"b\""), (C, "c")] {
            roles.put(Arc::new(Role::new(oid, name)));
        }
        roles
    }

    fn members(roles: &Roles) -> Members<'_> {
        Members {
            roles,
            database_owner: BOOTSTRAP,
        }
    }

    fn item(grantee: RoleId, grantor: RoleId, privileges: AclMode, grantable: AclMode) -> AclItem {
        AclItem {
            grantee,
            grantor,
            privileges,
            grantable,
        }
    }

    fn table() -> Acl {
        Acl::default_for(AclKind::Table, OWNER)
    }

    #[test]
    fn what_was_granted_on_goes_with_the_right_to_grant_it() {
        let roles = roles();
        let m = members(&roles);
        let mut acl = table();
        let grant = |acl: &mut Acl, to, by, option| {
            let grantable = if option { p::SELECT } else { 0 };
            acl.change(
                item(to, by, p::SELECT, grantable),
                AclModification::Add,
                OWNER,
                false,
                m,
            )
        };
        grant(&mut acl, A, OWNER, true).unwrap();
        grant(&mut acl, B, A, true).unwrap();
        grant(&mut acl, C, B, false).unwrap();
        let circle = grant(&mut acl, A, B, true).unwrap_err();
        assert_eq!(circle.code(), INVALID_GRANT);
        let before = acl.clone();
        let gone = item(A, OWNER, p::SELECT, p::SELECT);
        let refused = acl
            .clone()
            .change(gone, AclModification::Remove, OWNER, false, m)
            .unwrap_err();
        assert_eq!(refused.code(), SqlState::DEPENDENT_OBJECTS_STILL_EXIST);
        // With the owner's own grant, B keeps what it has granted.
        grant(&mut acl, B, OWNER, true).unwrap();
        acl.change(gone, AclModification::Remove, OWNER, true, m)
            .unwrap();
        assert_eq!(acl.mask(C, OWNER, p::SELECT, 0, m).0, p::SELECT);
        let mut acl = before;
        acl.change(gone, AclModification::Remove, OWNER, true, m)
            .unwrap();
        assert_eq!(acl, table());
    }

    #[test]
    fn a_list_gives_what_it_says_to_members_and_to_everybody() {
        let mut roles = roles();
        let mut member = Role::new(MEMBER, "member");
        member.member_of.push(Membership {
            role: A,
            grantor: BOOTSTRAP,
            admin: false,
        });
        roles.put(Arc::new(member));
        let m = members(&roles);
        let mut acl = table();
        acl.change(
            item(A, OWNER, p::UPDATE, 0),
            AclModification::Add,
            OWNER,
            false,
            m,
        )
        .unwrap();
        acl.change(
            item(ACL_ID_PUBLIC, OWNER, p::SELECT, 0),
            AclModification::Add,
            OWNER,
            false,
            m,
        )
        .unwrap();
        let all = AclKind::Table.all();
        assert_eq!(acl.mask(MEMBER, OWNER, all, 0, m).0, p::SELECT | p::UPDATE);
        assert_eq!(acl.mask(B, OWNER, all, 0, m).0, p::SELECT);
        assert_eq!(acl.mask(OWNER, OWNER, all, all, m), (all, all));
        // Not even the owner has what it has revoked from itself, but it may grant it.
        acl.change(
            item(OWNER, OWNER, all, all),
            AclModification::Remove,
            OWNER,
            false,
            m,
        )
        .unwrap();
        assert_eq!(acl.mask(OWNER, OWNER, all, all, m), (p::SELECT, all));
    }

    #[test]
    fn the_best_grantor_has_most_rights_to_grant() {
        let mut roles = roles();
        let mut member = Role::new(MEMBER, "member");
        for role in [A, B] {
            member.member_of.push(Membership {
                role,
                grantor: BOOTSTRAP,
                admin: false,
            });
        }
        roles.put(Arc::new(member));
        let m = members(&roles);
        let mut acl = table();
        let both = p::SELECT | p::INSERT;
        for (role, what) in [(A, p::SELECT), (B, both)] {
            acl.change(
                item(role, OWNER, what, what),
                AclModification::Add,
                OWNER,
                false,
                m,
            )
            .unwrap();
        }
        assert_eq!(best_grantor(MEMBER, both, &acl, OWNER, m), (B, both));
        let more = both | p::DELETE;
        assert_eq!(best_grantor(MEMBER, more, &acl, OWNER, m), (B, both));
        assert_eq!(best_grantor(C, both, &acl, OWNER, m), (C, 0));
        assert_eq!(best_grantor(BOOTSTRAP, both, &acl, OWNER, m), (OWNER, both));
    }

    #[test]
    fn a_new_owner_takes_the_old_ones_place() {
        let roles = roles();
        let m = members(&roles);
        let mut acl = table();
        acl.change(
            item(A, OWNER, p::SELECT, 0),
            AclModification::Add,
            OWNER,
            false,
            m,
        )
        .unwrap();
        let all = AclKind::Table.all();
        assert_eq!(acl.with_owner(OWNER, A).0, [item(A, A, all, 0)]);
        assert_eq!(acl.without(A, OWNER, m).unwrap(), table());
        assert_eq!(acl.without(OWNER, OWNER, m).unwrap(), Acl::default());
    }

    #[test]
    fn items_read_back() {
        let roles = roles();
        for (item, text) in [
            (item(ACL_ID_PUBLIC, OWNER, p::SELECT, 0), "=r/owner"),
            (
                item(B, A, p::SELECT | p::INSERT, p::SELECT),
                "\"b \"\"b\"\"\"=ar*/a",
            ),
            (item(GONE, OWNER, p::USAGE, 0), "99999=U/owner"),
        ] {
            assert_eq!(item.text(&roles), text);
            if item.grantee != GONE {
                assert_eq!(AclItem::parse(text, &roles).unwrap(), item);
            }
        }
        for bad in ["a", "a=q/owner", "nobody=r/owner", "a=r/", "a=r/owner x"] {
            assert!(AclItem::parse(bad, &roles).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_database_owner_has_the_privileges_of_pg_database_owner() {
        let roles = roles();
        let m = Members {
            roles: &roles,
            database_owner: A,
        };
        assert!(m.has_privileges_of(A, DATABASE_OWNER));
        assert!(!m.has_privileges_of(B, DATABASE_OWNER));
        let acl = Acl::default_for(AclKind::Schema, DATABASE_OWNER);
        assert_eq!(acl.mask(A, DATABASE_OWNER, p::CREATE, 0, m).0, p::CREATE);
        assert_eq!(acl.mask(B, DATABASE_OWNER, p::CREATE, 0, m).0, 0);
    }
}
