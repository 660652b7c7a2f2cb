//! Which round a replica makes next: one of what the stream has brought, one that reads the home, or none yet.
//!
//! Rule: the error of a round of the stream is looked at, also when a look at the home is due. The home's round may say
//! no more than that the replica has ended, and not that it was only too far behind.
//!
//! Pure: it knows no clock and reads nothing.

use std::time::Duration;

/// What is known when the follower is woken.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTimes {
    /// Since the home was looked at.
    pub(super) since: Duration,
    /// How often the home is looked at now, without a stream.
    pub(super) pause: Duration,
    /// The longest between two looks, with a stream too.
    pub(super) longest: Duration,
    /// The shortest between two, where the stream gives reason for one.
    pub(super) least: Duration,
    /// There is a stream.
    pub(super) is_connected: bool,
    /// The round before has failed.
    pub(super) after_error: bool,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RoundChoice<T, E> {
    /// What came of the stream's round.
    Streamed(Result<T, E>),
    /// A round that reads the home.
    Home,
    /// Nothing yet; a pause: the home is to be looked at after that.
    Later(Option<Duration>),
}

/// Chooses. `streamed`: what came of the stream's round, if there was one.
pub(super) fn choose<T, E>(
    streamed: Option<Result<T, E>>,
    times: &RoundTimes,
) -> RoundChoice<T, E> {
    match streamed {
        // What only the home tells is looked for now and then.
        Some(round) if times.since < times.longest || round.is_err() => {
            RoundChoice::Streamed(round)
        }
        None if !times.after_error && !times.is_connected && times.since < times.pause => {
            RoundChoice::Later(None)
        }
        None if !times.after_error && times.since < times.least => {
            RoundChoice::Later(Some(times.least))
        }
        _ => RoundChoice::Home,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    const TIMES: RoundTimes = RoundTimes {
        since: ms(0),
        pause: ms(20),
        longest: ms(160),
        least: ms(5),
        is_connected: true,
        after_error: false,
    };

    fn chosen(streamed: Option<Result<u8, u8>>, times: &RoundTimes) -> RoundChoice<u8, u8> {
        choose(streamed, times)
    }

    #[test]
    fn the_error_of_a_streamed_round_is_not_dropped_when_the_home_is_due() {
        let due = RoundTimes {
            since: TIMES.longest,
            ..TIMES
        };
        assert_eq!(chosen(Some(Err(1)), &due), RoundChoice::Streamed(Err(1)));
        assert_eq!(chosen(Some(Ok(1)), &due), RoundChoice::Home);
        assert_eq!(chosen(Some(Ok(1)), &TIMES), RoundChoice::Streamed(Ok(1)));
    }

    #[test]
    fn the_home_is_looked_at_as_often_as_it_has_to_be() {
        let at = |since, is_connected, after_error| {
            let times = RoundTimes {
                since: ms(since),
                is_connected,
                after_error,
                ..TIMES
            };
            chosen(None, &times)
        };
        // Without a stream after the pause.
        assert_eq!(at(19, false, false), RoundChoice::Later(None));
        assert_eq!(at(20, false, false), RoundChoice::Home);
        // With one as soon as something is missing that it did not bring.
        assert_eq!(at(4, true, false), RoundChoice::Later(Some(TIMES.least)));
        assert_eq!(at(5, true, false), RoundChoice::Home);
        // After an error its own pause is over.
        assert_eq!(at(0, false, true), RoundChoice::Home);
        assert_eq!(at(0, true, true), RoundChoice::Home);
    }
}
