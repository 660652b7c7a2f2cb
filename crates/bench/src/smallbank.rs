//! SmallBank (Alomari et al. 2008): six transactions on the savings and checking accounts of a bank's customers, with
//! the mix of H-Store's implementation. Amounts are cents.
//!
//! After the run the money in all accounts must be what was loaded plus what committed transactions brought and took.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use logstead_engine::{Csn, Engine, RowBuilder, Txn};

use crate::access::{KeyPart, Store, TxnError, number, rewrite};
use crate::driver::{ConsistencyCheck, Loader, TransactionEnd, WorkShare, Workload};
use crate::placement::{Placement, WantedKey};
use crate::random::{Distribution, KeyGenerator, Rng};

const TABLE: u32 = 20_000;
const BALANCE: usize = 1;
/// What customers have at first in each account.
const BALANCE_MIN: u32 = 1_000_000;
const BALANCE_MAX: u32 = 5_000_000;
/// Amounts of the transactions, as H-Store's.
const DEPOSIT: i64 = 130;
const SAVING: i64 = 2_020;
const CHECK: i64 = 500;
const PAYMENT: i64 = 500;
/// For a check that is not covered.
const PENALTY: i64 = 100;

const AMALGAMATE: usize = 0;
const READ_BALANCE: usize = 1;
const DEPOSIT_CHECKING: usize = 2;
const SEND_PAYMENT: usize = 3;
const TRANSACT_SAVINGS: usize = 4;
/// Of 100 transactions; what is left writes checks.
const MIX: [u64; 5] = [15, 15, 15, 25, 15];

pub(crate) struct SmallBank {
    customers: KeyGenerator,
    accounts: Store,
    savings: Store,
    checking: Store,
    /// Where customers lie, if there are several instances: what is their savings' and checking accounts'.
    placement: Option<Placement>,
    /// The money that must be there.
    expected: AtomicI64,
    loaded: AtomicU64,
}

pub(crate) struct Client {
    rng: Rng,
    worker: usize,
    kind: usize,
    names: [[u8; 12]; 2],
    /// What the transaction brings, or takes.
    change: i64,
    builder: RowBuilder,
}

/// A customer's name: what transactions are given.
fn name(customer: u64) -> [u8; 12] {
    let mut name = *b"C00000000000";
    let mut rest = customer;
    for digit in name.iter_mut().skip(1).rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    name
}

impl SmallBank {
    pub(crate) fn new(engine: &Engine, accounts: u64, distribution: Distribution) -> SmallBank {
        SmallBank {
            customers: KeyGenerator::new(distribution, accounts),
            accounts: Store::divided(engine, TABLE, &[KeyPart::Fixed(0)], 12),
            savings: Store::divided(engine, TABLE + 10, &[KeyPart::Fixed(0)], 8),
            checking: Store::divided(engine, TABLE + 20, &[KeyPart::Fixed(0)], 8),
            placement: None,
            expected: AtomicI64::new(0),
            loaded: AtomicU64::new(0),
        }
    }

    /// With sessions that keep to customers of their instances, but for a share of their transactions.
    pub(crate) fn placed(self, engine: &Engine, cross: f64) -> SmallBank {
        SmallBank {
            placement: Placement::of(engine, cross),
            ..self
        }
    }

    /// A customer, of an instance that is wanted.
    fn draw_customer(&self, client: &mut Client, wanted: WantedKey) -> u64 {
        let drawn = self.customers.draw(&mut client.rng);
        match &self.placement {
            None => drawn,
            Some(placement) => {
                placement.choose(client.worker, drawn, self.customers.count(), wanted)
            }
        }
    }

    /// The number of the customer called `name`.
    async fn customer(&self, txn: &mut Txn, name: &[u8]) -> Result<[u8; 8], TxnError> {
        self.accounts
            .must_read(txn, name, |row| number(row, 1).to_be_bytes())
            .await
    }

