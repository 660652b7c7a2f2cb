//! Who may try to connect from where, and how they prove who they are: rules like those of PostgreSQL's `pg_hba.conf`.
//!
//! Owns: [`Rule`] and the choice of the first that fits. Pure: addresses and names in, a method out.
//!
//! Invariants: where no rule fits, nobody gets in. Without rules of its own a server trusts its own machine until a superuser has a
//! password, and asks everybody else for theirs.

use crate::tls::Tls;
use logstead_sql_catalog::role::Roles;
use regex::Regex;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::time::Duration;

/// How a client proves who it is. A map is named by an `M`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method<M = String> {
    /// It need not.
    Trust,
    /// It cannot.
    Reject,
    /// By its password.
    Scram,
    /// By the system's user that it is, who has the role's name or is mapped to it.
    Peer(Option<M>),
}

impl<M> FromStr for Method<M> {
    type Err = String;

    fn from_str(text: &str) -> Result<Method<M>, String> {
        match text {
            "trust" => Ok(Method::Trust),
            "reject" => Ok(Method::Reject),
            "scram-sha-256" => Ok(Method::Scram),
            "peer" => Ok(Method::Peer(None)),
            other => Err(format!(
                "method \"{other}\" is not supported; there are trust, reject, scram-sha-256 and peer"
            )),
        }
    }
}

