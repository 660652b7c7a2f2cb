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

use logstead_sql_types::value::Oid;
use std::collections::HashMap;
use std::sync::Arc;

/// The role that is there from the beginning, a superuser.
pub const BOOTSTRAP: Oid = 10;
/// Its name, unless it was renamed.
const BOOTSTRAP_NAME: &str = "postgres";
/// OIDs below belong to the system.
const FIRST_USER_OID: Oid = 16_384;

/// The predefined role that owns `public`.
pub const DATABASE_OWNER: Oid = 6171;
/// Members may read all data.
pub(crate) const READ_ALL_DATA: Oid = 6181;
/// Members may write all data.
pub(crate) const WRITE_ALL_DATA: Oid = 6182;
/// Members may see all settings.
pub const READ_ALL_SETTINGS: Oid = 3374;
/// Members may see what every session does, and all statistics.
pub const READ_ALL_STATS: Oid = 3375;
/// Members may end statements and sessions of others.
pub const SIGNAL_BACKEND: Oid = 4200;
/// Members may take checkpoints.
pub const CHECKPOINT: Oid = 4544;
/// Members may read files of the server's machine.
pub const READ_SERVER_FILES: Oid = 4569;
/// Members may write files of the server's machine.
pub const WRITE_SERVER_FILES: Oid = 4570;
/// Members may run programs on the server's machine.
pub const EXECUTE_SERVER_PROGRAM: Oid = 4571;

/// Members may do what those who watch a server need.
const MONITOR: Oid = 3373;
const STAT_SCAN_TABLES: Oid = 3377;
/// What pg_monitor is a member of.
const MONITOR_IS: [Oid; 3] = [READ_ALL_SETTINGS, READ_ALL_STATS, STAT_SCAN_TABLES];

/// PostgreSQL's predefined roles.
const PREDEFINED: &[(Oid, &str)] = &[
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
    pub oid: Oid,
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
    pub role: Oid,
    /// Who made it one.
    pub grantor: Oid,
    /// WITH ADMIN OPTION.
    pub admin: bool,
}

impl Role {
    /// A role as CREATE ROLE makes it without options.
    pub fn new(oid: Oid, name: impl Into<String>) -> Role {
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
    by_oid: HashMap<Oid, Arc<Role>>,
    by_name: HashMap<String, Oid>,
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
    pub fn remove(&mut self, oid: Oid) {
        self.forget_name(oid);
        self.by_oid.remove(&oid);
    }

    fn forget_name(&mut self, oid: Oid) {
        if let Some(old) = self.by_oid.get(&oid)
            && self.by_name.get(&old.name) == Some(&oid)
        {
            self.by_name.remove(&old.name);
        }
    }

    /// A role by OID.
    pub fn get(&self, oid: Oid) -> Option<&Arc<Role>> {
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
    pub fn is_superuser(&self, role: Oid) -> bool {
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
    pub fn is_member(&self, member: Oid, role: Oid) -> bool {
        self.is_superuser(member) || self.reaches(member, role, false)
    }

    /// The same without what superusers may do: for cycles and for ADMIN.
    pub fn is_plain_member(&self, member: Oid, role: Oid) -> bool {
        self.reaches(member, role, false)
    }

    /// Has `member` the privileges of `role`? Memberships of roles without INHERIT do not count.
    pub fn has_privileges_of(&self, member: Oid, role: Oid) -> bool {
        self.is_superuser(member) || self.reaches(member, role, true)
    }

    /// May `member` make others members of `role`?
    pub fn is_admin_of(&self, member: Oid, role: Oid) -> bool {
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
    pub(crate) fn privilege_sources(&self, role: Oid) -> Vec<Oid> {
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

    fn reaches(&self, member: Oid, role: Oid, inherited: bool) -> bool {
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

    fn member(oid: Oid, name: &str, of: &[(Oid, bool)]) -> Arc<Role> {
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
        roles.put(member(20_000, "a", &[]));
        roles.put(member(20_001, "b", &[(20_000, true)]));
        let mut quiet = Role::clone(&member(20_002, "c", &[(20_001, false)]));
        quiet.inherit = false;
        roles.put(Arc::new(quiet));
        assert!(roles.is_member(20_002, 20_000));
        assert!(!roles.has_privileges_of(20_002, 20_000));
        assert!(!roles.has_privileges_of(20_002, 20_001));
        assert!(roles.has_privileges_of(20_001, 20_000));
        assert!(roles.is_admin_of(20_001, 20_000));
        assert!(roles.is_admin_of(20_002, 20_000));
        assert!(!roles.is_admin_of(20_002, 20_001));
        assert!(!roles.is_member(20_000, 20_002));
        assert!(roles.is_member(BOOTSTRAP, 20_002));
        roles.remove(20_001);
        assert!(!roles.is_member(20_002, 20_000));
        assert!(!roles.is_member(20_002, 20_001));
        assert!(!roles.is_superuser(20_001));
    }

    #[test]
    fn a_name_means_its_newest_owner() {
        let mut roles = Roles::default();
        roles.put(member(20_000, "a", &[]));
        // Two changes, the second of which gives the name to another, may be applied in either order.
        roles.put(member(20_001, "a", &[]));
        roles.put(member(20_000, "b", &[]));
        assert_eq!(roles.by_name("a").unwrap().oid, 20_001);
        assert_eq!(roles.by_name("b").unwrap().oid, 20_000);
        roles.remove(20_001);
        assert!(roles.by_name("a").is_none());
    }
}
