use logstead_env::SimClock;

use super::*;

/// Services whose clock goes on by hand.
struct Place {
    services: Arc<PageServices>,
    clock: Arc<SimClock>,
}

impl Place {
    fn new() -> Place {
        let clock = Arc::new(SimClock::new());
        let services = PageServices::new(Arc::clone(&clock) as Arc<dyn logstead_env::Clock>);
        Place {
            services: Arc::new(services),
            clock,
        }
    }

    fn offer(&self) -> PageServiceOffer {
        let offer = self.services.offer();
        offer.gives_rows();
        offer
    }

    /// Nobody answers: is anybody asked? Nothing is left of it.
    fn asks_in_vain(&self, from: u64) -> bool {
        self.services.set_read_time_max(Duration::ZERO);
        let before = self.services.locked().next_read;
        assert_eq!(self.services.read(read(1, from)), None);
        let state = self.services.locked();
        assert!(state.reads.is_empty(), "nothing is kept");
        state.next_read > before
    }

    /// Who is asked for a chunk, by his number among these, and what the reader gets; `says` is what is said then.
    fn asks(
        &self,
        offers: &[&PageServiceOffer],
        chunk: u64,
        says: impl Fn() -> Result<Vec<PageRow>, String>,
    ) -> (usize, Option<ToldRows>) {
        // He does not wait in vain.
        self.services.set_read_time_max(Duration::from_secs(600));
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| self.services.read(read(chunk, 5)));
            let (at, offer, number) = loop {
                let taken = offers.iter().enumerate().find_map(|(at, offer)| {
                    let Some(PageRequest::Read(read)) = offer.take() else {
                        return None;
                    };
                    Some((at, offer, read.number))
                });
                match taken {
                    Some(taken) => break taken,
                    None => std::thread::yield_now(),
                }
            };
            let rows = says();
            offer.answered(PageReadAnswer { number, rows });
            (at, reader.join().expect("reads"))
        })
    }
}

fn read(chunk: u64, from: u64) -> PageRead {
    PageRead {
        number: 0,
        epoch: Epoch(1),
        from: Csn(from),
        table: TableId(20_000),
        chunk,
        slots: 1,
    }
}

fn late(offer: &PageServiceOffer) {
    offer.answered(PageReadAnswer {
        number: u64::MAX,
        rows: Err("late".to_owned()),
    });
}

/// Each of several has its share, and where one goes only that moves.
#[test]
fn chunks_are_divided_and_only_those_of_who_goes_move() {
    let place = Place::new();
    let offers = [(); 3].map(|()| place.services.offer());
    assert!(!place.services.any_answers());
    assert!(!place.asks_in_vain(5), "none tells rows");
    offers.iter().for_each(PageServiceOffer::gives_rows);
    let all: Vec<&PageServiceOffer> = offers.iter().collect();
    let asked = |offers: &[&PageServiceOffer], chunk| {
        let (who, told) = place.asks(offers, chunk, || Ok(Vec::new()));
        assert_eq!(told.expect("they are told").rows, Vec::new());
        who
    };
    let before: Vec<usize> = (0..90).map(|chunk| asked(&all, chunk)).collect();
    for share in 0..3 {
        let count = before.iter().filter(|who| **who == share).count();
        assert!(count > 15, "{before:?}");
    }
    let [first, second, third] = offers;
    drop(third);
    for (chunk, before) in before.into_iter().enumerate() {
        let now = asked(&[&first, &second], chunk as u64);
        assert!(
            before == 2 || now == before,
            "chunk {chunk}: {before}, {now}"
        );
    }
}

/// One that was silent is not asked again before it has answered, be it late, and not at once then: it is left alone
/// for a while, each time for longer, until it has told rows.
#[test]
fn one_that_was_silent_is_left_alone() {
    let place = Place::new();
    let offer = place.offer();
    assert!(place.services.any_answers());
    assert!(place.asks_in_vain(5));
    assert_eq!(offer.take(), None, "nobody waits for it any more");
    place.clock.advance(REST_MAX);
    assert!(!place.services.any_answers(), "it has not answered");
    assert!(!place.asks_in_vain(5));
    late(&offer);
    for rest in [2, 4, 8, 16, 30, 30] {
        assert!(place.services.any_answers());
        assert!(place.asks_in_vain(5));
        late(&offer);
        place
            .clock
            .advance(Duration::from_secs(rest) - Duration::from_nanos(1));
        assert!(!place.services.any_answers(), "it rests");
        assert!(!place.asks_in_vain(5));
        place.clock.advance(Duration::from_nanos(1));
    }
    let (_, told) = place.asks(&[&offer], 1, || Ok(Vec::new()));
    assert!(told.is_some());
    assert!(place.asks_in_vain(5));
    late(&offer);
    place.clock.advance(REST_MIN);
    assert!(place.services.any_answers(), "as at the beginning");
}

/// One that needs long to say that it cannot costs each reader as much as one that is silent; who says so at once may
/// have another chunk.
#[test]
fn one_that_refuses_late_is_left_alone() {
    let place = Place::new();
    let offer = place.offer();
    let refuses = |after: Duration| {
        let (_, told) = place.asks(&[&offer], 1, || {
            place.clock.advance(after);
            Err("not yet".to_owned())
        });
        assert_eq!(told, None);
        place.services.any_answers()
    };
    assert!(refuses(REFUSAL_TIME_MAX - Duration::from_nanos(1)));
    assert!(!refuses(REFUSAL_TIME_MAX));
    place.clock.advance(REST_MIN);
    assert!(place.services.any_answers());
}

/// One that is behind is asked for what it has applied, and for nothing else; with one that is far behind nothing
/// leaves memory.
#[test]
fn one_that_is_behind_is_asked_for_what_it_has_applied() {
    let place = Place::new();
    let (behind, keeps_up) = (place.offer(), place.offer());
    drop(keeps_up);
    behind.has_applied(Csn(7), ReplicaLag::of(LAG_MAX + Duration::from_nanos(1)));
    assert!(!place.services.any_answers());
    assert!(!place.asks_in_vain(8));
    behind.has_applied(Csn(7), ReplicaLag::of(LAG_MAX));
    assert!(place.services.any_answers(), "it comes later");
    assert!(!place.asks_in_vain(8));
    let (_, told) = place.asks(&[&behind], 1, || Ok(Vec::new()));
    assert!(told.is_some(), "it has applied that");
    behind.has_applied(Csn(6), ReplicaLag::of(READ_TIME_MAX));
    assert!(place.services.any_answers());
    assert!(place.asks_in_vain(8), "it may have it soon");
}

/// One whose rows are not what was there is left alone for long.
#[test]
fn one_that_was_wrong_is_left_alone_for_long() {
    let place = Place::new();
    let offer = place.offer();
    let (_, told) = place.asks(&[&offer], 1, || Ok(Vec::new()));
    place
        .services
        .were_wrong(&told.expect("they are told"), "chunk 1");
    place.clock.advance(REST_MAX - Duration::from_nanos(1));
    assert!(!place.services.any_answers());
    assert!(!place.asks_in_vain(5));
    place.clock.advance(Duration::from_nanos(1));
    assert!(place.services.any_answers());
}
