//! Who may try to connect from where, and how they prove who they are: rules like those of PostgreSQL's `pg_hba.conf`.
//!
//! Owns: [`HbaLine`] and the choice of the first that fits. Pure: addresses and names in, a method out.
//!
//! Invariants: where no rule fits, nobody gets in. Without rules of its own a server trusts its own machine until a
//! superuser has a password, and asks everybody else for theirs.

use crate::tls::Tls;
use logstead_sql_catalog::role::Roles;
use regex::Regex;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::time::Duration;

/// How a client proves who it is. A map is named by an `M`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMethod<M = String> {
    /// It need not.
    Trust,
    /// It cannot.
    Reject,
    /// By its password.
    Scram,
    /// By the system's user that it is, who has the role's name or is mapped to it.
    Peer(Option<M>),
}

impl<M> FromStr for AuthMethod<M> {
    type Err = String;

    fn from_str(text: &str) -> Result<AuthMethod<M>, String> {
        match text {
            "trust" => Ok(AuthMethod::Trust),
            "reject" => Ok(AuthMethod::Reject),
            "scram-sha-256" => Ok(AuthMethod::Scram),
            "peer" => Ok(AuthMethod::Peer(None)),
            other => Err(format!(
                "method \"{other}\" is not supported; there are trust, reject, scram-sha-256 and peer"
            )),
        }
    }
}

/// A line of a map of the system's users to roles.
#[derive(Clone, Debug)]
pub struct IdentLine {
    /// The map's name.
    pub map: String,
    /// The system's users.
    pub system: SystemUser,
    /// The role; `\1` is what the parentheses of a pattern have found.
    pub role: String,
}

/// Which of the system's users.
#[derive(Clone, Debug)]
pub enum SystemUser {
    /// One.
    Name(String),
    /// Those whose names fit.
    Pattern(Regex),
}

impl IdentLine {
    /// A line as it is written: a name behind a slash is a pattern.
    pub fn new(map: String, system: &str, role: String) -> Result<IdentLine, String> {
        let system = match system.strip_prefix('/') {
            None => SystemUser::Name(system.to_owned()),
            Some(pattern) => {
                let pattern = Regex::new(pattern).map_err(|error| {
                    format!("invalid regular expression \"{pattern}\": {error}")
                })?;
                if role.contains("\\1") && pattern.captures_len() < 2 {
                    return Err(format!(
                        "regular expression \"{pattern}\" has no subexpressions as requested by backreference in \"{role}\""
                    ));
                }
                SystemUser::Pattern(pattern)
            }
        };
        Ok(IdentLine { map, system, role })
    }

    /// May this user of the system be this role?
    pub fn fits(&self, system: &str, role: &str) -> bool {
        match &self.system {
            SystemUser::Name(name) => name == system && self.role == role,
            SystemUser::Pattern(pattern) => pattern.captures(system).is_some_and(|found| {
                let part = found.get(1).map_or("", |part| part.as_str());
                self.role.replacen("\\1", part, 1) == role
            }),
        }
    }
}

/// Which connections a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnType {
    /// All.
    Host,
    /// Encrypted ones.
    HostSsl,
    /// Others.
    HostNoSsl,
    /// Those by a socket of the file system.
    Local,
}

impl FromStr for ConnType {
    type Err = String;

    fn from_str(text: &str) -> Result<ConnType, String> {
        match text {
            "host" => Ok(ConnType::Host),
            "hostssl" => Ok(ConnType::HostSsl),
            "hostnossl" => Ok(ConnType::HostNoSsl),
            "local" => Ok(ConnType::Local),
            other => Err(format!(
                "type \"{other}\" is not supported; there are local, host, hostssl and hostnossl"
            )),
        }
    }
}

/// Addresses that a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HbaAddress {
    /// All.
    All,
    /// Those whose first bits are these.
    Prefix(IpAddr, u8),
}

fn bits(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    }
}

impl HbaAddress {
    /// Is the address one of them?
    pub fn contains(&self, address: IpAddr) -> bool {
        match *self {
            HbaAddress::All => true,
            HbaAddress::Prefix(of, length) => {
                let ((a, family), (b, other)) = (bits(of), bits(address.to_canonical()));
                let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
                family == other && (a & mask) == (b & mask)
            }
        }
    }

