use std::task::{Poll, Waker};
use std::time::Duration;

use super::*;
use crate::memory::{Account, Charge, Memory, OutOfMemory};
use crate::memory_queue::{MemoryQueue, MemoryRequest, PATIENCE_ROUNDS, ReadAheadGrant};
use crate::page_store::CheckpointError;

/// A budget of 8,000 bytes, of which 1,000 are the reserve, and somebody who may evict.
struct Place {
    memory_queue: Arc<MemoryQueue>,
    memory: &'static Memory,
    used: Charge,
    _account: Account,
}

impl Place {
    fn new(used: usize) -> Place {
        let account = Account::open(8000);
        let memory = account.memory();
        let memory_queue = MemoryQueue::new(memory, Arc::default());
        memory_queue.begin();
        let mut place = Place {
            memory_queue,
            memory,
            used: memory.charge(),
            _account: account,
        };
        place.used.force(used);
        place
    }

    fn request(&self, bytes: u64) -> Arc<MemoryRequest> {
        self.memory_queue.request(bytes, false)
    }
}

fn poll(request: &MemoryRequest) -> Option<Result<Charge, OutOfMemory>> {
    match request.poll(Waker::noop()) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    }
}

fn granted(request: &MemoryRequest) -> Charge {
    poll(request).expect("is settled").expect("is granted")
}

fn is_refused(request: &MemoryRequest) -> bool {
    matches!(poll(request), Some(Err(_)))
}

/// Rounds that find nothing.
fn in_vain(memory_queue: &MemoryQueue, rounds: u32) {
    for _ in 0..rounds {
        memory_queue.serve();
        memory_queue.count_in_vain();
    }
}

#[test]
fn a_large_want_does_not_starve_behind_small_ones() {
    let mut place = Place::new(6000);
    let large = place.request(3000);
    let small = place.request(500);
    place.memory_queue.serve();
    assert!(poll(&large).is_none() && poll(&small).is_none());
    assert!(place.memory_queue.is_queued(false));
    assert!(
        place.memory_queue.take(100, false).is_none(),
        "it is not its turn"
    );
    place.used.force(4000);
    place.memory_queue.serve();
    let large = granted(&large);
    assert!(
        poll(&small).is_none(),
        "what was granted is not granted twice"
    );
    assert_eq!(place.memory.used_bytes(), 7000);
    drop(large);
    place.memory_queue.serve();
    let small = granted(&small);
    assert_eq!(place.memory.used_bytes(), 4500);
    drop(small);
    assert!(!place.memory_queue.is_queued(false));
    assert!(place.memory_queue.take(100, false).is_some());
}

#[test]
fn who_leads_out_of_want_is_not_held_up_by_others() {
    let place = Place::new(7500);
    let large = place.request(5000);
    let tombstone = place.memory_queue.request(100, true);
    assert_eq!(granted(&tombstone).bytes(), 100);
    assert!(poll(&large).is_none());
}

#[test]
fn what_can_never_be_is_refused_at_once() {
    let place = Place::new(0);
    assert!(is_refused(&place.request(7001)));
    assert!(
        !place.memory_queue.is_queued(false),
        "nobody waits behind it"
    );
    assert_eq!(place.memory_queue.need(), 0, "nothing is evicted for it");
    assert_eq!(granted(&place.request(7000)).bytes(), 7000);
    assert_eq!(
        granted(&place.memory_queue.request(8000, true)).bytes(),
        8000
    );
    assert!(is_refused(&place.memory_queue.request(8001, true)));
}

/// A transaction that holds most of the budget itself: no checkpoint frees that, and others wait for its end.
#[test]
fn who_holds_most_is_refused_after_one_round_in_vain() {
    let place = Place::new(6990);
    let beside = |held| place.memory_queue.request_beside(100, false, held);
    let (first, most, last) = (beside(5000), beside(5300), beside(0));
    place.memory_queue.serve();
    assert!(poll(&most).is_none(), "what is others' may go");
    in_vain(&place.memory_queue, 1);
    assert!(is_refused(&most));
    assert!(poll(&first).is_none() && poll(&last).is_none());
    // The same where a checkpoint is hoped for.
    place.memory_queue.checkpoint_begins();
    let most = beside(5300);
    in_vain(&place.memory_queue, 1);
    assert!(is_refused(&most));
    assert!(poll(&first).is_none() && poll(&last).is_none());
}

#[test]
fn who_gives_up_is_not_in_the_way() {
    let place = Place::new(6000);
    let large = place.request(3000);
    let small = place.request(500);
    drop(large);
    place.memory_queue.serve();
    assert_eq!(granted(&small).bytes(), 500);
    // Granted, and nobody comes for it.
    let gone = place.request(500);
    assert_eq!(place.memory.used_bytes(), 6500);
    drop(gone);
    assert_eq!(place.memory.used_bytes(), 6000);
}

