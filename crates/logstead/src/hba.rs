//! The rules of who may connect, in the settings file: an array of tables `[[hba]]`.

use logstead_wire::access::{Channel, Method, Network, Rule};

/// Reads the array.
pub(crate) fn rules(value: &toml::Value) -> Result<Vec<Rule>, String> {
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

fn rule(table: &toml::Table) -> Result<Rule, String> {
    const KNOWN: [&str; 5] = ["type", "database", "user", "address", "method"];
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
        .find(|name| matches!(name.as_str(), "samerole" | "samegroup" | "replication"))
    {
        return Err(format!("database \"{word}\" is not supported"));
    }
    Ok(Rule {
        channel: text("type", Some("host"))?.parse::<Channel>()?,
        databases,
        users: names("user")?,
        network: text("address", None)?.parse::<Network>()?,
        method: text("method", None)?.parse::<Method>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Rule>, String> {
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
            (read[0].channel, read[0].method),
            (Channel::HostSsl, Method::Scram)
        );
        assert_eq!(read[1].users, ["all"]);
        assert_eq!(
            (read[1].network, read[1].method),
            (Network::All, Method::Reject)
        );
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
                "local",
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
