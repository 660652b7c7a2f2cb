//! The horizon under the model checker and by hand.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64 as LoomU64, Ordering};

use super::*;

/// Two workers draw, push to their lanes and later become durable while a third thread computes: the horizon never
/// passes a CSN that is drawn and not durable.
#[test]
fn horizon_never_passes_a_drawn_csn_that_is_not_durable() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let horizon: Arc<Horizon<LoomU64>> = Arc::new(Horizon::new(2, Csn(1)));
        let lanes: Arc<[LoomU64; 2]> = Arc::new([LoomU64::new(u64::MAX), LoomU64::new(u64::MAX)]);
        let workers: Vec<_> = (0..2u16)
            .map(|w| {
                let (horizon, lanes) = (horizon.clone(), lanes.clone());
                loom::thread::spawn(move || {
                    let (csn, reservation) = horizon.draw(WorkerId(w));
                    lanes[usize::from(w)].store(csn.0, Ordering::SeqCst);
                    drop(reservation);
                    csn
                })
            })
            .collect();
        let read = || {
            Csn(lanes
                .iter()
                .map(|l| l.load(Ordering::SeqCst))
                .min()
                .unwrap_or(u64::MAX))
        };
        horizon.advance(read);
        let seen = horizon.get();
        let drawn: Vec<Csn> = workers
            .into_iter()
            .map(|w| w.join().expect("worker"))
            .collect();
        // Nothing became durable in this model, so no drawn CSN may be below the horizon.
        for csn in drawn {
            assert!(csn >= seen, "horizon {seen} passed {csn}");
        }
    });
}

/// Two threads report durability at once: whichever loses the turn, the result includes both.
#[test]
fn a_lost_turn_is_served_by_the_holder() {
    loom::model(|| {
        let horizon: Arc<Horizon<LoomU64>> = Arc::new(Horizon::new(2, Csn(1)));
        let lanes: Arc<[LoomU64; 2]> = Arc::new([LoomU64::new(1), LoomU64::new(2)]);
        let (_, a) = horizon.draw(WorkerId(0));
        let (_, b) = horizon.draw(WorkerId(1));
        drop((a, b));
        let other = {
            let (horizon, lanes) = (horizon.clone(), lanes.clone());
            loom::thread::spawn(move || {
                lanes[0].store(u64::MAX, Ordering::SeqCst);
                horizon.advance(|| {
                    Csn(lanes
                        .iter()
                        .map(|l| l.load(Ordering::SeqCst))
                        .min()
                        .unwrap_or(0))
                });
            })
        };
        lanes[1].store(u64::MAX, Ordering::SeqCst);
        horizon.advance(|| {
            Csn(lanes
                .iter()
                .map(|l| l.load(Ordering::SeqCst))
                .min()
                .unwrap_or(0))
        });
        other.join().expect("thread");
        assert_eq!(horizon.get(), Csn(3));
    });
}

#[test]
fn idle_lanes_hold_nothing_back_and_the_horizon_never_moves_back() {
    let horizon: Horizon = Horizon::new(1, Csn(10));
    assert_eq!(horizon.get(), Csn(10));
    let (csn, reservation) = horizon.draw(WorkerId(0));
    assert_eq!(csn, Csn(10));
    assert_eq!(
        horizon.advance(|| Csn(u64::MAX)),
        None,
        "reserved holds it at 10"
    );
    drop(reservation);
    assert_eq!(horizon.advance(|| Csn(10)), None);
    assert_eq!(horizon.advance(|| Csn(u64::MAX)), Some(Csn(11)));
    assert_eq!(horizon.advance(|| Csn(5)), None);
    assert_eq!(horizon.get(), Csn(11));
}
