//! TATP (Telecom Application Transaction Processing benchmark, version 1.0): seven transactions on the subscribers of a
//! telephone network, with the specified mix and the specified share of transactions that find nothing or a key that
//! exists already. Those count as rolled back.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use logstead_engine::{Csn, Engine, Index, RowBuilder, Txn};

use crate::access::{KeyPart, Store, TxnError, id, key, rewrite};
use crate::driver::{ConsistencyCheck, Loader, TransactionEnd, WorkShare, Workload};
use crate::random::Rng;

const TABLE: u32 = 20_000;

/// Columns of a subscriber: the number, the 15 digits, 10 bits, 10 half bytes, 10 bytes, two locations.
const SUB_NBR: usize = 1;
const BIT_1: usize = 2;
const MSC_LOCATION: usize = 32;
const VLR_LOCATION: usize = 33;
const SUBSCRIBER_COLUMNS: usize = 34;
/// Columns of a special facility: subscriber, type, active, error control, two data columns.
const IS_ACTIVE: usize = 2;
const DATA_A: usize = 4;
/// Columns of a call forwarding: subscriber, type, start, end, number.
const END_TIME: usize = 3;
const NUMBER_X: usize = 4;

const GET_SUBSCRIBER: usize = 0;
const GET_DESTINATION: usize = 1;
const GET_ACCESS: usize = 2;
const UPDATE_SUBSCRIBER: usize = 3;
const UPDATE_LOCATION: usize = 4;
const INSERT_FORWARDING: usize = 5;
/// Of 100 transactions; what is left deletes a call forwarding.
const MIX: [u64; 6] = [35, 10, 35, 2, 14, 2];

pub(crate) struct Tatp {
    subscribers: u32,
    /// The specification's A of the non-uniform distribution.
    spread: u32,
    subscriber: Store,
    by_number: Arc<Index>,
    access: Store,
    facility: Store,
    forwarding: Store,
    /// Call forwardings that must be there.
    forwardings: AtomicI64,
    loaded: AtomicU64,
}

pub(crate) struct Client {
    rng: Rng,
    builder: RowBuilder,
    kind: usize,
    s_id: u32,
    /// Type of access info or special facility, 1 to 4.
    kind_of: u32,
    start_time: u32,
    end_time: u32,
    value: u32,
    number_x: [u8; 15],
    /// Call forwardings inserted less deleted.
    change: i64,
    seen: u64,
}

fn digits(mut n: u64) -> [u8; 15] {
    let mut text = [b'0'; 15];
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (n % 10) as u8;
        n /= 10;
    }
    text
}

fn letters<const N: usize>(rng: &mut Rng) -> [u8; N] {
    std::array::from_fn(|_| b'A' + rng.below(26) as u8)
}

/// `count` of the values, each at most once.
fn some<const N: usize>(
    rng: &mut Rng,
    mut values: [u32; N],
    count: u32,
) -> impl Iterator<Item = u32> + use<N> {
    for at in (1..N).rev() {
        values.swap(at, rng.below(at as u64 + 1) as usize);
    }
    values.into_iter().take(count as usize)
}

/// The types a subscriber has: 1 to 4 of the four.
fn types(rng: &mut Rng) -> impl Iterator<Item = u32> + use<> {
    let count = rng.between(1, 4);
    some(rng, [1, 2, 3, 4], count)
}

impl Tatp {
    pub(crate) fn new(engine: &Engine, subscribers: u32) -> Tatp {
        let subscriber = Store::new(engine, TABLE, &[KeyPart::Fixed(0)]);
        let by_number = subscriber.secondary(engine, 2, &[KeyPart::Fixed(SUB_NBR)]);
        let pair = &[KeyPart::Fixed(0), KeyPart::Fixed(1)];
        Tatp {
            subscribers,
            spread: match subscribers {
                0..=1_000_000 => 65_535,
                1_000_001..=10_000_000 => 1_048_575,
                _ => 2_097_151,
            },
            subscriber,
            by_number,
            access: Store::new(engine, TABLE + 10, pair),
            facility: Store::new(engine, TABLE + 20, pair),
            forwarding: Store::new(
                engine,
                TABLE + 30,
                &[KeyPart::Fixed(0), KeyPart::Fixed(1), KeyPart::Fixed(2)],
            ),
            forwardings: AtomicI64::new(0),
            loaded: AtomicU64::new(0),
        }
    }

