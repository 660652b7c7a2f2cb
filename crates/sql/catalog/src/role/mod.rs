//! Roles: who may connect, and what somebody may do.
//!
//! Owns: [`Role`] and [`Roles`], an immutable picture of all roles of the server that is part of every catalog
//! snapshot, the questions asked of it (memberships, attributes), the verifier of a password and the exchange that
//! proves one ([`scram`]).
//!
//! Invariants: a role is known by its OID; names are for people and may change. The bootstrap superuser (OID 10) is
//! always there, whatever is stored. A role is never a member of itself, not even through others.
//! Does not: store anything (`catalog` does), or speak the protocol (`wire` does).

pub mod acl;
pub mod scram;

use logstead_sql_types::RoleId;
use std::collections::HashMap;
use std::sync::Arc;

/// The role that is there from the beginning, a superuser.
pub const BOOTSTRAP: RoleId = RoleId::new(10);
/// Its name, unless it was renamed.
const BOOTSTRAP_NAME: &str = "postgres";
/// OIDs below belong to the system.
const FIRST_USER_OID: RoleId = RoleId::new(16_384);

/// The predefined role that owns `public`.
pub const DATABASE_OWNER: RoleId = RoleId::new(6171);
/// Members may read all data.
pub(crate) const READ_ALL_DATA: RoleId = RoleId::new(6181);
/// Members may write all data.
pub(crate) const WRITE_ALL_DATA: RoleId = RoleId::new(6182);
/// Members may see all settings.
pub const READ_ALL_SETTINGS: RoleId = RoleId::new(3374);
/// Members may see what every session does, and all statistics.
pub const READ_ALL_STATS: RoleId = RoleId::new(3375);
/// Members may end statements and sessions of others.
pub const SIGNAL_BACKEND: RoleId = RoleId::new(4200);
/// Members may take checkpoints.
pub const CHECKPOINT: RoleId = RoleId::new(4544);
/// Members may read files of the server's machine.
pub const READ_SERVER_FILES: RoleId = RoleId::new(4569);
/// Members may write files of the server's machine.
pub const WRITE_SERVER_FILES: RoleId = RoleId::new(4570);
/// Members may run programs on the server's machine.
pub const EXECUTE_SERVER_PROGRAM: RoleId = RoleId::new(4571);

/// Members may do what those who watch a server need.
const MONITOR: RoleId = RoleId::new(3373);
const STAT_SCAN_TABLES: RoleId = RoleId::new(3377);
/// What pg_monitor is a member of.
const MONITOR_IS: [RoleId; 3] = [READ_ALL_SETTINGS, READ_ALL_STATS, STAT_SCAN_TABLES];

/// PostgreSQL's predefined roles.
const PREDEFINED: &[(RoleId, &str)] = &[
    (MONITOR, "pg_monitor"),
    (READ_ALL_SETTINGS, "pg_read_all_settings"),
    (READ_ALL_STATS, "pg_read_all_stats"),
    (STAT_SCAN_TABLES, "pg_stat_scan_tables"),
    (SIGNAL_BACKEND, "pg_signal_backend"),
    (CHECKPOINT, "pg_checkpoint"),
    (READ_SERVER_FILES, "pg_read_server_files"),
    (WRITE_SERVER_FILES, "pg_write_server_files"),
    (EXECUTE_SERVER_PROGRAM, "pg_execute_server_program"),
    (DATABASE_OWNER, "pg_database_owner"),
    (READ_ALL_DATA, "pg_read_all_data"),
    (WRITE_ALL_DATA, "pg_write_all_data"),
];

/// One role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// `pg_authid.oid`.
    pub oid: RoleId,
    /// Name.
    pub name: String,
    /// May do everything.
    pub superuser: bool,
    /// Has what the roles that it is a member of have.
    pub inherit: bool,
    /// May make roles.
    pub create_role: bool,
    /// May make databases.
    pub create_db: bool,
    /// May connect.
    pub login: bool,
    /// May replicate.
    pub replication: bool,
    /// Policies of rows do not hold for it.
    pub bypass_rls: bool,
    /// Sessions at a time; -1 is any number.
    pub connection_limit: i32,
    /// The verifier of its password.
    pub password: Option<String>,
    /// The password is good until then, microseconds since 2000-01-01 UTC.
    pub valid_until: Option<i64>,
    /// Settings that its sessions begin with.
    pub settings: Vec<(String, String)>,
    /// What it is a member of.
    pub member_of: Vec<Membership>,
}

