//! The nodes of a volume as one home, and who they are to be.
//!
//! Which nodes a volume has, the register in them says. A change is written down there, and the server that has the
//! lease makes it so while it runs ([`ReplicatedHome::edit_members`]).

use super::address::{fleet_node, fleet_nodes, open_node};
use crate::replicated::repair_of;
use crate::{
    DamageCheck, HomeError, MemberList, OpenPurpose, Opener, ReplicatedHome, ReplicatedOptions,
    Source, WriteConcern,
};
use logstead_env::Env;
use std::sync::Arc;

/// The nodes of a fleet as one: a majority of them makes an append durable (Aurora, section 2.1). Which nodes these
/// are, the register in them says; the URL names some of them, or, for a new volume, all.
pub(crate) fn open_fleet(
    url: &str,
    env: &Env,
    purpose: OpenPurpose,
    damage: Option<DamageCheck>,
) -> Result<ReplicatedHome, HomeError> {
    let write = purpose != OpenPurpose::Reading;
    let (fleet, of_member) = (url.to_owned(), env.clone());
    let open_member = move |url: &str| -> Opener {
        let (url, env) = (fleet_node(&fleet, url), of_member.clone());
        Arc::new(move || Ok(open_node(&url.clone()?, &env, write)?.into()))
    };
    let seed = |url: String| Source {
        open: open_member(&url),
        url,
    };
    let seeds = fleet_nodes(url)?.into_iter().map(seed).collect();
    let options = ReplicatedOptions {
        ack: WriteConcern::Majority,
        purpose,
        damage,
        ..ReplicatedOptions::default()
    };
    ReplicatedHome::open_members(seeds, Arc::new(open_member), env, options)
}

/// Which nodes are the members of a fleet's volume, also beside a server.
///
/// # Errors
///
/// [`HomeError::Missing`] if there is no such volume, [`HomeError::Io`] if too few nodes answer.
pub fn fleet_members(url: &str, env: &Env) -> Result<MemberList, HomeError> {
    open_fleet(url, env, OpenPurpose::Reading, None)?.members()
}

/// A change of the members of a fleet's volume. Nodes are HOST:PORT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FleetChange {
    /// A node becomes one, in the place of another or beside them.
    Add {
        /// The new one.
        node: String,
        /// Who goes for it.
        instead_of: Option<String>,
    },
    /// A node is one no more.
    Remove(String),
    /// What a node has is compared with what the others have.
    Repair(String),
}

/// Writes down how the members of a fleet's volume are to change. The server makes it so, now or when it starts. Back
/// comes the list that is wanted.
///
/// # Errors
///
/// Those of [`fleet_members`], and [`HomeError::Url`] for a node that is none of them, is one already, or cannot be
/// one.
pub fn change_fleet(url: &str, env: &Env, change: &FleetChange) -> Result<Vec<String>, HomeError> {
    // A volume that is not there is not made by asking for it.
    let list = fleet_members(url, env)?;
    let home = open_fleet(url, env, OpenPurpose::Log, None)?;
    if let FleetChange::Add { node, .. } = change {
        let node = fleet_node(url, node)?;
        if !list.members.iter().any(|(member, _)| *member == node) {
            match open_node(&node, env, false) {
                Ok(there) => home.must_be_able_to_join(&there.into(), &node)?,
                // It has nothing of the volume yet.
                Err(HomeError::Missing(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }
    home.edit_members(&|present| edited(url, present, change))
}

fn edited(fleet: &str, present: &[String], change: &FleetChange) -> Result<Vec<String>, HomeError> {
    let refused = |node: &str, what: &str| HomeError::Url {
        url: node.to_owned(),
        what: what.to_owned(),
    };
    let mut list = present.to_vec();
    // Recorded with other options, perhaps.
    let index_of = |node: &str| -> Result<Option<usize>, HomeError> {
        let wanted = fleet_node(fleet, node)?;
        let is_it = |url: &String| fleet_node(fleet, url).is_ok_and(|url| url == wanted);
        Ok(present.iter().position(is_it))
    };
    let member = |node: &str| {
        index_of(node)?.ok_or_else(|| refused(node, "it is none of the volume's nodes"))
    };
    match change {
        FleetChange::Add { node, instead_of } => {
            if index_of(node)?.is_some() {
                return Err(refused(node, "it is one of the volume's nodes already"));
            }
            let url = fleet_node(fleet, node)?;
            match instead_of {
                Some(old) => list[member(old)?] = url,
                None => list.push(url),
            }
        }
        FleetChange::Remove(node) => {
            list.remove(member(node)?);
            if list.len() < 2 {
                return Err(refused(node, "a fleet has two nodes at least"));
            }
        }
        FleetChange::Repair(node) => {
            let url = &mut list[member(node)?];
            *url = repair_of(url);
        }
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_edited() {
        let fleet = "fleet://a:1,b:2/v?tls=on";
        let present = ["node://a:1/v", "node://b:2/v", "node://c:3/v"].map(str::to_owned);
        let add = |node: &str, instead_of: Option<&str>| FleetChange::Add {
            node: node.to_owned(),
            instead_of: instead_of.map(str::to_owned),
        };
        let remove = |node: &str| FleetChange::Remove(node.to_owned());
        let repair = |node: &str| FleetChange::Repair(node.to_owned());
        for (change, list) in [
            (
                add("d:4", None),
                "node://a:1/v node://b:2/v node://c:3/v node://d:4/v?tls=on",
            ),
            (
                add("d:4", Some("b:2")),
                "node://a:1/v node://d:4/v?tls=on node://c:3/v",
            ),
            (remove("a:1"), "node://b:2/v node://c:3/v"),
            (
                repair("c:3"),
                "node://a:1/v node://b:2/v node://c:3/v repair",
            ),
        ] {
            let edited = edited(fleet, &present, &change).expect("can be done");
            assert_eq!(edited.join(" "), list);
        }
        for (change, why) in [
            (add("a:1", None), "already"),
            (add("d:4", Some("e:5")), "none of"),
            (remove("d:4"), "none of"),
            (repair("d"), "HOST:PORT"),
        ] {
            let error = edited(fleet, &present, &change).expect_err("cannot be done");
            assert!(error.to_string().contains(why), "{error}");
        }
        assert!(edited(fleet, &present[..2], &remove("a:1")).is_err());
    }
}