    /// A subscriber, some more often than others (3.2 of the specification).
    fn draw_subscriber(&self, rng: &mut Rng) -> u32 {
        let first = rng.between(0, self.spread);
        let second = rng.between(1, self.subscribers);
        (first | second) % self.subscribers + 1
    }

    /// The subscriber with these digits.
    async fn find(&self, txn: &mut Txn, s_id: u32) -> Result<u32, TxnError> {
        let number = digits(u64::from(s_id));
        let mut found = None;
        Store::range(txn, &self.by_number, &number, &number, false, |row| {
            found = Some(id(row.bytes, 0));
            false
        })
        .await?;
        found.ok_or_else(|| TxnError::Broken(format!("no subscriber has the number of {s_id}")))
    }

    fn build_forwarding(builder: &mut RowBuilder, key: [u32; 3], end_time: u32, number_x: &[u8]) {
        builder.start(1, 5);
        for part in key {
            builder.push(Some(&part.to_be_bytes()));
        }
        builder.push(Some(&end_time.to_be_bytes()));
        builder.push(Some(number_x));
    }
}

impl Workload for Tatp {
    type Client = Client;

    const KINDS: &'static [&'static str] = &[
        "get subscriber data",
        "get new destination",
        "get access data",
        "update subscriber data",
        "update location",
        "insert call forwarding",
        "delete call forwarding",
    ];

    async fn load(&self, seat: WorkShare, mut rng: Rng, into: &mut Loader) -> Result<(), TxnError> {
        let rng = &mut rng;
        let mut builder = RowBuilder::new();
        let (mut loaded, mut forwardings) = (0, 0);
        for at in seat.part(u64::from(self.subscribers)) {
            let s_id = at as u32 + 1;
            let id = s_id.to_be_bytes();
            builder.start(1, SUBSCRIBER_COLUMNS);
            builder.push(Some(&id));
            builder.push(Some(&digits(u64::from(s_id))));
            for most in [1_u32, 15, 255] {
                for _ in 0..10 {
                    builder.push(Some(&[rng.between(0, most) as u8]));
                }
            }
            builder.push(Some(&(rng.bits() as u32).to_be_bytes()));
            builder.push(Some(&(rng.bits() as u32).to_be_bytes()));
            into.insert(&self.subscriber.table, builder.finish())
                .await?;
            loaded += 1;
            for ai_type in types(rng) {
                builder.start(1, 6);
                builder.push(Some(&id));
                builder.push(Some(&ai_type.to_be_bytes()));
                builder.push(Some(&[rng.between(0, 255) as u8]));
                builder.push(Some(&[rng.between(0, 255) as u8]));
                builder.push(Some(&letters::<3>(rng)));
                builder.push(Some(&letters::<5>(rng)));
                into.insert(&self.access.table, builder.finish()).await?;
            }
            for sf_type in types(rng) {
                builder.start(1, 6);
                builder.push(Some(&id));
                builder.push(Some(&sf_type.to_be_bytes()));
                builder.push(Some(&[u8::from(rng.percent(85))]));
                builder.push(Some(&[rng.between(0, 255) as u8]));
                builder.push(Some(&[rng.between(0, 255) as u8]));
                builder.push(Some(&letters::<5>(rng)));
                into.insert(&self.facility.table, builder.finish()).await?;
                let count = rng.between(0, 3);
                for start_time in some(rng, [0, 8, 16], count) {
                    let end_time = start_time + rng.between(1, 8);
                    let number_x = digits(rng.below(1_000_000_000_000_000));
                    Self::build_forwarding(
                        &mut builder,
                        [s_id, sf_type, start_time],
                        end_time,
                        &number_x,
                    );
                    into.insert(&self.forwarding.table, builder.finish())
                        .await?;
                    forwardings += 1;
                }
            }
        }
        self.loaded.fetch_add(loaded, Ordering::Relaxed);
        self.forwardings.fetch_add(forwardings, Ordering::Relaxed);
        Ok(())
    }

    fn client(&self, _seat: WorkShare, rng: Rng) -> Client {
        Client {
            rng,
            builder: RowBuilder::new(),
            kind: 0,
            s_id: 1,
            kind_of: 1,
            start_time: 0,
            end_time: 1,
            value: 0,
            number_x: [0; 15],
            change: 0,
            seen: 0,
        }
    }

    fn draw(&self, client: &mut Client) -> usize {
        let rng = &mut client.rng;
        client.s_id = self.draw_subscriber(rng);
        client.kind_of = rng.between(1, 4);
        client.start_time = rng.between(0, 2) * 8;
        client.end_time = rng.between(1, 24);
        client.value = rng.bits() as u32;
        client.number_x = digits(rng.below(1_000_000_000_000_000));
        let mut dice = rng.below(100);
        client.kind = MIX
            .iter()
            .position(|share| match dice.checked_sub(*share) {
                Some(rest) => {
                    dice = rest;
                    false
                }
                None => true,
            })
            .unwrap_or(MIX.len());
        client.kind
    }

    async fn execute(
        &self,
        client: &mut Client,
        txn: &mut Txn,
    ) -> Result<TransactionEnd, TxnError> {
        let Client {
            builder,
            s_id,
            kind_of,
            start_time,
            end_time,
            value,
            ..
        } = client;
        let (s_id, kind_of, start_time, end_time, value) =
            (*s_id, *kind_of, *start_time, *end_time, *value);
        let pair = key::<2, 8>([s_id, kind_of]);
        client.change = 0;
        let found = match client.kind {
            GET_SUBSCRIBER => {
                client.seen ^= self
                    .subscriber
                    .must_read(txn, &s_id.to_be_bytes(), |row| {
                        (0..row.column_count()).fold(0, |sum, column| {
                            sum + row.column(column).map_or(0, |bytes| u64::from(bytes[0]))
                        })
                    })
                    .await?;
                true
            }
            GET_DESTINATION => {
                let active = self
                    .facility
                    .read(txn, &pair, |row| row.column(IS_ACTIVE) == Some(&[1]))
                    .await?;
                let mut found = false;
                if active == Some(true) {
                    let last = key::<3, 12>([s_id, kind_of, start_time]);
                    Store::range(txn, &self.forwarding.primary, &pair, &last, false, |row| {
                        if id(row.bytes, END_TIME) > end_time {
                            found = true;
                            client.seen ^=
                                row.bytes.column(NUMBER_X).map_or(0, |n| u64::from(n[14]));
                        }
                        true
                    })
                    .await?;
                }
                found
            }
            GET_ACCESS => {
                let data = self
                    .access
                    .read(txn, &pair, |row| {
                        (2..6).fold(0, |sum, column| {
                            sum + row.column(column).map_or(0, |bytes| u64::from(bytes[0]))
                        })
                    })
                    .await?;
                client.seen ^= data.unwrap_or(0);
                data.is_some()
            }
            UPDATE_SUBSCRIBER => {
                let bit = [value as u8 & 1];
                self.subscriber
                    .must_update(txn, &s_id.to_be_bytes(), builder, |row, builder| {
                        rewrite(row, builder, &[(BIT_1, &bit)]);
                    })
                    .await?;
                let data_a = [(value >> 8) as u8];
                self.facility
                    .update(txn, &pair, builder, |row, builder| {
                        rewrite(row, builder, &[(DATA_A, &data_a)]);
                        true
                    })
                    .await?
            }
            UPDATE_LOCATION => {
                let s_id = self.find(txn, s_id).await?;
                self.subscriber
                    .must_update(txn, &s_id.to_be_bytes(), builder, |row, builder| {
                        rewrite(row, builder, &[(VLR_LOCATION, &value.to_be_bytes())]);
                    })
                    .await?;
                true
            }
            INSERT_FORWARDING => {
                let s_id = self.find(txn, s_id).await?;
                // The specification reads all the subscriber's facilities; that the one wanted exists is what the
                // foreign key would demand.
                let mut has = false;
                let prefix = s_id.to_be_bytes();
                Store::range(
                    txn,
                    &self.facility.primary,
                    &prefix,
                    &prefix,
                    false,
                    |row| {
                        has |= id(row.bytes, 1) == kind_of;
                        true
                    },
                )
                .await?;
                client.change = 1;
                Self::build_forwarding(
                    builder,
                    [s_id, kind_of, start_time],
                    end_time,
                    &client.number_x,
                );
                has && self.forwarding.insert(txn, builder.finish()).await?
            }
            _ => {
                let s_id = self.find(txn, s_id).await?;
                client.change = -1;
                let key = key::<3, 12>([s_id, kind_of, start_time]);
                self.forwarding.delete(txn, &key).await?
            }
        };
        Ok(if found {
            TransactionEnd::Commit
        } else {
            TransactionEnd::RollBack
        })
    }

    fn committed(&self, client: &mut Client, _csn: Option<Csn>) {
        if client.change != 0 {
            self.forwardings.fetch_add(client.change, Ordering::Relaxed);
        }
    }

    fn check(&self, txn: &mut Txn) -> Vec<ConsistencyCheck> {
        let (mut subscribers, mut forwardings) = (0_u64, 0_i64);
        let mut bad_locations = 0;
        self.subscriber.scan(txn, |row| {
            subscribers += 1;
            let whole = [MSC_LOCATION, VLR_LOCATION]
                .iter()
                .all(|column| row.column(*column).is_some_and(|bytes| bytes.len() == 4));
            bad_locations += u64::from(!whole);
        });
        let mut facilities = HashSet::new();
        self.facility.scan(txn, |row| {
            facilities.insert((id(row, 0), id(row, 1)));
        });
        let mut orphans = 0;
        self.forwarding.scan(txn, |row| {
            forwardings += 1;
            orphans += u64::from(!facilities.contains(&(id(row, 0), id(row, 1))));
        });
        let loaded = self.loaded.load(Ordering::Relaxed);
        let expected = self.forwardings.load(Ordering::Relaxed);
        let mut checks = vec![
            ConsistencyCheck::new(
                "every subscriber is there",
                (subscribers == loaded && bad_locations == 0)
                    .then_some(())
                    .ok_or_else(|| {
                        format!("{subscribers} of {loaded}, {bad_locations} without location")
                    }),
            ),
            ConsistencyCheck::new(
                "call forwardings: loaded, plus inserted, less deleted",
                (forwardings == expected)
                    .then_some(())
                    .ok_or_else(|| format!("{forwardings} instead of {expected}")),
            ),
            ConsistencyCheck::new(
                "every call forwarding belongs to a special facility",
                (orphans == 0)
                    .then_some(())
                    .ok_or_else(|| format!("{orphans} do not")),
            ),
        ];
        for (name, store) in [
            ("subscriber", &self.subscriber),
            ("access info", &self.access),
            ("special facility", &self.facility),
            ("call forwarding", &self.forwarding),
        ] {
            checks.push(ConsistencyCheck::new(
                format!("indexes and table agree: {name}"),
                store.check_indexes(txn),
            ));
        }
        checks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::broken;

    #[test]
    fn a_forwarding_that_appears_or_belongs_to_nothing_is_found() {
        let found = broken(
            |engine| Tatp::new(engine, 50),
            async |tatp, txn, builder| {
                Tatp::build_forwarding(builder, [51, 1, 0], 8, &digits(1));
                let row = builder.finish();
                tatp.forwarding.must_insert(txn, row).await.expect("is new");
            },
        );
        assert_eq!(
            found,
            [
                "call forwardings: loaded, plus inserted, less deleted",
                "every call forwarding belongs to a special facility"
            ]
        );
    }

    #[test]
    fn a_lost_subscriber_is_found() {
        let found = broken(
            |engine| Tatp::new(engine, 50),
            async |tatp, txn, _| {
                let key = 7_u32.to_be_bytes();
                assert!(tatp.subscriber.delete(txn, &key).await.expect("deletes"));
            },
        );
        assert_eq!(found, ["every subscriber is there"]);
    }

    #[test]
    fn a_subscriber_has_each_type_at_most_once() {
        let mut rng = Rng::new(3);
        for _ in 0..1000 {
            let mut drawn: Vec<u32> = types(&mut rng).collect();
            let count = drawn.len();
            drawn.sort_unstable();
            drawn.dedup();
            assert_eq!(drawn.len(), count, "a type came twice");
            assert!((1..=4).contains(&count));
            assert!(drawn.iter().all(|t| (1..=4).contains(t)));
        }
    }
}
