//! URLs of nodes and of fleets.
//!
//! | URL | what |
//! |---|---|
//! | `node://HOST:PORT/VOLUME` | a volume on one storage node |
//! | `fleet://HOST:PORT,HOST:PORT,.../VOLUME` | the same volume on several, as one home |
//!
//! `?tls=on` behind either encrypts. The fleet's secret is in the variable `LOGSTEAD_FLEET_SECRET`, or in the file that
//! `LOGSTEAD_FLEET_SECRET_FILE` names; without one it is empty, which nodes take on a loopback address only.

use super::handshake::{VolumeKey, is_volume_name};
use super::home::NodeHome;
use super::session::NodeAddress;
use crate::HomeError;
use logstead_env::Env;
use std::path::Path;

const NODE: &str = "node://";
const FLEET: &str = "fleet://";
/// The variable with the fleet's secret.
pub const SECRET_VARIABLE: &str = "LOGSTEAD_FLEET_SECRET";
/// The variable with the name of the file with the fleet's secret.
pub const SECRET_FILE_VARIABLE: &str = "LOGSTEAD_FLEET_SECRET_FILE";
/// Nodes of one group of a volume, at most.
pub(super) const NODES_MAX: usize = 32;

fn wrong(url: &str, what: impl Into<String>) -> HomeError {
    HomeError::Url {
        url: url.to_owned(),
        what: what.into(),
    }
}

/// Takes `SCHEME://HOSTS/VOLUME?OPTIONS` apart.
fn parts<'u>(url: &'u str, scheme: &str) -> Result<(&'u str, &'u str, Option<&'u str>), HomeError> {
    let shown = |what: &str| wrong(url, format!("{what}: it is {scheme}HOST:PORT/VOLUME"));
    let rest = url.get(scheme.len()..).unwrap_or_default();
    let (rest, options) = match rest.split_once('?') {
        Some((rest, options)) => (rest, Some(options)),
        None => (rest, None),
    };
    let (hosts, volume) = rest
        .split_once('/')
        .ok_or_else(|| shown("it names no volume"))?;
    if !is_volume_name(volume) {
        return Err(shown(
            "a volume's name is words of letters, digits, - and _, with slashes between them",
        ));
    }
    Ok((hosts, volume, options))
}

/// The URLs of a fleet's nodes.
pub fn fleet_nodes(url: &str) -> Result<Vec<String>, HomeError> {
    let (hosts, volume, options) = parts(url, FLEET)?;
    let options = options.map_or_else(String::new, |options| format!("?{options}"));
    let hosts: Vec<&str> = hosts.split(',').map(str::trim).collect();
    if hosts.len() < 2 || hosts.len() > NODES_MAX {
        let what = format!("a fleet has from 2 to {NODES_MAX} nodes");
        return Err(wrong(url, what));
    }
    let node = |host: &&str| format!("{NODE}{host}/{volume}{options}");
    Ok(hosts.iter().map(node).collect())
}

/// The URL of a node as a home for a fleet's volume: with the volume and the options of the fleet's URL, whatever those
/// of the node's are. `node` is HOST:PORT, or a node's URL.
pub fn fleet_node(fleet: &str, node: &str) -> Result<String, HomeError> {
    let (_, volume, options) = parts(fleet, FLEET)?;
    let host = node.strip_prefix(NODE).unwrap_or(node);
    let host = host.split(['/', '?']).next().unwrap_or_default();
    let port = host.rsplit_once(':').map(|(_, port)| port);
    if port.is_none_or(|port| port.parse::<u16>().is_err()) || host.contains(['@', ',']) {
        return Err(wrong(node, "a node's address is HOST:PORT"));
    }
    let options = options.map_or_else(String::new, |options| format!("?{options}"));
    Ok(format!("{NODE}{host}/{volume}{options}"))
}

/// The fleet's secret; empty where none is given. `variable` has the process's environment.
pub fn secret(env: &Env, variable: impl Fn(&str) -> Option<String>) -> Result<Vec<u8>, HomeError> {
    if let Some(secret) = variable(SECRET_VARIABLE) {
        return Ok(secret.into_bytes());
    }
    let Some(file) = variable(SECRET_FILE_VARIABLE) else {
        return Ok(Vec::new());
    };
    let read = env.files.read(Path::new(&file));
    let mut secret =
        read.map_err(|error| HomeError::io(format!("read the secret in {file}"), error))?;
    while secret.last().is_some_and(u8::is_ascii_whitespace) {
        secret.pop();
    }
    Ok(secret)
}