#[test]
fn patience_is_each_want_s_own_and_one_is_refused_at_a_time() {
    let mut place = Place::new(7000);
    place.memory_queue.checkpoints_fail();
    // Rounds before anybody came count for nobody.
    in_vain(&place.memory_queue, 10 * PATIENCE_ROUNDS);
    let [first, second, third] = [(); 3].map(|()| place.request(100));
    in_vain(&place.memory_queue, PATIENCE_ROUNDS);
    assert!(poll(&first).is_none());
    in_vain(&place.memory_queue, 1);
    assert!(is_refused(&first));
    assert!(poll(&second).is_none() && poll(&third).is_none());
    // What it held while it waited is enough for the others.
    let late = place.request(100);
    place.used.force(6800);
    place.memory_queue.serve();
    let kept = (granted(&second), granted(&third));
    in_vain(&place.memory_queue, PATIENCE_ROUNDS);
    assert!(poll(&late).is_none(), "it came later");
    in_vain(&place.memory_queue, 1);
    assert!(is_refused(&late));
    drop(kept);
}

#[test]
fn no_round_is_in_vain_before_a_checkpoint_that_began_since() {
    let place = Place::new(7000);
    place.memory_queue.checkpoint_begins();
    let request = place.request(100);
    assert!(place.memory_queue.wants_checkpoint());
    in_vain(&place.memory_queue, 10 * PATIENCE_ROUNDS);
    // It began before.
    place.memory_queue.checkpoint_ends(Ok(()));
    in_vain(&place.memory_queue, 10 * PATIENCE_ROUNDS);
    assert!(place.memory_queue.wants_checkpoint());
    place.memory_queue.checkpoint_begins();
    assert!(
        !place.memory_queue.wants_checkpoint(),
        "one for it is under way"
    );
    in_vain(&place.memory_queue, 10 * PATIENCE_ROUNDS);
    place.memory_queue.checkpoint_ends(Ok(()));
    assert!(!place.memory_queue.wants_checkpoint(), "it has not helped");
    assert!(poll(&request).is_none());
    in_vain(&place.memory_queue, PATIENCE_ROUNDS + 1);
    assert!(is_refused(&request));
    // Where they fail nobody waits for one.
    place.memory_queue.checkpoint_begins();
    place
        .memory_queue
        .checkpoint_ends(Err(&CheckpointError::Busy));
    let request = place.request(100);
    assert!(!place.memory_queue.wants_checkpoint());
    in_vain(&place.memory_queue, PATIENCE_ROUNDS + 1);
    assert!(is_refused(&request));
}

/// It is begun anew: that one may help as well.
#[test]
fn nobody_is_refused_because_a_checkpoint_was_given_up() {
    let place = Place::new(7000);
    let request = place.request(100);
    place.memory_queue.checkpoint_begins();
    let given_up = Err(&CheckpointError::Interrupted);
    place.memory_queue.checkpoint_ends(given_up);
    in_vain(&place.memory_queue, 10 * PATIENCE_ROUNDS);
    assert!(poll(&request).is_none());
    place.memory_queue.checkpoint_begins();
    in_vain(&place.memory_queue, 10 * PATIENCE_ROUNDS);
    assert!(poll(&request).is_none());
    place.memory_queue.checkpoint_ends(Ok(()));
    in_vain(&place.memory_queue, PATIENCE_ROUNDS + 1);
    assert!(is_refused(&request));
}

#[test]
fn no_round_is_in_vain_while_something_is_loaded() {
    let place = Place::new(7000);
    place.memory_queue.checkpoints_fail();
    let request = place.request(100);
    let load = place.memory_queue.load_begins();
    in_vain(&place.memory_queue, 10 * PATIENCE_ROUNDS);
    assert!(poll(&request).is_none());
    drop(load);
    in_vain(&place.memory_queue, PATIENCE_ROUNDS + 1);
    assert!(is_refused(&request));
}