/// A line of a map of the system's users to roles.
#[derive(Clone, Debug)]
pub struct Identity {
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

impl Identity {
    /// A line as it is written: a name behind a slash is a pattern.
    pub fn new(map: String, system: &str, role: String) -> Result<Identity, String> {
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
        Ok(Identity { map, system, role })
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
pub enum Channel {
    /// All.
    Host,
    /// Encrypted ones.
    HostSsl,
    /// Others.
    HostNoSsl,
    /// Those by a socket of the file system.
    Local,
}

impl FromStr for Channel {
    type Err = String;

    fn from_str(text: &str) -> Result<Channel, String> {
        match text {
            "host" => Ok(Channel::Host),
            "hostssl" => Ok(Channel::HostSsl),
            "hostnossl" => Ok(Channel::HostNoSsl),
            "local" => Ok(Channel::Local),
            other => Err(format!(
                "type \"{other}\" is not supported; there are local, host, hostssl and hostnossl"
            )),
        }
    }
}

/// Addresses that a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
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

impl Network {
    /// Is the address one of them?
    pub fn contains(&self, address: IpAddr) -> bool {
        match *self {
            Network::All => true,
            Network::Prefix(of, length) => {
                let ((a, family), (b, other)) = (bits(of), bits(address.to_canonical()));
                let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
                family == other && (a & mask) == (b & mask)
            }
        }
    }

    /// Are all of them this machine's own?
    pub fn is_loopback(&self) -> bool {
        let own = [
            Network::Prefix(IpAddr::V4(Ipv4Addr::LOCALHOST), 8),
            Network::Prefix(IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
        ];
        match *self {
            Network::All => false,
            Network::Prefix(of, length) => own.iter().any(|own| match own {
                Network::Prefix(_, least) => own.contains(of) && length >= *least,
                Network::All => false,
            }),
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        if text == "all" {
            return Ok(Network::All);
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
        Ok(Network::Prefix(address, length))
    }
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Which connections.
    pub channel: Channel,
    /// Databases: names, "all", "sameuser".
    pub databases: Vec<String>,
    /// Users: names, "all", "+role" for its members.
    pub users: Vec<String>,
    /// From where; all for sockets of the file system.
    pub network: Network,
    /// How they prove who they are.
    pub method: Method,
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// From where; nothing for a socket of the file system.
    pub address: Option<IpAddr>,
    /// Over an encrypted connection.
    pub encrypted: bool,
    /// The name given.
    pub user: &'a str,
    /// The database asked for.
    pub database: &'a str,
}

impl Rule {
    fn fits(&self, request: &Request<'_>, roles: &Roles) -> bool {
        let channel = match self.channel {
            Channel::Local => request.address.is_none(),
            Channel::Host => true,
            Channel::HostSsl => request.encrypted,
            Channel::HostNoSsl => !request.encrypted,
        };
        let from = match request.address {
            None => self.channel == Channel::Local,
            Some(address) => self.network.contains(address),
        };
        let database = self.databases.iter().any(|name| match name.as_str() {
            "all" => true,
            "sameuser" => request.database == request.user,
            name => request.database == name,
        });
        let user = || {
            self.users.iter().any(|name| match name.strip_prefix('+') {
                Some(group) => match (roles.by_name(request.user), roles.by_name(group)) {
                    // Superusers are members only of what they were made members of: else "+admins reject" would shut them out.
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
pub struct Access {
    /// The rules, the first that fits counts; none is the default.
    pub rules: Option<Vec<Rule>>,
    /// Maps of the system's users to roles.
    pub identities: Vec<Identity>,
    /// A client that is not through with it by then is cut off.
    pub timeout: Duration,
    /// Encryption, where it can be had.
    pub tls: Option<Tls>,
}

impl Default for Access {
    fn default() -> Access {
        Access {
            rules: None,
            identities: Vec::new(),
            timeout: Duration::from_secs(60),
            tls: None,
        }
    }
}

impl Access {
    /// How this client proves who it is; nothing if no rule fits.
    pub fn method(&self, request: &Request<'_>, roles: &Roles) -> Option<Method<&str>> {
        match &self.rules {
            Some(rules) => {
                let rule = rules.iter().find(|rule| rule.fits(request, roles))?;
                Some(match &rule.method {
                    Method::Trust => Method::Trust,
                    Method::Reject => Method::Reject,
                    Method::Scram => Method::Scram,
                    Method::Peer(map) => Method::Peer(map.as_deref()),
                })
            }
            None => {
                let own = request
                    .address
                    .is_none_or(|address| address.to_canonical().is_loopback());
                Some(match own && !roles.has_superuser_password() {
                    true => Method::Trust,
                    false => Method::Scram,
                })
            }
        }
    }
}

/// The first rule that lets somebody from elsewhere in who proves nothing.
pub fn trusts_others(rules: &[Rule]) -> Option<&Rule> {
    rules.iter().find(|rule| {
        rule.method == Method::Trust
            && rule.channel != Channel::Local
            && !rule.network.is_loopback()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(users: &[&str], databases: &[&str], network: &str, method: Method) -> Rule {
        let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        Rule {
            channel: Channel::Host,
            databases: owned(databases),
            users: owned(users),
            network: network.parse().unwrap(),
            method,
        }
    }

    fn ask<'a>(address: &str, user: &'a str, database: &'a str) -> Request<'a> {
        Request {
            address: address.parse().ok(),
            encrypted: false,
            user,
            database,
        }
    }

    #[test]
    fn networks() {
        let has = |network: &str, address: &str| {
            let network: Network = network.parse().unwrap();
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
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
        let own = |network: &str| network.parse::<Network>().unwrap().is_loopback();
        assert!(own("127.0.0.0/8") && own("127.0.0.1") && own("::1"));
        assert!(!own("all") && !own("0.0.0.0/0") && !own("126.0.0.0/7") && !own("::/0"));
    }

    #[test]
    fn the_first_rule_that_fits_counts_and_none_is_no() {
        let roles = Roles::default();
        let access = Access {
            rules: Some(vec![
                rule(&["evil"], &["all"], "all", Method::Reject),
                rule(&["all"], &["sameuser"], "10.0.0.0/8", Method::Trust),
                rule(&["postgres", "+pg_monitor"], &["all"], "all", Method::Scram),
            ]),
            ..Access::default()
        };
        let method = |request: Request<'_>| access.method(&request, &roles);
        assert_eq!(
            method(ask("10.0.0.1", "evil", "evil")),
            Some(Method::Reject)
        );
        assert_eq!(method(ask("10.0.0.1", "app", "app")), Some(Method::Trust));
        assert_eq!(method(ask("10.0.0.1", "app", "other")), None);
        assert_eq!(method(ask("11.0.0.1", "app", "app")), None);
        assert_eq!(method(ask("::1", "postgres", "x")), Some(Method::Scram));
        // Names are names: "all" is not a user's way to be everybody.
        assert_eq!(method(ask("::1", "all", "all")), None);
    }

    #[test]
    fn encryption_counts() {
        let roles = Roles::default();
        let mut only = rule(&["all"], &["all"], "all", Method::Scram);
        only.channel = Channel::HostSsl;
        let mut never = rule(&["all"], &["all"], "all", Method::Reject);
        never.channel = Channel::HostNoSsl;
        let access = Access {
            rules: Some(vec![only, never]),
            ..Access::default()
        };
        let mut request = ask("1.2.3.4", "a", "b");
        assert_eq!(access.method(&request, &roles), Some(Method::Reject));
        request.encrypted = true;
        assert_eq!(access.method(&request, &roles), Some(Method::Scram));
    }

    #[test]
    fn without_rules_only_this_machine_is_trusted() {
        let roles = Roles::default();
        let access = Access::default();
        let method = |address| access.method(&ask(address, "postgres", "postgres"), &roles);
        for own in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(method(own), Some(Method::Trust), "{own}");
        }
        for other in ["10.0.0.1", "fe80::1", "::ffff:10.0.0.1", "0.0.0.0"] {
            assert_eq!(method(other), Some(Method::Scram), "{other}");
        }
    }

    #[test]
    fn sockets_of_the_file_system_have_rules_of_their_own() {
        let roles = Roles::default();
        let mut local = rule(
            &["all"],
            &["all"],
            "all",
            Method::Peer(Some("m".to_owned())),
        );
        local.channel = Channel::Local;
        let access = Access {
            rules: Some(vec![local, rule(&["all"], &["all"], "all", Method::Scram)]),
            ..Access::default()
        };
        let method = |address| access.method(&ask(address, "a", "b"), &roles);
        assert_eq!(method("[local]"), Some(Method::Peer(Some("m"))));
        assert_eq!(method("127.0.0.1"), Some(Method::Scram));
        let only_hosts = Access {
            rules: Some(vec![rule(&["all"], &["all"], "all", Method::Trust)]),
            ..Access::default()
        };
        assert_eq!(only_hosts.method(&ask("[local]", "a", "b"), &roles), None);
        let none = Access::default();
        let method = none.method(&ask("[local]", "a", "b"), &roles);
        assert_eq!(method, Some(Method::Trust));
    }

    #[test]
    fn maps_of_users_are_names_or_patterns() {
        let line =
            |system: &str, role: &str| Identity::new("m".to_owned(), system, role.to_owned());
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
        assert!(trusting("all", Method::Trust) && trusting("10.0.0.0/8", Method::Trust));
        assert!(!trusting("127.0.0.0/8", Method::Trust) && !trusting("::1", Method::Trust));
        assert!(!trusting("all", Method::Scram) && !trusting("all", Method::Reject));
    }
}
