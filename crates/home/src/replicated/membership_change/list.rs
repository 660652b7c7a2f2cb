//! The list of members that somebody wants, and what of it is to be done next.
//!
//! It stands in the register ([`WANTED`]): a URL in each line, with ` repair` behind it where that member is to be
//! compared with the others. It stays there when it has been done.

use crate::replicated::register::{RECORD, WANTED};
use crate::replicated::state::{Member, StoredAcceptor};
use crate::replicated::{Inner, ReplicatedHome};
use crate::{HomeError, LogHome, Tag};

/// Makes a list from the one that is wanted now.
type ListEdit<'e> = dyn Fn(&[String]) -> Result<Vec<String>, HomeError> + 'e;

/// A home of several has at least so many members.
const MEMBERS_MIN: usize = 2;
/// Behind the URL of a member that is to be compared.
const REPAIR: &str = " repair";

/// What is to change next: a home comes, or one goes, or one takes another one's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::replicated) struct MemberSwap {
    pub(in crate::replicated) add: Option<String>,
    pub(in crate::replicated) remove: Option<u64>,
}

/// The line of a member that is to be compared with the others.
pub(crate) fn repair_of(line: &str) -> String {
    format!("{}{REPAIR}", url_of(line))
}

/// The URL in a line.
fn url_of(line: &str) -> &str {
    line.strip_suffix(REPAIR).unwrap_or(line)
}

fn lines_of(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// The URLs of a list, as it stands in the register.
pub(super) fn wanted_urls(bytes: &[u8]) -> Vec<String> {
    let lines = lines_of(bytes);
    lines.iter().map(|line| url_of(line).to_owned()).collect()
}

/// Those of the members that are to be compared.
pub(super) fn urls_to_repair(bytes: &[u8]) -> Vec<String> {
    let lines = lines_of(bytes).into_iter();
    let urls = lines.filter_map(|line| Some(line.strip_suffix(REPAIR)?.to_owned()));
    urls.collect()
}

/// A list in which this member is not to be compared any more.
pub(super) fn without_repair(lines: &[String], url: &str) -> Vec<String> {
    let line = |line: &String| match url_of(line) == url {
        true => url.to_owned(),
        false => line.clone(),
    };
    lines.iter().map(line).collect()
}

/// What is to be done first. `members`: each with whether it is up; `emptied`: those whose places are empty.
pub(super) fn next_swap(
    members: &[(&Member, bool)],
    emptied: &[u64],
    wanted: Option<&[String]>,
) -> Option<MemberSwap> {
    let is_wanted = |member: &Member| wanted.is_none_or(|wanted| wanted.contains(&member.url));
    let empty = members.iter().map(|(member, _)| *member);
    let mut empty = empty.filter(|member| emptied.contains(&member.id) && is_wanted(member));
    if let Some(member) = empty.next() {
        return Some(MemberSwap {
            add: Some(member.url.clone()),
            remove: Some(member.id),
        });
    }
    let is_there = |url: &&String| members.iter().any(|(member, _)| member.url == **url);
    let add = wanted?.iter().find(|url| !is_there(url)).cloned();
    let goes = members.iter().filter(|(member, _)| !is_wanted(member));
    // Who is down first: without it nothing is lost.
    let remove = goes
        .min_by_key(|(_, is_up)| *is_up)
        .map(|(member, _)| member.id);
    let remains = members.len() > MEMBERS_MIN || add.is_some();
    let remove = remove.filter(|_| remains);
    (add.is_some() || remove.is_some()).then_some(MemberSwap { add, remove })
}

/// The members, as the register has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberList {
    /// Each one's URL, and whether it is complete as far as the register says.
    pub members: Vec<(String, bool)>,
    /// The list that somebody wants, if somebody ever did: URLs, with ` repair` behind those that are to be compared.
    pub wanted: Option<Vec<String>>,
}

impl ReplicatedHome {
    /// Who the members are.
    ///
    /// # Errors
    ///
    /// [`HomeError::Io`] if too few of them answer.
    pub fn members(&self) -> Result<MemberList, HomeError> {
        let state = self.inner.register.lock().get()?;
        let state = state.ok_or_else(|| HomeError::Missing("the list of members".to_owned()))?;
        let wanted = state.names.get(WANTED);
        let members = state.members.into_iter();
        Ok(MemberList {
            members: members
                .map(|member| (member.url, member.complete))
                .collect(),
            wanted: wanted.map(|named| lines_of(&named.bytes)),
        })
    }

    /// Writes down which members are wanted, made from the list that is wanted now, or is there. Who has the lease
    /// makes it so: now, or when it starts. Back comes the new list.
    ///
    /// # Errors
    ///
    /// What `edit` says, [`HomeError::Io`] if too few of the members answer, and [`HomeError::Unsupported`] if this was
    /// opened for reading.
    pub fn edit_members(&self, edit: &ListEdit<'_>) -> Result<Vec<String>, HomeError> {
        self.inner.edit_members(edit)
    }

    /// Refuses what cannot become a member: another log's home, or one of the members again.
    ///
    /// # Errors
    ///
    /// [`HomeError::Url`] if it is that, and what reading it says.
    pub(crate) fn must_be_able_to_join(&self, home: &LogHome, url: &str) -> Result<(), HomeError> {
        let Some((bytes, _)) = home.names.get(RECORD)? else {
            return Ok(());
        };
        let refused = |what: &str| {
            Err(HomeError::Url {
                url: url.to_owned(),
                what: what.to_owned(),
            })
        };
        let Ok(kept) = StoredAcceptor::decode(&bytes) else {
            return refused("it holds something else");
        };
        let membership = self.inner.membership.lock();
        let accepted = kept.record.accepted;
        if accepted.is_some_and(|(_, state)| state.home != membership.home) {
            return refused("it belongs to another log");
        }
        let mut members = membership.members.iter();
        match members.any(|member| member.id == kept.member) {
            true => refused("it is one of the log's homes already"),
            false => Ok(()),
        }
    }
}

impl Inner {
    /// See [`ReplicatedHome::edit_members`].
    pub(super) fn edit_members(&self, edit: &ListEdit<'_>) -> Result<Vec<String>, HomeError> {
        loop {
            let mut register = self.register.lock();
            let state = register.get()?;
            let state =
                state.ok_or_else(|| HomeError::Missing("the list of members".to_owned()))?;
            let named = state.names.get(WANTED);
            let present = match named {
                Some(named) => lines_of(&named.bytes),
                None => state
                    .members
                    .iter()
                    .map(|member| member.url.clone())
                    .collect(),
            };
            let list = edit(&present)?;
            let (tag, text) = (named.map(|named| Tag(named.tag)), list.join("\n"));
            match register.set(WANTED, tag, text.as_bytes(), &|_| ()) {
                Ok(_) => {
                    drop(register);
                    self.returns.wake();
                    return Ok(list);
                }
                // Somebody else has changed it meanwhile.
                Err(HomeError::Conflict(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }
}
