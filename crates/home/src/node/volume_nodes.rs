//! The nodes of a volume as one of them sees the others: to read the volume as a whole, beside its server.
//!
//! A node knows them from its own part of the register, and has the fleet's secret. Nothing is changed.

use super::address::{fleet_node, open_node_with};
use super::fleet::open_to_read;
use crate::{HomeError, HomeStatus, LogHome, MemberList, RecordedMembers};
use logstead_env::Env;
use std::sync::Arc;

/// See the module's documentation.
#[derive(Clone)]
pub struct FleetPeers {
    /// `fleet://` with all members.
    url: String,
    /// Each member's `node://`.
    nodes: Vec<String>,
    own: usize,
    secret: Vec<u8>,
}

impl FleetPeers {
    /// Of the volume of this name; the members are what this node's part of the register says. `None`: they are not
    /// nodes only, or this node is none of them any more.
    pub fn new(volume: &str, members: &RecordedMembers, secret: &[u8]) -> Option<FleetPeers> {
        let own = members.own?;
        let host = |url: &String| {
            let host = url.strip_prefix("node://")?.split(['/', '?']).next()?;
            Some(host.to_owned())
        };
        let hosts: Option<Vec<String>> = members.urls.iter().map(host).collect();
        // Nodes with a certificate speak with nobody who does not encrypt.
        let is_encrypted = |url: &String| url.ends_with("?tls=on");
        let options = match members.urls.iter().any(is_encrypted) {
            true => "?tls=on",
            false => "",
        };
        let url = format!("fleet://{}/{volume}{options}", hosts?.join(","));
        let nodes = members.urls.iter().map(|node| fleet_node(&url, node).ok());
        Some(FleetPeers {
            nodes: nodes.collect::<Option<Vec<String>>>()?,
            url,
            own,
            secret: secret.to_vec(),
        })
    }

    /// The volume's URL, with all its nodes.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// This node's URL.
    pub fn own(&self) -> &str {
        &self.nodes[self.own]
    }

    /// The URLs of the nodes that stand before this one in the list.
    pub fn before(&self) -> &[String] {
        &self.nodes[..self.own]
    }

    /// What one of them reports of itself and of the volume.
    ///
    /// # Errors
    ///
    /// It cannot be reached, or has nothing of the volume.
    pub fn report_of(&self, node: &str, env: &Env) -> Result<Vec<(String, String)>, HomeError> {
        Ok(open_node_with(node, env, &self.secret)?.report())
    }

    /// The whole volume, with all its groups, to be read beside its server, and who the members of group 0 are now.
    ///
    /// # Errors
    ///
    /// [`HomeError::Io`] if too few nodes answer, [`HomeError::Missing`] if there is no such volume.
    pub fn open(&self, env: &Env) -> Result<(LogHome, MemberList), HomeError> {
        let (env_of, secret) = (env.clone(), self.secret.clone());
        let open = move |url: &str, _| open_node_with(url, &env_of, &secret);
        open_to_read(&self.url, env, Arc::new(open))
    }

    /// Is this node one of these members, and has it everything?
    pub fn standing_in(&self, list: &MemberList) -> Option<bool> {
        let is_own = |(url, _): &&(String, bool)| {
            fleet_node(&self.url, url).is_ok_and(|url| url == self.own())
        };
        list.members
            .iter()
            .find(is_own)
            .map(|(_, complete)| *complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(urls: &[&str], own: Option<usize>) -> RecordedMembers {
        RecordedMembers {
            urls: urls.iter().map(|url| (*url).to_owned()).collect(),
            own,
        }
    }

    #[test]
    fn a_node_knows_the_others_from_its_record() {
        let recorded = members(
            &["node://a:1/v?tls=on", "node://b:2/v", "node://c:3/v"],
            Some(1),
        );
        let peers = FleetPeers::new("v", &recorded, b"secret").expect("nodes only");
        assert_eq!(peers.url(), "fleet://a:1,b:2,c:3/v?tls=on");
        assert_eq!(peers.own(), "node://b:2/v?tls=on");
        assert_eq!(peers.before(), ["node://a:1/v?tls=on"]);
        let list = |urls: &[(&str, bool)]| MemberList {
            members: urls
                .iter()
                .map(|(url, complete)| ((*url).to_owned(), *complete))
                .collect(),
            wanted: None,
        };
        for (urls, standing) in [
            (
                &[("node://a:1/v", true), ("node://b:2/v", true)][..],
                Some(true),
            ),
            (
                &[("node://a:1/v", true), ("node://b:2/v", false)][..],
                Some(false),
            ),
            (&[("node://a:1/v", true), ("node://d:4/v", true)][..], None),
        ] {
            assert_eq!(peers.standing_in(&list(urls)), standing);
        }
        // Mixed lists, and a node that was removed.
        let mixed = members(&["node://a:1/v", "s3://bucket/v"], Some(0));
        assert!(FleetPeers::new("v", &mixed, b"").is_none());
        assert!(
            FleetPeers::new("v", &members(&["node://a:1/v", "node://b:2/v"], None), b"").is_none()
        );
    }
}