/// A role's membership in another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The role it is a member of.
    pub role: RoleId,
    /// Who made it one.
    pub grantor: RoleId,
    /// WITH ADMIN OPTION.
    pub admin: bool,
}

impl Role {
    /// A role as CREATE ROLE makes it without options.
    pub fn new(oid: RoleId, name: impl Into<String>) -> Role {
        Role {
            oid,
            name: name.into(),
            superuser: false,
            inherit: true,
            create_role: false,
            create_db: false,
            login: false,
            replication: false,
            bypass_rls: false,
            connection_limit: -1,
            password: None,
            valid_until: None,
            settings: Vec::new(),
            member_of: Vec::new(),
        }
    }

    /// The bootstrap superuser before anybody has changed it.
    pub fn bootstrap() -> Role {
        Role {
            superuser: true,
            create_role: true,
            create_db: true,
            login: true,
            replication: true,
            bypass_rls: true,
            ..Role::new(BOOTSTRAP, BOOTSTRAP_NAME)
        }
    }

    /// Does the system need it?
    pub fn is_required(&self) -> bool {
        self.oid < FIRST_USER_OID
    }
}

/// All roles of a server.
#[derive(Clone, Debug)]
pub struct Roles {
    by_oid: HashMap<RoleId, Arc<Role>>,
    by_name: HashMap<String, RoleId>,
}

impl Default for Roles {
    fn default() -> Roles {
        let mut roles = Roles {
            by_oid: HashMap::new(),
            by_name: HashMap::new(),
        };
        roles.put(Arc::new(Role::bootstrap()));
        for (oid, name) in PREDEFINED {
            let mut role = Role::new(*oid, *name);
            if *oid == MONITOR {
                role.member_of.extend(MONITOR_IS.map(|role| Membership {
                    role,
                    grantor: BOOTSTRAP,
                    admin: false,
                }));
            }
            roles.put(Arc::new(role));
        }
        roles
    }
}

impl Roles {
    /// Adds or replaces a role.
    pub fn put(&mut self, role: Arc<Role>) {
        self.forget_name(role.oid);
        self.by_name.insert(role.name.clone(), role.oid);
        self.by_oid.insert(role.oid, role);
    }

    /// Takes a role out, and every membership in it.
    pub fn remove(&mut self, oid: RoleId) {
        self.forget_name(oid);
        self.by_oid.remove(&oid);
    }

    fn forget_name(&mut self, oid: RoleId) {
        if let Some(old) = self.by_oid.get(&oid)
            && self.by_name.get(&old.name) == Some(&oid)
        {
            self.by_name.remove(&old.name);
        }
    }

    /// A role by OID.
    pub fn get(&self, oid: RoleId) -> Option<&Arc<Role>> {
        self.by_oid.get(&oid)
    }

    /// A role by name.
    pub fn by_name(&self, name: &str) -> Option<&Arc<Role>> {
        self.by_oid.get(self.by_name.get(name)?)
    }

    /// All roles, by OID.
    pub fn all(&self) -> Vec<&Arc<Role>> {
        let mut all: Vec<_> = self.by_oid.values().collect();
        all.sort_unstable_by_key(|role| role.oid);
        all
    }

    /// May it do everything? A role that is gone may do nothing.
    pub fn is_superuser(&self, role: RoleId) -> bool {
        self.get(role).is_some_and(|role| role.superuser)
    }

    /// Can a client connect with a password?
    pub fn has_password_login(&self) -> bool {
        self.by_oid
            .values()
            .any(|role| role.login && role.password.is_some())
    }

    /// Is any superuser protected by a password?
    pub fn has_superuser_password(&self) -> bool {
        self.by_oid
            .values()
            .any(|role| role.superuser && role.password.is_some())
    }

    /// Is `member` a member of `role`, itself or through others, or the role itself? It may then SET ROLE to it.
    pub fn is_member(&self, member: RoleId, role: RoleId) -> bool {
        self.is_superuser(member) || self.reaches(member, role, false)
    }