#[test]
fn loads_do_not_wait_for_what_has_just_been_in_vain() {
    let mut place = Place::new(7000);
    let refuse = |place: &Place| {
        place.memory_queue.checkpoints_fail();
        let request = place.request(100);
        in_vain(&place.memory_queue, PATIENCE_ROUNDS + 1);
        assert!(is_refused(&request));
    };
    assert!(!place.memory_queue.is_hopeless());
    refuse(&place);
    assert!(place.memory_queue.is_hopeless());
    // What somebody gives back is hope, until it is used again.
    place.used.force(6900);
    assert!(!place.memory_queue.is_hopeless());
    place.used.force(7100);
    assert!(place.memory_queue.is_hopeless());
    place.memory_queue.has_evicted();
    assert!(!place.memory_queue.is_hopeless());
    refuse(&place);
    place.memory_queue.checkpoint_begins();
    place
        .memory_queue
        .checkpoint_ends(Err(&CheckpointError::Busy));
    assert!(place.memory_queue.is_hopeless());
    place.memory_queue.checkpoint_begins();
    place.memory_queue.checkpoint_ends(Ok(()));
    assert!(!place.memory_queue.is_hopeless(), "what it has may go now");
    // Who may take from the reserve is refused for other reasons.
    place.used.force(8000);
    place.memory_queue.checkpoints_fail();
    let request = place.memory_queue.request(100, true);
    in_vain(&place.memory_queue, PATIENCE_ROUNDS + 1);
    assert!(is_refused(&request));
    assert!(!place.memory_queue.is_hopeless());
}

#[test]
fn nobody_waits_longer_than_the_longest() {
    let place = Place::new(7000);
    let request = place.request(100);
    place.memory_queue.serve();
    assert!(poll(&request).is_none());
    place.memory_queue.set_wait_max(Duration::ZERO);
    place.memory_queue.serve();
    assert!(is_refused(&request));
}

#[test]
fn what_was_evicted_is_not_evicted_twice() {
    let place = Place::new(7000);
    // Down to the low mark: 5,250 bytes.
    assert_eq!(place.memory_queue.need(), 1750);
    place.memory_queue.pending.fetch_add(1000, Ordering::SeqCst);
    assert_eq!(place.memory_queue.need(), 750);
    let request = place.request(3000);
    assert_eq!(place.memory_queue.need(), 2000, "and for who waits");
    drop(request);
}

#[test]
fn an_end_refuses_all() {
    let place = Place::new(7000);
    let requests = [place.request(100), place.memory_queue.request(2000, true)];
    place.memory_queue.stop();
    place.memory_queue.end();
    assert!(requests.iter().all(|request| is_refused(request)));
    assert!(is_refused(&place.request(100)), "nobody would serve it");
}

/// While nothing can go, few rounds look at everything; the first one behind a checkpoint or a load does, and so does
/// each for which nobody waits.
#[test]
fn rounds_in_vain_are_left_out_until_there_is_hope() {
    let vain = SweepResult {
        unsaved: true,
        ..SweepResult::default()
    };
    let mut sweeps = Sweeps::default();
    let mut made = |waited, reclaim_progress| {
        let is_made = sweeps.instead(waited, reclaim_progress).is_none();
        if is_made {
            sweeps.note(reclaim_progress, vain);
        }
        is_made
    };
    let rounds = [(); 9].map(|()| made(true, (1, 5)));
    let is_fourth = |at: usize| at.is_multiple_of(LEFT_OUT_MAX as usize + 1);
    assert_eq!(rounds, std::array::from_fn(is_fourth));
    assert!(made(true, (2, 5)), "a checkpoint has ended");
    assert!(!made(true, (2, 5)));
    assert!(made(true, (2, 6)), "something came");
    assert!([(); 3].into_iter().all(|()| made(false, (2, 6))));
    assert!(
        sweeps
            .instead(true, (2, 6))
            .is_some_and(|found| found.unsaved)
    );
    sweeps.hope();
    assert!(sweeps.instead(true, (2, 6)).is_none());
    let some = SweepResult {
        bytes: 1,
        ..SweepResult::default()
    };
    sweeps.note((2, 6), some);
    assert!(sweeps.instead(true, (2, 6)).is_none(), "more may go");
}

/// Many loads that nobody waits for begin at once: what each is granted counts for the others before it has come. A
/// sixteenth of what may be used is 437 bytes.
#[test]
fn what_is_being_read_ahead_is_little_before_it_is_there() {
    let place = Place::new(0);
    let memory_queue = &place.memory_queue;
    let (first, second) = (
        ReadAheadGrant::new(memory_queue),
        ReadAheadGrant::new(memory_queue),
    );
    assert!(first.take(300).is_some());
    assert!(second.take(300).is_none());
    assert!(first.take(400).is_some(), "instead of what it had");
    assert_eq!(memory_queue.ahead_bytes(), 400);
    assert!(first.raise(350) && first.raise(430), "a guess was too low");
    assert!(!first.raise(500), "though there is memory");
    assert_eq!(memory_queue.ahead_bytes(), 430);
    first.keep(200);
    drop(first);
    assert_eq!(memory_queue.ahead_bytes(), 200);
    assert!(second.take(200).is_some());
    drop(second);
    assert_eq!(
        memory_queue.ahead_bytes(),
        200,
        "what was not brought is given back"
    );
    memory_queue.remove_ahead(200);
    assert_eq!(memory_queue.ahead_bytes(), 0);
}
