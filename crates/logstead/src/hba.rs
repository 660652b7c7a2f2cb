//! The rules of who may connect, in the settings file: an array of tables `[[hba]]`, and `[[ident]]` with the maps of
//! the system's users.

use logstead_wire::hba::{AuthMethod, ConnType, HbaAddress, HbaLine, IdentLine};

/// Reads the array.
pub(crate) fn rules(value: &toml::Value) -> Result<Vec<HbaLine>, String> {
    let wrong = || "\"hba\" must be tables, each written [[hba]]".to_owned();
    let list = value.as_array().ok_or_else(wrong)?;
    list.iter()
        .enumerate()
        .map(|(at, value)| {
            let table = value.as_table().ok_or_else(wrong)?;
            rule(table).map_err(|error| format!("hba rule {}: {error}", at + 1))
        })
        .collect()
}

/// Reads the maps.
pub(crate) fn identities(value: &toml::Value) -> Result<Vec<IdentLine>, String> {
    let wrong = || "\"ident\" must be tables, each written [[ident]]".to_owned();
    let list = value.as_array().ok_or_else(wrong)?;
    list.iter()
        .enumerate()
        .map(|(at, value)| {
            let table = value.as_table().ok_or_else(wrong)?;
            identity(table).map_err(|error| format!("ident line {}: {error}", at + 1))
        })
        .collect()
}

fn identity(table: &toml::Table) -> Result<IdentLine, String> {
    const KNOWN: [&str; 3] = ["map", "system", "user"];
    if let Some(unknown) = table.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(format!("unknown key \"{unknown}\""));
    }
    let text = |key: &str| match table.get(key) {
        Some(toml::Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("\"{key}\" must be a text")),
        None => Err(format!("\"{key}\" is missing")),
    };
    IdentLine::new(text("map")?, &text("system")?, text("user")?)
}

/// A rule names a map that no line has: it would let nobody in.
pub(crate) fn unknown_map<'a>(rules: &'a [HbaLine], identities: &[IdentLine]) -> Option<&'a str> {
    rules.iter().find_map(|rule| match &rule.method {
        AuthMethod::Peer(Some(map)) if identities.iter().all(|line| line.map != *map) => {
            Some(map.as_str())
        }
        _ => None,
    })
}

fn rule(table: &toml::Table) -> Result<HbaLine, String> {
    const KNOWN: [&str; 6] = ["type", "database", "user", "address", "method", "map"];
    if let Some(unknown) = table.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(format!("unknown key \"{unknown}\""));
    }
    let text = |key: &str, default: Option<&str>| match (table.get(key), default) {
        (Some(toml::Value::String(text)), _) => Ok(text.clone()),
        (None, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(format!("\"{key}\" is missing")),
        (Some(_), _) => Err(format!("\"{key}\" must be a text")),
    };
    let names = |key: &str| match table.get(key) {
        None => Ok(vec!["all".to_owned()]),
        Some(toml::Value::String(name)) => Ok(vec![name.clone()]),
        Some(toml::Value::Array(list)) if !list.is_empty() => list
            .iter()
            .map(|name| name.as_str().map(str::to_owned))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| format!("\"{key}\" must be names")),
        Some(_) => Err(format!("\"{key}\" must be a name or a list of names")),
    };
    let databases = names("database")?;
    // Others' words that would otherwise be names that nobody has.
    if let Some(word) = databases
        .iter()
        .find(|name| matches!(name.as_str(), "samerole" | "samegroup"))
    {
        return Err(format!("database \"{word}\" is not supported"));
    }
    let channel = text("type", Some("host"))?.parse::<ConnType>()?;
    let network = match channel {
        ConnType::Local if table.contains_key("address") => {
            return Err("a rule for local connections has no \"address\"".to_owned());
        }
        ConnType::Local => HbaAddress::All,
        _ => text("address", None)?.parse::<HbaAddress>()?,
    };
    let method = match text("method", None)?.parse::<AuthMethod>()? {
        AuthMethod::Peer(_) if channel != ConnType::Local => {
            return Err("peer authentication is only supported on local sockets".to_owned());
        }
        AuthMethod::Peer(_) if table.contains_key("map") => {
            AuthMethod::Peer(Some(text("map", None)?))
        }
        _ if table.contains_key("map") => {
            return Err("\"map\" is only for the method peer".to_owned());
        }
        method => method,
    };
    Ok(HbaLine {
        channel,
        databases,
        users: names("user")?,
        network,
        method,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<HbaLine>, String> {
        let table: toml::Table = text.parse().unwrap();
        rules(&table["hba"])
    }

    #[test]
    fn rules_are_read_in_order() {
        let read = read(
            "[[hba]]\ntype = 'hostssl'\ndatabase = ['a', 'b']\nuser = '+app'\naddress = '10.0.0.0/8'\nmethod = 'scram-sha-256'\n\
             [[hba]]\naddress = 'all'\nmethod = 'reject'",
        )
        .unwrap();
        assert_eq!(read[0].databases, ["a", "b"]);
        assert_eq!(
            (read[0].channel, read[0].method.clone()),
            (ConnType::HostSsl, AuthMethod::Scram)
        );
        assert_eq!(read[1].users, ["all"]);
        assert_eq!(
            (read[1].network, read[1].method.clone()),
            (HbaAddress::All, AuthMethod::Reject)
        );
    }

    #[test]
    fn local_rules_may_name_a_map() {
        let rules = read(
            "[[hba]]\ntype = 'local'\nmethod = 'peer'\n[[hba]]\ntype = 'local'\nmethod = 'peer'\nmap = 'm'",
        )
        .unwrap();
        assert_eq!(rules[0].method, AuthMethod::Peer(None));
        assert_eq!(rules[1].method, AuthMethod::Peer(Some("m".to_owned())));
        assert_eq!(unknown_map(&rules, &[]), Some("m"));
        let table: toml::Table = "[[ident]]\nmap = 'm'\nsystem = 'root'\nuser = 'postgres'"
            .parse()
            .unwrap();
        let lines = identities(&table["ident"]).unwrap();
        assert!(lines[0].fits("root", "postgres"));
        assert_eq!(unknown_map(&rules, &lines), None);
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        for (text, named) in [
            ("hba = 1", "[[hba]]"),
            ("[[hba]]\nmethod = 'trust'", "address"),
            ("[[hba]]\naddress = 'all'", "method"),
            ("[[hba]]\naddress = 'all'\nmethod = 'md5'", "md5"),
            (
                "[[hba]]\naddress = 'all'\nmethod = 'trust'\nusers = 'a'",
                "users",
            ),
            (
                "[[hba]]\naddress = 'all'\nmethod = 'trust'\ntype = 'local'",
                "address",
            ),
            ("[[hba]]\naddress = 'all'\nmethod = 'peer'", "local sockets"),
            (
                "[[hba]]\ntype = 'local'\nmethod = 'trust'\nmap = 'm'",
                "map",
            ),
            (
                "[[hba]]\naddress = 'samehost'\nmethod = 'trust'",
                "samehost",
            ),
            (
                "[[hba]]\naddress = 'all'\nmethod = 'trust'\nuser = []",
                "user",
            ),
            (
                "[[hba]]\naddress = 'all'\nmethod = 'trust'\ndatabase = 'samerole'",
                "samerole",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }
}