    /// Are all of them this machine's own?
    pub fn is_loopback(&self) -> bool {
        let own = [
            HbaAddress::Prefix(IpAddr::V4(Ipv4Addr::LOCALHOST), 8),
            HbaAddress::Prefix(IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
        ];
        match *self {
            HbaAddress::All => false,
            HbaAddress::Prefix(of, length) => own.iter().any(|own| match own {
                HbaAddress::Prefix(_, least) => own.contains(of) && length >= *least,
                HbaAddress::All => false,
            }),
        }
    }
}

impl FromStr for HbaAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<HbaAddress, String> {
        if text == "all" {
            return Ok(HbaAddress::All);
        }
        let wrong = || {
            format!("address \"{text}\" is neither \"all\" nor an address like 10.0.0.0/8 or ::1")
        };
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let given: IpAddr = address.parse().map_err(|_| wrong())?;
        let address = given.to_canonical();
        if address != given {
            // An IPv4 address in IPv6's clothes: the length would mean something else.
            return Err(format!("address \"{text}\": write the IPv4 address itself"));
        }
        let (number, most) = bits(address);
        let length = match length {
            None => most,
            Some(length) => length
                .parse()
                .ok()
                .filter(|length| *length <= most)
                .ok_or_else(wrong)?,
        };
        let rest = u128::MAX.checked_shr(u32::from(length)).unwrap_or(0);
        if number & rest != 0 {
            return Err(format!(
                "address \"{text}\" has bits behind its prefix: somebody would be meant who is not"
            ));
        }
        Ok(HbaAddress::Prefix(address, length))
    }
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HbaLine {
    /// Which connections.
    pub channel: ConnType,
    /// Databases: names, "all", "sameuser"; "replication" is connections of replicas, and "all" is not.
    pub databases: Vec<String>,
    /// Users: names, "all", "+role" for its members.
    pub users: Vec<String>,
    /// From where; all for sockets of the file system.
    pub network: HbaAddress,
    /// How they prove who they are.
    pub method: AuthMethod,
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub struct HbaRequest<'a> {
    /// From where; nothing for a socket of the file system.
    pub address: Option<IpAddr>,
    /// Over an encrypted connection.
    pub encrypted: bool,
    /// The name given.
    pub user: &'a str,
    /// The database asked for.
    pub database: &'a str,
    /// A replica asks, for the log.
    pub replication: bool,
}

impl HbaLine {
    fn fits(&self, request: &HbaRequest<'_>, roles: &Roles) -> bool {
        let channel = match self.channel {
            ConnType::Local => request.address.is_none(),
            ConnType::Host => true,
            ConnType::HostSsl => request.encrypted,
            ConnType::HostNoSsl => !request.encrypted,
        };
        let from = match request.address {
            None => self.channel == ConnType::Local,
            Some(address) => self.network.contains(address),
        };
        let database = self.databases.iter().any(|name| match name.as_str() {
            "replication" => request.replication,
            _ if request.replication => false,
            "all" => true,
            "sameuser" => request.database == request.user,
            name => request.database == name,
        });
        let user = || {
            self.users.iter().any(|name| match name.strip_prefix('+') {
                Some(group) => match (roles.by_name(request.user), roles.by_name(group)) {
                    // Superusers are members only of what they were made members of: else "+admins reject" would shut
                    // them out.
                    (Some(user), Some(group)) => roles.is_plain_member(user.oid, group.oid),
                    _ => false,
                },
                None => name == "all" || request.user == name,
            })
        };
        channel && from && database && user()
    }
}

/// How a server lets clients in.
pub struct ClientAuthConfig {
    /// The rules, the first that fits counts; none is the default.
    pub rules: Option<Vec<HbaLine>>,
    /// Maps of the system's users to roles.
    pub identities: Vec<IdentLine>,
    /// A client that is not through with it by then is cut off.
    pub timeout: Duration,
    /// Encryption, where it can be had.
    pub tls: Option<Tls>,
}

impl Default for ClientAuthConfig {
    fn default() -> ClientAuthConfig {
        ClientAuthConfig {
            rules: None,
            identities: Vec::new(),
            timeout: Duration::from_secs(60),
            tls: None,
        }
    }
}

impl ClientAuthConfig {
    /// How this client proves who it is; nothing if no rule fits.
    pub fn method(&self, request: &HbaRequest<'_>, roles: &Roles) -> Option<AuthMethod<&str>> {
        match &self.rules {
            Some(rules) => {
                let rule = rules.iter().find(|rule| rule.fits(request, roles))?;
                Some(match &rule.method {
                    AuthMethod::Trust => AuthMethod::Trust,
                    AuthMethod::Reject => AuthMethod::Reject,
                    AuthMethod::Scram => AuthMethod::Scram,
                    AuthMethod::Peer(map) => AuthMethod::Peer(map.as_deref()),
                })
            }
            None => {
                let own = request
                    .address
                    .is_none_or(|address| address.to_canonical().is_loopback());
                Some(match own && !roles.has_superuser_password() {
                    true => AuthMethod::Trust,
                    false => AuthMethod::Scram,
                })
            }
        }
    }
}

/// The first rule that lets somebody from elsewhere in who proves nothing.
pub fn trusts_others(rules: &[HbaLine]) -> Option<&HbaLine> {
    rules.iter().find(|rule| {
        rule.method == AuthMethod::Trust
            && rule.channel != ConnType::Local
            && !rule.network.is_loopback()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(users: &[&str], databases: &[&str], network: &str, method: AuthMethod) -> HbaLine {
        let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        HbaLine {
            channel: ConnType::Host,
            databases: owned(databases),
            users: owned(users),
            network: network.parse().unwrap(),
            method,
        }
    }

    fn ask<'a>(address: &str, user: &'a str, database: &'a str) -> HbaRequest<'a> {
        HbaRequest {
            address: address.parse().ok(),
            encrypted: false,
            user,
            database,
            replication: false,
        }
    }

    #[test]
    fn networks() {
        let has = |network: &str, address: &str| {
            let network: HbaAddress = network.parse().unwrap();
            network.contains(address.parse().unwrap())
        };
        assert!(has("10.0.0.0/8", "10.255.0.1") && !has("10.0.0.0/8", "11.0.0.1"));
        assert!(has("10.1.2.3", "10.1.2.3") && !has("10.1.2.3", "10.1.2.4"));
        assert!(has("0.0.0.0/0", "8.8.8.8") && !has("0.0.0.0/0", "::1"));
        assert!(has("::/0", "fe80::1") && !has("::/0", "1.2.3.4"));
        assert!(has("fe80::/10", "fe80::5") && !has("fe80::/10", "fd00::5"));
        assert!(has("all", "::1") && has("all", "1.2.3.4"));
        // How a socket that listens for both tells of an IPv4 client.
        assert!(has("127.0.0.0/8", "::ffff:127.0.0.1") && !has("::/0", "::ffff:127.0.0.1"));
        for wrong in [
            "",
            "ten",
            "10.0.0.0/33",
            "10.0.0.1/8",
            "::/129",
            "10.0.0.0/",
            "::ffff:10.0.0.0/104",
        ] {
            assert!(wrong.parse::<HbaAddress>().is_err(), "{wrong}");
        }
        let own = |network: &str| network.parse::<HbaAddress>().unwrap().is_loopback();
        assert!(own("127.0.0.0/8") && own("127.0.0.1") && own("::1"));
        assert!(!own("all") && !own("0.0.0.0/0") && !own("126.0.0.0/7") && !own("::/0"));
    }

    #[test]
    fn the_first_rule_that_fits_counts_and_none_is_no() {
        let roles = Roles::default();
        let access = ClientAuthConfig {
            rules: Some(vec![
                rule(&["evil"], &["all"], "all", AuthMethod::Reject),
                rule(&["all"], &["sameuser"], "10.0.0.0/8", AuthMethod::Trust),
                rule(
                    &["postgres", "+pg_monitor"],
                    &["all"],
                    "all",
                    AuthMethod::Scram,
                ),
            ]),
            ..ClientAuthConfig::default()
        };
        let method = |request: HbaRequest<'_>| access.method(&request, &roles);
        assert_eq!(
            method(ask("10.0.0.1", "evil", "evil")),
            Some(AuthMethod::Reject)
        );
        assert_eq!(
            method(ask("10.0.0.1", "app", "app")),
            Some(AuthMethod::Trust)
        );
        assert_eq!(method(ask("10.0.0.1", "app", "other")), None);
        assert_eq!(method(ask("11.0.0.1", "app", "app")), None);
        assert_eq!(method(ask("::1", "postgres", "x")), Some(AuthMethod::Scram));
        // Names are names: "all" is not a user's way to be everybody.
        assert_eq!(method(ask("::1", "all", "all")), None);
    }

    #[test]
    fn encryption_counts() {
        let roles = Roles::default();
        let mut only = rule(&["all"], &["all"], "all", AuthMethod::Scram);
        only.channel = ConnType::HostSsl;
        let mut never = rule(&["all"], &["all"], "all", AuthMethod::Reject);
        never.channel = ConnType::HostNoSsl;
        let access = ClientAuthConfig {
            rules: Some(vec![only, never]),
            ..ClientAuthConfig::default()
        };
        let mut request = ask("1.2.3.4", "a", "b");
        assert_eq!(access.method(&request, &roles), Some(AuthMethod::Reject));
        request.encrypted = true;
        assert_eq!(access.method(&request, &roles), Some(AuthMethod::Scram));
    }

    #[test]
    fn without_rules_only_this_machine_is_trusted() {
        let roles = Roles::default();
        let access = ClientAuthConfig::default();
        let method = |address| access.method(&ask(address, "postgres", "postgres"), &roles);
        for own in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(method(own), Some(AuthMethod::Trust), "{own}");
        }
        for other in ["10.0.0.1", "fe80::1", "::ffff:10.0.0.1", "0.0.0.0"] {
            assert_eq!(method(other), Some(AuthMethod::Scram), "{other}");
        }
    }

    #[test]
    fn sockets_of_the_file_system_have_rules_of_their_own() {
        let roles = Roles::default();
        let mut local = rule(
            &["all"],
            &["all"],
            "all",
            AuthMethod::Peer(Some("m".to_owned())),
        );
        local.channel = ConnType::Local;
        let access = ClientAuthConfig {
            rules: Some(vec![
                local,
                rule(&["all"], &["all"], "all", AuthMethod::Scram),
            ]),
            ..ClientAuthConfig::default()
        };
        let method = |address| access.method(&ask(address, "a", "b"), &roles);
        assert_eq!(method("[local]"), Some(AuthMethod::Peer(Some("m"))));
        assert_eq!(method("127.0.0.1"), Some(AuthMethod::Scram));
        let only_hosts = ClientAuthConfig {
            rules: Some(vec![rule(&["all"], &["all"], "all", AuthMethod::Trust)]),
            ..ClientAuthConfig::default()
        };
        assert_eq!(only_hosts.method(&ask("[local]", "a", "b"), &roles), None);
        let none = ClientAuthConfig::default();
        let method = none.method(&ask("[local]", "a", "b"), &roles);
        assert_eq!(method, Some(AuthMethod::Trust));
    }

    #[test]
    fn maps_of_users_are_names_or_patterns() {
        let line =
            |system: &str, role: &str| IdentLine::new("m".to_owned(), system, role.to_owned());
        let one = line("root", "postgres").unwrap();
        assert!(one.fits("root", "postgres") && !one.fits("root", "root"));
        assert!(!one.fits("roo", "postgres"));
        let many = line("/^(.*)@example\\.com$", "\\1").unwrap();
        assert!(many.fits("ann@example.com", "ann") && !many.fits("ann@example.com", "bob"));
        assert!(!many.fits("ann@example.org", "ann"));
        assert!(line("/^x$", "\\1").unwrap_err().contains("subexpressions"));
        assert!(line("/(", "a").is_err());
    }

    #[test]
    fn trust_of_others_is_found() {
        let trusting = |network: &str, method| {
            trusts_others(&[rule(&["all"], &["all"], network, method)]).is_some()
        };
        assert!(trusting("all", AuthMethod::Trust) && trusting("10.0.0.0/8", AuthMethod::Trust));
        assert!(!trusting("127.0.0.0/8", AuthMethod::Trust) && !trusting("::1", AuthMethod::Trust));
        assert!(!trusting("all", AuthMethod::Scram) && !trusting("all", AuthMethod::Reject));
    }
}