    async fn balance(store: &Store, txn: &mut Txn, customer: &[u8]) -> Result<i64, TxnError> {
        store
            .must_read(txn, customer, |row| number(row, BALANCE))
            .await
    }

    /// Sets a balance to what `change` makes of it, unless that says no; gives the old one.
    async fn set(
        store: &Store,
        txn: &mut Txn,
        customer: &[u8],
        builder: &mut RowBuilder,
        change: impl Fn(i64) -> Option<i64>,
    ) -> Result<(bool, i64), TxnError> {
        let mut old = 0;
        let changed = store
            .update(txn, customer, builder, |row, builder| {
                old = number(row, BALANCE);
                match change(old) {
                    Some(new) => {
                        rewrite(row, builder, &[(BALANCE, &new.to_be_bytes())]);
                        true
                    }
                    None => false,
                }
            })
            .await?;
        Ok((changed, old))
    }
}

impl Workload for SmallBank {
    type Client = Client;

    const KINDS: &'static [&'static str] = &[
        "amalgamate",
        "balance",
        "deposit checking",
        "send payment",
        "transact savings",
        "write check",
    ];

    async fn load(&self, seat: WorkShare, mut rng: Rng, into: &mut Loader) -> Result<(), TxnError> {
        let mut builder = RowBuilder::new();
        let mut sum = 0;
        for customer in seat.part(self.customers.count()) {
            let id = customer.to_be_bytes();
            builder.start(1, 2);
            builder.push(Some(&name(customer)));
            builder.push(Some(&id));
            into.insert(&self.accounts.table, builder.finish()).await?;
            for store in [&self.savings, &self.checking] {
                let balance = i64::from(rng.between(BALANCE_MIN, BALANCE_MAX));
                sum += balance;
                builder.start(1, 2);
                builder.push(Some(&id));
                builder.push(Some(&balance.to_be_bytes()));
                into.insert(&store.table, builder.finish()).await?;
            }
        }
        self.expected.fetch_add(sum, Ordering::Relaxed);
        let part = seat.part(self.customers.count());
        self.loaded
            .fetch_add(part.end - part.start, Ordering::Relaxed);
        Ok(())
    }

    fn client(&self, seat: WorkShare, rng: Rng) -> Client {
        Client {
            rng,
            worker: seat.worker,
            kind: 0,
            names: [[0; 12]; 2],
            change: 0,
            builder: RowBuilder::new(),
        }
    }

    fn draw(&self, client: &mut Client) -> usize {
        let placement = self.placement.as_ref();
        let crosses = placement.is_some_and(|placement| placement.crosses(&mut client.rng));
        let wanted = match crosses {
            true => [WantedKey::Foreign, WantedKey::Any],
            false => [WantedKey::Own; 2],
        };
        let first = self.draw_customer(client, wanted[0]);
        let mut second = self.draw_customer(client, wanted[1]);
        while second == first {
            // A distribution may hardly ever give another one.
            let count = self.customers.count();
            second = client.rng.below(count);
            if let Some(placement) = placement {
                second = placement.choose(client.worker, second, count, wanted[1]);
            }
        }
        client.names = [name(first), name(second)];
        let mut dice = client.rng.below(100);
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
            names,
            change,
            ..
        } = client;
        *change = 0;
        let customer = self.customer(txn, &names[0]).await?;
        match client.kind {
            AMALGAMATE => {
                let to = self.customer(txn, &names[1]).await?;
                let (_, savings) =
                    Self::set(&self.savings, txn, &customer, builder, |_| Some(0)).await?;
                let (_, checking) =
                    Self::set(&self.checking, txn, &customer, builder, |_| Some(0)).await?;
                let sum = savings + checking;
                Self::set(&self.checking, txn, &to, builder, |old| Some(old + sum)).await?;
            }
            READ_BALANCE => {
                Self::balance(&self.savings, txn, &customer).await?;
                Self::balance(&self.checking, txn, &customer).await?;
            }
            DEPOSIT_CHECKING => {
                *change = DEPOSIT;
                Self::set(&self.checking, txn, &customer, builder, |old| {
                    Some(old + DEPOSIT)
                })
                .await?;
            }
            SEND_PAYMENT => {
                let to = self.customer(txn, &names[1]).await?;
                let (sent, _) = Self::set(&self.checking, txn, &customer, builder, |old| {
                    (old >= PAYMENT).then_some(old - PAYMENT)
                })
                .await?;
                if !sent {
                    return Ok(TransactionEnd::RollBack);
                }
                Self::set(&self.checking, txn, &to, builder, |old| Some(old + PAYMENT)).await?;
            }
            TRANSACT_SAVINGS => {
                *change = SAVING;
                Self::set(&self.savings, txn, &customer, builder, |old| {
                    Some(old + SAVING)
                })
                .await?;
            }
            _ => {
                let sum = Self::balance(&self.savings, txn, &customer).await?
                    + Self::balance(&self.checking, txn, &customer).await?;
                let amount = if sum < CHECK { CHECK + PENALTY } else { CHECK };
                *change = -amount;
                Self::set(&self.checking, txn, &customer, builder, |old| {
                    Some(old - amount)
                })
                .await?;
            }
        }
        Ok(TransactionEnd::Commit)
    }

    fn committed(&self, client: &mut Client, _csn: Option<Csn>) {
        if client.change != 0 {
            self.expected.fetch_add(client.change, Ordering::Relaxed);
        }
    }

    fn check(&self, txn: &mut Txn) -> Vec<ConsistencyCheck> {
        let (mut sum, mut rows) = (0, [0_u64; 2]);
        for (store, rows) in [&self.savings, &self.checking].into_iter().zip(&mut rows) {
            store.scan(txn, |row| {
                sum += number(row, BALANCE);
                *rows += 1;
            });
        }
        let expected = self.expected.load(Ordering::Relaxed);
        let customers = self.loaded.load(Ordering::Relaxed);
        let mut checks = vec![
            ConsistencyCheck::new(
                "no account was lost",
                (rows == [customers; 2])
                    .then_some(())
                    .ok_or_else(|| format!("{rows:?} of {customers} each")),
            ),
            ConsistencyCheck::new(
                "the total is what was loaded, brought and taken",
                (sum == expected)
                    .then_some(())
                    .ok_or_else(|| format!("{sum} cents instead of {expected}")),
            ),
        ];
        for (name, store) in [
            ("accounts", &self.accounts),
            ("savings", &self.savings),
            ("checking", &self.checking),
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
    use crate::testing::{add, broken};

    fn make(engine: &Engine) -> SmallBank {
        SmallBank::new(engine, 50, Distribution::Uniform)
    }

    #[test]
    fn a_cent_too_many_is_found() {
        let found = broken(make, async |bank, txn, builder| {
            add(&bank.savings, txn, builder, &3_u64.to_be_bytes(), BALANCE).await;
        });
        assert_eq!(found, ["the total is what was loaded, brought and taken"]);
    }

    #[test]
    fn a_lost_account_is_found() {
        let found = broken(make, async |bank, txn, _| {
            // Not one that was just emptied.
            let mut key = [0; 8];
            bank.checking.scan(txn, |row| {
                if number(row, BALANCE) != 0 {
                    key = number(row, 0).to_be_bytes();
                }
            });
            assert!(bank.checking.delete(txn, &key).await.expect("deletes"));
        });
        assert_eq!(
            found,
            [
                "no account was lost",
                "the total is what was loaded, brought and taken"
            ]
        );
    }

    #[test]
    fn names_are_ordered_and_distinct() {
        assert_eq!(&name(0), b"C00000000000");
        assert_eq!(&name(1_234), b"C00000001234");
        assert!(name(99) < name(100));
    }
}
