//! Settings whose values have a rule of their own: each gives the canonical form, or nothing for a value that is none.

use crate::CommitToken;
use logstead_sql_types::encoding::Encoding;

/// A number of workers, or all of them.
pub(super) fn workers_per_lane(value: &str) -> Option<String> {
    let value = value.trim();
    if value.eq_ignore_ascii_case("all") {
        return Some("all".to_owned());
    }
    let number: u16 = value.parse().ok()?;
    (1..=1024).contains(&number).then(|| number.to_string())
}

/// A number of instances, or `auto`.
pub(super) fn instances(value: &str) -> Option<String> {
    let value = value.trim();
    if value.eq_ignore_ascii_case("auto") {
        return Some("auto".to_owned());
    }
    let number: u16 = value.parse().ok()?;
    (1..=64).contains(&number).then(|| number.to_string())
}

pub(super) fn application_name(value: &str) -> Option<String> {
    // As PostgreSQL 15: what is not printable ASCII becomes a question mark, and names have 63 bytes at most.
    Some(
        value
            .chars()
            .flat_map(|c| {
                let bytes = if (' '..='~').contains(&c) {
                    1
                } else {
                    c.len_utf8()
                };
                std::iter::repeat_n(
                    if bytes == 1 && c.is_ascii() && !c.is_ascii_control() {
                        c
                    } else {
                        '?'
                    },
                    bytes,
                )
            })
            .take(63)
            .collect(),
    )
}

pub(super) fn client_encoding(value: &str) -> Option<String> {
    let found = Encoding::named(value)?;
    found.is_supported().then(|| found.name().to_owned())
}

/// A form and an order of fields: what is not named is ISO and MDY.
pub(super) fn date_style(value: &str) -> Option<String> {
    let (form, order) = date_words(value)?;
    Some(format!(
        "{}, {}",
        form.unwrap_or("ISO"),
        order.unwrap_or("MDY")
    ))
}

/// What is wrong with a style.
pub(super) fn date_style_wrong(value: &str) -> String {
    let Some(words) = super::session::split_identifiers(value) else {
        return "List syntax is invalid.".to_owned();
    };
    match words.iter().find(|word| date_words(word).is_none()) {
        Some(word) => format!("Unrecognized key word: \"{word}\"."),
        None => "Conflicting \"datestyle\" specifications.".to_owned(),
    }
}

/// The form and the order of fields that a style names, each if it names one; nothing if it is no style that there is.
pub(super) fn date_words(value: &str) -> Option<(Option<&'static str>, Option<&'static str>)> {
    let (mut form, mut order) = (None, None);
    for word in super::session::split_identifiers(value)? {
        let word = word.to_ascii_lowercase();
        let (which, named) = match word.as_str() {
            "iso" => (&mut form, "ISO"),
            "sql" => (&mut form, "SQL"),
            "german" => (&mut form, "German"),
            word if word.starts_with("postgres") => (&mut form, "Postgres"),
            "mdy" | "us" => (&mut order, "MDY"),
            "dmy" => (&mut order, "DMY"),
            "ymd" => (&mut order, "YMD"),
            word if word.starts_with("noneuro") => (&mut order, "MDY"),
            word if word.starts_with("euro") => (&mut order, "DMY"),
            "default" => {
                form = form.or(Some("ISO"));
                order = order.or(Some("MDY"));
                continue;
            }
            _ => return None,
        };
        if which.is_some_and(|before| before != named) {
            return None;
        }
        *which = Some(named);
    }
    if form == Some("German") {
        order = order.or(Some("DMY"));
    }
    Some((form, order))
}

/// A text search configuration, shown with its schema.
pub(super) fn text_search_config(value: &str) -> Option<String> {
    let config = logstead_sql_types::value::search::dictionary::named_config(value).ok()?;
    Some(format!("pg_catalog.{}", config.name))
}

/// A token of `logstead_commit_token()`, or nothing.
pub(super) fn commit_token(value: &str) -> Option<String> {
    match value {
        "" => Some(String::new()),
        token => Some(token.parse::<CommitToken>().ok()?.to_string()),
    }
}

pub(super) fn search_path(value: &str) -> Option<String> {
    super::session::split_identifiers(value).map(|_| value.to_owned())
}

pub(super) fn time_zone(value: &str) -> Option<String> {
    super::time_zone::read_time_zone(value).map(|(name, _)| name)
}

/// An address with a port, or nothing.
pub(super) fn metrics_address(value: &str) -> Option<String> {
    match value {
        "" => Some(String::new()),
        value => listen_address(value),
    }
}

/// An address with a port.
pub(super) fn listen_address(value: &str) -> Option<String> {
    let (host, port) = value.rsplit_once(':')?;
    let port: u16 = port.parse().ok()?;
    let host = if host.eq_ignore_ascii_case("localhost") {
        "127.0.0.1"
    } else {
        host
    };
    let plain = host
        .strip_prefix('[')
        .and_then(|h| h.strip_suffix(']'))
        .unwrap_or(host);
    let address: std::net::IpAddr = plain.parse().ok()?;
    Some(std::net::SocketAddr::new(address, port).to_string())
}
