//! What a home of groups ([`GroupedHome`](crate::GroupedHome)) asks of each group beyond the calls of a home.

use super::register::LEASE;
use super::state::{NamedValue, RegisterState};
use super::{Inner, OpenPurpose, ReplicatedHome};
use crate::placement;
use crate::{HomeError, Tag};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// The named value of a group's register that tells who may change the group.
pub(crate) const OWNERSHIP: &str = LEASE;

/// Makes a named value from the present one; `Ok(None)` leaves it as it is.
pub(crate) type NamedEdit<'e> = dyn Fn(Option<&[u8]>) -> Result<Option<Vec<u8>>, HomeError> + 'e;

impl ReplicatedHome {
    /// It is this group of a home that goes by the volume's placement record. Without that, a volume that is divided is
    /// not served.
    pub(crate) fn be_group(&self, group: u32) {
        // Nobody makes another one of it.
        let _as_before = self.inner.group.set(group);
    }

    /// The number that was drawn when its register began.
    pub(crate) fn number(&self) -> u64 {
        self.inner.membership.lock().home
    }

    /// The epoch of this segment has begun in the home that it is a group of. Nothing of that epoch may come here but
    /// objects.
    pub(crate) fn has_begun(&self, first_segment: u64) {
        let epoch = first_segment >> 32;
        self.inner.settled_epoch.fetch_max(epoch, Ordering::SeqCst);
    }

    /// All named values, as they were together. Who only reads goes by the members of that moment from now on.
    pub(crate) fn all_names(&self) -> Result<BTreeMap<String, (Vec<u8>, Tag)>, HomeError> {
        // One after the other: an older list is not put in the place of a newer one.
        let is_reader = self.inner.options.purpose == OpenPurpose::Reading;
        let _one_at_a_time = is_reader.then(|| self.inner.opening.lock());
        let state = self.inner.register.lock().get()?;
        let Some(state) = state else {
            return Ok(BTreeMap::new());
        };
        self.inner.read_as(&state)?;
        let names = state.names.into_iter();
        let value = |(name, named): (String, NamedValue)| (name, (named.bytes, Tag(named.tag)));
        Ok(names.map(value).collect())
    }

    /// Changes a named value, whatever it is now, in one step. `leased`: only if nobody has taken the lease since this
    /// home's user did. Back comes what is there then.
    ///
    /// # Errors
    /// What `edit` says of the present value, [`HomeError::Fenced`] if the lease is another one's, [`HomeError::Io`] if
    /// too few members answer.
    pub(crate) fn edit_named(
        &self,
        name: &str,
        leased: bool,
        edit: &NamedEdit<'_>,
    ) -> Result<Option<Vec<u8>>, HomeError> {
        let refused: RefCell<Option<HomeError>> = RefCell::default();
        let change = |state: Option<&RegisterState>| {
            // Of the state that is looked at last.
            refused.replace(None);
            let mut state = state?.clone();
            let present = state.names.get(name).map(|named| named.bytes.as_slice());
            match edit(present) {
                Ok(bytes) => {
                    let bytes = bytes?;
                    let tag = self.inner.env.random.u64();
                    let named = NamedValue { tag, bytes };
                    state.names.insert(name.to_owned(), named);
                    Some(state)
                }
                Err(error) => {
                    refused.replace(Some(error));
                    None
                }
            }
        };
        let mut register = self.inner.register.lock();
        let chosen = match leased {
            true => register.propose_leased(&change)?,
            false => register.propose(&change)?,
        };
        drop(register);
        if let Some(error) = refused.take() {
            return Err(error);
        }
        let named = chosen.and_then(|mut state| state.names.remove(name));
        Ok(named.map(|named| named.bytes))
    }

    /// Writes who may change this group ([`OWNERSHIP`]), which is in the state `expected`; `None`: nothing is there. It
    /// marks nobody: a member that is up may lack what one that is away has, before recovery has completed all.
    ///
    /// # Errors
    /// [`HomeError::Conflict`] if it is in another state, [`HomeError::Io`] if too few members answer.
    pub(crate) fn set_owner(&self, expected: Option<Tag>, bytes: &[u8]) -> Result<Tag, HomeError> {
        let mut register = self.inner.register.lock();
        register.set(OWNERSHIP, expected, bytes, &|_| ())
    }

    /// Reads the register, and sees to the members that are wanted if that is news.
    ///
    /// # Errors
    /// [`HomeError::Io`] if too few members answer.
    pub(crate) fn look_at_register(&self) -> Result<(), HomeError> {
        let mut register = self.inner.register.lock();
        register.look()?;
        let is_news = register.take_news();
        drop(register);
        if is_news {
            self.inner.returns.wake();
        }
        Ok(())
    }

    /// Where threads may be started, if this home has some.
    pub(crate) fn env_of_threads(&self) -> Option<&logstead_env::Env> {
        self.inner.options.threads.then_some(&self.inner.env)
    }

    /// Who has the lease is about to go by the members that were read when this was opened.
    ///
    /// # Errors
    /// [`HomeError::Conflict`] if they have changed since.
    pub(crate) fn must_be_as_opened(&self) -> Result<(), HomeError> {
        self.inner.check_members()
    }

    /// The members' URLs, as they are now.
    pub(crate) fn member_urls(&self) -> Vec<String> {
        let membership = self.inner.membership.lock();
        let members = membership.members.iter();
        members.map(|member| member.url.clone()).collect()
    }
}

impl Inner {
    /// Who does not go by the placement record goes on only while everything lies in this group.
    ///
    /// # Errors
    /// [`HomeError::Conflict`] if the volume has been divided since this was opened.
    pub(super) fn must_know_groups(&self, state: &RegisterState) -> Result<(), HomeError> {
        let record = state.names.get(placement::RECORD);
        let is_divided = record.is_some_and(|record| placement::is_divided(&record.bytes));
        match is_divided && self.group.get().is_none() {
            true => Err(HomeError::Conflict(
                "the list of the volume's groups".to_owned(),
            )),
            false => Ok(()),
        }
    }
}