/// Where a node is, from its URL. `variable` has the process's environment.
fn node_address(
    url: &str,
    env: &Env,
    write: bool,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<NodeAddress, HomeError> {
    node_address_with(url, write, || secret(env, variable))
}

/// The same with the fleet's secret from somewhere else.
fn node_address_with(
    url: &str,
    write: bool,
    secret: impl FnOnce() -> Result<Vec<u8>, HomeError>,
) -> Result<NodeAddress, HomeError> {
    let (address, volume, options) = parts(url, NODE)?;
    if address.contains('@') {
        let what =
            format!("credentials do not belong in a URL: the secret is in {SECRET_VARIABLE}");
        return Err(wrong("node://...", what));
    }
    let port = address.rsplit_once(':').map(|(_, port)| port);
    if port.is_none_or(|port| port.parse::<u16>().is_err()) {
        return Err(wrong(url, "a node's address is HOST:PORT"));
    }
    let mut encrypted = false;
    for option in options
        .unwrap_or_default()
        .split('&')
        .filter(|o| !o.is_empty())
    {
        encrypted = match option {
            "tls=on" => true,
            "tls=off" => false,
            _ => {
                let what = format!("\"{option}\" is no option of it; tls=on is");
                return Err(wrong(url, what));
            }
        };
    }
    let secret = secret()?;
    Ok(NodeAddress {
        key: VolumeKey::of_secret(&secret, volume),
        address: address.to_owned(),
        volume: volume.to_owned(),
        encrypted,
        has_secret: !secret.is_empty(),
        write,
    })
}

/// Opens the volume that a node's URL names.
pub(crate) fn open_node(url: &str, env: &Env, write: bool) -> Result<NodeHome, HomeError> {
    let node = node_address(url, env, write, |name| std::env::var(name).ok())?;
    NodeHome::open(node, env)
}

/// Opens the same to be read only, with a secret that is known.
pub(super) fn open_node_with(url: &str, env: &Env, secret: &[u8]) -> Result<NodeHome, HomeError> {
    let node = node_address_with(url, false, || Ok(secret.to_vec()))?;
    NodeHome::open(node, env)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_is_its_nodes() {
        let urls = fleet_nodes("fleet://a:1, b:2,[::1]:3/x/y?tls=on").expect("a good one");
        assert_eq!(
            urls,
            [
                "node://a:1/x/y?tls=on",
                "node://b:2/x/y?tls=on",
                "node://[::1]:3/x/y?tls=on"
            ]
        );
        let fleet = "fleet://a:1,b:2/x/y?tls=on";
        for node in ["c:3", "node://c:3/x/y", "node://c:3/x/y?tls=off"] {
            let url = fleet_node(fleet, node).expect("a good one");
            assert_eq!(url, "node://c:3/x/y?tls=on");
        }
        for node in ["", "c", "c:d", "u@c:3", "c:3,d:4"] {
            assert!(fleet_node(fleet, node).is_err(), "{node}");
        }
        for (url, why) in [
            ("fleet://a:1/x", "from 2 to"),
            ("fleet://a:1,b:2", "no volume"),
            ("fleet://a:1,b:2/", "a volume's name"),
            ("fleet://a:1,b:2/../x", "a volume's name"),
        ] {
            let error = fleet_nodes(url).expect_err(url).to_string();
            assert!(error.contains(why), "{url}: {error}");
        }
    }

    #[test]
    fn a_nodes_url_says_where_and_how() {
        let (env, _) = Env::simulated(1);
        let none = |_: &str| None;
        let node = node_address("node://h:7001/v?tls=on", &env, true, none).expect("good");
        assert_eq!(
            (
                node.address.as_str(),
                node.volume.as_str(),
                node.encrypted,
                node.write
            ),
            ("h:7001", "v", true, true)
        );
        for (url, why) in [
            ("node://h/v", "HOST:PORT"),
            ("node://h:x/v", "HOST:PORT"),
            ("node://h:1", "no volume"),
            ("node://h:1/v?colour=red", "colour=red"),
            ("node://user:secret@h:1/v", "credentials do not belong"),
        ] {
            let error = node_address(url, &env, true, none)
                .map(drop)
                .expect_err(url);
            assert!(error.to_string().contains(why), "{url}: {error}");
            assert!(!error.to_string().contains("secret@"), "{error}");
        }
    }
}