    /// The same without what superusers may do: for cycles and for ADMIN.
    pub fn is_plain_member(&self, member: RoleId, role: RoleId) -> bool {
        self.reaches(member, role, false)
    }

    /// Has `member` the privileges of `role`? Memberships of roles without INHERIT do not count.
    pub fn has_privileges_of(&self, member: RoleId, role: RoleId) -> bool {
        self.is_superuser(member) || self.reaches(member, role, true)
    }

    /// May `member` make others members of `role`?
    pub fn is_admin_of(&self, member: RoleId, role: RoleId) -> bool {
        let mut seen = vec![member];
        let mut at = 0;
        if self.is_superuser(member) {
            return true;
        }
        while let Some(next) = seen.get(at).copied() {
            at += 1;
            for membership in self.get(next).map_or(&[][..], |r| &r.member_of) {
                if membership.role == role && membership.admin {
                    return true;
                }
                if !seen.contains(&membership.role) {
                    seen.push(membership.role);
                }
            }
        }
        false
    }

    /// The roles whose privileges `role` has, nearest first, itself before all.
    pub(crate) fn privilege_sources(&self, role: RoleId) -> Vec<RoleId> {
        let mut seen = vec![role];
        let mut at = 0;
        while let Some(next) = seen.get(at).copied() {
            at += 1;
            let Some(found) = self.get(next).filter(|found| found.inherit) else {
                continue;
            };
            for membership in &found.member_of {
                if !seen.contains(&membership.role) {
                    seen.push(membership.role);
                }
            }
        }
        seen
    }

    fn reaches(&self, member: RoleId, role: RoleId, inherited: bool) -> bool {
        let mut seen = vec![member];
        let mut at = 0;
        while let Some(next) = seen.get(at).copied() {
            at += 1;
            if next == role {
                return self.by_oid.contains_key(&role);
            }
            let Some(found) = self.get(next) else {
                continue;
            };
            if inherited && !found.inherit {
                continue;
            }
            for membership in &found.member_of {
                if !seen.contains(&membership.role) {
                    seen.push(membership.role);
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: RoleId = RoleId::new(20_000);
    const B: RoleId = RoleId::new(20_001);
    const C: RoleId = RoleId::new(20_002);

    fn member(oid: RoleId, name: &str, of: &[(RoleId, bool)]) -> Arc<Role> {
        let mut role = Role::new(oid, name);
        role.member_of = of
            .iter()
            .map(|(role, admin)| Membership {
                role: *role,
                grantor: BOOTSTRAP,
                admin: *admin,
            })
            .collect();
        Arc::new(role)
    }

    #[test]
    fn memberships_go_through_others_and_stop_where_nothing_is_inherited() {
        let mut roles = Roles::default();
        roles.put(member(A, "a", &[]));
        roles.put(member(B, "b", &[(A, true)]));
        let mut quiet = Role::clone(&member(C, "c", &[(B, false)]));
        quiet.inherit = false;
        roles.put(Arc::new(quiet));
        assert!(roles.is_member(C, A));
        assert!(!roles.has_privileges_of(C, A));
        assert!(!roles.has_privileges_of(C, B));
        assert!(roles.has_privileges_of(B, A));
        assert!(roles.is_admin_of(B, A));
        assert!(roles.is_admin_of(C, A));
        assert!(!roles.is_admin_of(C, B));
        assert!(!roles.is_member(A, C));
        assert!(roles.is_member(BOOTSTRAP, C));
        roles.remove(B);
        assert!(!roles.is_member(C, A));
        assert!(!roles.is_member(C, B));
        assert!(!roles.is_superuser(B));
    }

    #[test]
    fn a_name_means_its_newest_owner() {
        let mut roles = Roles::default();
        roles.put(member(A, "a", &[]));
        // Two changes, the second of which gives the name to another, may be applied in either order.
        roles.put(member(B, "a", &[]));
        roles.put(member(A, "b", &[]));
        assert_eq!(roles.by_name("a").unwrap().oid, B);
        assert_eq!(roles.by_name("b").unwrap().oid, A);
        roles.remove(B);
        assert!(roles.by_name("a").is_none());
    }
}
