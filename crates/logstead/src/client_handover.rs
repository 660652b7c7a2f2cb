//! Clients that leave an instance with their sessions, for another one: in another process, or in this one.
//!
//! Steps: [`pause_clients`], after which no session is in a transaction; [`collect_clients`], which has them all as
//! text. Up to then [`Instance::resume`] and [`ClientAdmission::open`] let everything go on as if nothing had happened.
//!
//! Does not: know where they go.

use crate::client_admission::ClientAdmission;
use crate::inherited_clients::InheritedClients;
use logstead_sql_session::{HandoverTarget, Instance};
use std::time::Duration;
use tracing::{info, warn};

/// How often it is looked whether sessions have come to rest.
const POLL: Duration = Duration::from_millis(1);
/// Paused sessions say what they are at once.
const SERIALIZE_TIME: Duration = Duration::from_secs(5);
/// A client that proves who it is may do so before the pause; one that takes longer connects again.
const LOGIN_TIME: Duration = Duration::from_millis(250);
/// How long sessions have after the grace time to notice that it is over.
const TERMINATE_TIME: Duration = Duration::from_secs(2);

/// Looks again and again, for as long as `limit`, whether something is so, unless there is a reason to give up.
async fn within(
    limit: Duration,
    give_up: &impl Fn() -> Result<(), String>,
    mut is_so: impl FnMut() -> bool,
) -> Result<bool, String> {
    let looks = async {
        while !is_so() {
            give_up()?;
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    };
    match tokio::time::timeout(limit, looks).await {
        Ok(looked) => looked.map(|()| true),
        Err(_) => Ok(false),
    }
}

/// Pauses the sessions; open transactions have that long, and end with 57P01 then. Clients that connect wait. An error
/// is what `give_up` has said.
pub(crate) async fn pause_clients(
    instance: &Instance,
    arrivals: &ClientAdmission,
    grace: Duration,
    give_up: impl Fn() -> Result<(), String>,
) -> Result<(), String> {
    info!(
        "sessions pause, open transactions have {} ms",
        grace.as_millis()
    );
    arrivals.hold();
    instance.pause();
    let logins = || arrivals.connections() <= instance.session_count();
    within(grace.min(LOGIN_TIME), &give_up, logins).await?;
    let paused = || {
        // In this order: one that opens and pauses in between makes them unequal.
        let paused = instance.paused_count();
        instance.session_count() <= paused
    };
    if !within(grace, &give_up, paused).await? {
        instance.terminate_unpaused();
        if !within(TERMINATE_TIME, &give_up, paused).await? {
            // As at a stop: what takes no answer is not waited for.
            let paused = instance.paused_count();
            let left = instance.session_count().saturating_sub(paused);
            warn!("{left} sessions do not come to their end, and end when the others have left");
        }
    }
    Ok(())
}

/// Everybody who can leave for `target`, once all have paused. Nobody is to be accepted from here on.
pub(crate) async fn collect_clients(
    instance: &Instance,
    arrivals: &ClientAdmission,
    target: HandoverTarget,
    give_up: impl Fn() -> Result<(), String>,
) -> Result<InheritedClients, String> {
    instance.serialize(target);
    let mut sessions = None;
    let all = within(SERIALIZE_TIME, &give_up, || {
        sessions = sessions.take().or_else(|| instance.serialized());
        sessions.is_some()
    });
    all.await?;
    let sessions = sessions.ok_or("a session does not answer")?;
    let arrivals = arrivals.handed_out_within(SERIALIZE_TIME).await;
    let arrivals = arrivals.ok_or("a client that has connected is not there")?;
    Ok(InheritedClients { sessions, arrivals })
}
