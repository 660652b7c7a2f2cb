//! TPC-C (revision 5.11): all five transactions, with the specification's population, input distributions and mix.
//!
//! Departures, as the papers make them: no terminals, no think or keying times, and Delivery runs at once instead of
//! from a queue. Items and customers per district can be fewer, for tests; the random distributions then shrink with
//! them. Each session has a home warehouse, fixed.
//!
//! Amounts are cents; taxes and discounts ten-thousandths. Identifiers are four bytes, big endian, so that the columns
//! of a key joined are its order.

mod check;
mod inputs;
mod population;
mod transactions;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use logstead_engine::{Csn, Engine, Index, InstanceId, RowBuilder, Txn, WorkerId};

use crate::access::{KeyPart, Store, TxnError};
use crate::driver::{ConsistencyCheck, Loader, TransactionEnd, WorkShare, Workload};
use crate::options::Tpcc as Scale;
use crate::placement;
use crate::random::Rng;
use inputs::{Constants, Input};

const DISTRICTS: u32 = 10;
const TABLE: u32 = 20_000;

/// Columns, in their order.
mod columns {
    pub(super) mod warehouse {
        pub(in crate::tpcc) const NAME: usize = 1;
        pub(in crate::tpcc) const TAX: usize = 7;
        pub(in crate::tpcc) const YTD: usize = 8;
        pub(in crate::tpcc) const COUNT: usize = 9;
    }
    pub(super) mod district {
        pub(in crate::tpcc) const NAME: usize = 2;
        pub(in crate::tpcc) const TAX: usize = 8;
        pub(in crate::tpcc) const YTD: usize = 9;
        pub(in crate::tpcc) const NEXT_ORDER: usize = 10;
        pub(in crate::tpcc) const COUNT: usize = 11;
    }
    pub(super) mod customer {
        pub(in crate::tpcc) const ID: usize = 2;
        pub(in crate::tpcc) const FIRST: usize = 3;
        pub(in crate::tpcc) const LAST: usize = 5;
        pub(in crate::tpcc) const CREDIT: usize = 13;
        pub(in crate::tpcc) const DISCOUNT: usize = 15;
        pub(in crate::tpcc) const BALANCE: usize = 16;
        pub(in crate::tpcc) const YTD_PAYMENT: usize = 17;
        pub(in crate::tpcc) const PAYMENTS: usize = 18;
        pub(in crate::tpcc) const DELIVERIES: usize = 19;
        pub(in crate::tpcc) const DATA: usize = 20;
        pub(in crate::tpcc) const COUNT: usize = 21;
    }
    pub(super) mod history {
        pub(in crate::tpcc) const CUSTOMER: usize = 0;
        pub(in crate::tpcc) const CUSTOMER_DISTRICT: usize = 1;
        pub(in crate::tpcc) const CUSTOMER_WAREHOUSE: usize = 2;
        pub(in crate::tpcc) const DISTRICT: usize = 3;
        pub(in crate::tpcc) const WAREHOUSE: usize = 4;
        pub(in crate::tpcc) const AMOUNT: usize = 6;
        pub(in crate::tpcc) const COUNT: usize = 8;
    }
    pub(super) mod order {
        pub(in crate::tpcc) const ID: usize = 2;
        pub(in crate::tpcc) const CUSTOMER: usize = 3;
        pub(in crate::tpcc) const CARRIER: usize = 5;
        pub(in crate::tpcc) const LINES: usize = 6;
        pub(in crate::tpcc) const COUNT: usize = 8;
    }
    pub(super) mod line {
        pub(in crate::tpcc) const NUMBER: usize = 3;
        pub(in crate::tpcc) const ITEM: usize = 4;
        pub(in crate::tpcc) const DELIVERED: usize = 6;
        pub(in crate::tpcc) const AMOUNT: usize = 8;
        pub(in crate::tpcc) const COUNT: usize = 10;
    }
    pub(super) mod item {
        pub(in crate::tpcc) const NAME: usize = 2;
        pub(in crate::tpcc) const PRICE: usize = 3;
        pub(in crate::tpcc) const DATA: usize = 4;
        pub(in crate::tpcc) const COUNT: usize = 5;
    }
    pub(super) mod stock {
        pub(in crate::tpcc) const QUANTITY: usize = 2;
        /// The first of ten.
        pub(in crate::tpcc) const DIST: usize = 3;
        pub(in crate::tpcc) const YTD: usize = 13;
        pub(in crate::tpcc) const ORDERS: usize = 14;
        pub(in crate::tpcc) const REMOTE: usize = 15;
        pub(in crate::tpcc) const DATA: usize = 16;
        pub(in crate::tpcc) const COUNT: usize = 17;
    }
}

/// Keys of one to four numbers.
const KEY: [&[KeyPart]; 4] = [
    &[KeyPart::Fixed(0)],
    &[KeyPart::Fixed(0), KeyPart::Fixed(1)],
    &[KeyPart::Fixed(0), KeyPart::Fixed(1), KeyPart::Fixed(2)],
    &[
        KeyPart::Fixed(0),
        KeyPart::Fixed(1),
        KeyPart::Fixed(2),
        KeyPart::Fixed(3),
    ],
];

pub(crate) struct Tpcc {
    scale: Scale,
    constants: Constants,
    warehouse: Store,
    district: Store,
    customer: Store,
    /// (warehouse, district, last name, first name)
    customer_by_name: Arc<Index>,
    /// Keyed by a number of its own, since the specification gives it no key; behind its warehouse if it is divided.
    history: Store,
    history_rows: AtomicU64,
    order: Store,
    /// (warehouse, district, customer, order)
    order_by_customer: Arc<Index>,
    new_order: Store,
    line: Store,
    item: Store,
    stock: Store,
    /// Orders delivered by committed transactions, by district.
    delivered: Box<[AtomicU64]>,
    /// Stands for the date and time that rows get.
    moment: AtomicU64,
    /// The warehouses of each instance, if there are several.
    homes: Vec<Vec<u32>>,
    /// The instance of each worker.
    owners: Vec<InstanceId>,
}

pub(crate) struct Client {
    rng: Rng,
    home: u32,
    input: Input,
    builder: RowBuilder,
    /// Customers found by their name.
    found: Vec<u32>,
    /// Items of the lines looked at by Stock-Level.
    items: HashSet<u32>,
    /// Lines of an order that Delivery changes, and the districts it has served.
    lines: Vec<u32>,
    served: Vec<u32>,
    /// What was read: kept, so that reading is not optimised away.
    seen: i64,
}

impl Tpcc {
    pub(crate) fn new(engine: &Engine, scale: Scale, seed: u64) -> Tpcc {
        // By warehouse, but for the items, which have none.
        let store = |at: u32, key: &'static [KeyPart]| {
            Store::divided(engine, TABLE + at * 10, key, size_of::<u32>())
        };
        let is_divided = engine.instances().count() > 1;
        let history_key: &[KeyPart] = match is_divided {
            true => &[
                KeyPart::Fixed(columns::history::WAREHOUSE),
                KeyPart::Fixed(columns::history::COUNT),
            ],
            false => &[KeyPart::Fixed(columns::history::COUNT)],
        };
        let customer = store(2, KEY[2]);
        let by_name = &[
            KeyPart::Fixed(0),
            KeyPart::Fixed(1),
            KeyPart::Text(columns::customer::LAST),
            KeyPart::Text(columns::customer::FIRST),
        ];
        let order = store(4, KEY[2]);
        let by_customer = &[
            KeyPart::Fixed(0),
            KeyPart::Fixed(1),
            KeyPart::Fixed(columns::order::CUSTOMER),
            KeyPart::Fixed(columns::order::ID),
        ];
        Tpcc {
            constants: Constants::new(seed),
            warehouse: store(0, KEY[0]),
            district: store(1, KEY[1]),
            customer_by_name: customer.secondary(engine, 2, by_name),
            customer,
            history: store(3, history_key),
            history_rows: AtomicU64::new(0),
            order_by_customer: order.secondary(engine, 2, by_customer),
            order,
            new_order: store(5, KEY[2]),
            line: store(6, KEY[3]),
            item: Store::new(engine, TABLE + 70, KEY[0]),
            stock: store(8, KEY[1]),
            delivered: (0..scale.warehouses * DISTRICTS)
                .map(|_| AtomicU64::new(0))
                .collect(),
            moment: AtomicU64::new(1),
            homes: match is_divided {
                true => placement::deal(engine, scale.warehouses),
                false => Vec::new(),
            },
            owners: (0..engine.worker_count() as u16)
                .map(|worker| engine.instances().of_worker(WorkerId(worker)))
                .collect(),
            scale,
        }
    }

    /// The home warehouse of a session: one of its instance, if that has some. Workers have warehouses of their own as
    /// far as there are enough.
    fn home(&self, seat: WorkShare) -> u32 {
        let number = seat.worker + seat.session * seat.workers;
        let owner = self
            .owners
            .get(seat.worker)
            .map(|owner| usize::from(owner.0));
        let homes = owner.and_then(|owner| self.homes.get(owner));
        match homes {
            Some(homes) if !homes.is_empty() => {
                // The how-manieth it is of its instance's sessions.
                let before = self.owners[..seat.worker].iter();
                let before = before.filter(|other| Some(usize::from(other.0)) == owner);
                let all = self.owners.iter();
                let all = all.filter(|other| Some(usize::from(other.0)) == owner);
                homes[(before.count() + seat.session * all.count()) % homes.len()]
            }
            _ => (number % self.scale.warehouses as usize) as u32 + 1,
        }
    }

    /// A date and time: later than all before.
    fn now(&self) -> [u8; 8] {
        self.moment.fetch_add(1, Ordering::Relaxed).to_be_bytes()
    }
}

impl Workload for Tpcc {
    type Client = Client;

    const KINDS: &'static [&'static str] = &[
        "new order",
        "payment",
        "order status",
        "delivery",
        "stock level",
    ];

    async fn load(&self, seat: WorkShare, mut rng: Rng, into: &mut Loader) -> Result<(), TxnError> {
        for at in seat.part(u64::from(self.scale.items)) {
            self.load_item(at as u32 + 1, &mut rng, into).await?;
        }
        for at in seat.part(u64::from(self.scale.warehouses)) {
            self.load_warehouse(at as u32 + 1, &mut rng, into).await?;
        }
        Ok(())
    }

    fn client(&self, seat: WorkShare, rng: Rng) -> Client {
        Client {
            rng,
            home: self.home(seat),
            input: Input::default(),
            builder: RowBuilder::new(),
            found: Vec::new(),
            items: HashSet::new(),
            lines: Vec::new(),
            served: Vec::new(),
            seen: 0,
        }
    }

    fn draw(&self, client: &mut Client) -> usize {
        client
            .input
            .draw(client.home, &self.scale, &self.constants, &mut client.rng)
    }

    async fn execute(
        &self,
        client: &mut Client,
        txn: &mut Txn,
    ) -> Result<TransactionEnd, TxnError> {
        client.served.clear();
        match client.input.kind {
            inputs::NEW_ORDER => self.new_order(client, txn).await,
            inputs::PAYMENT => self.payment(client, txn).await,
            inputs::ORDER_STATUS => self.order_status(client, txn).await,
            inputs::DELIVERY => self.delivery(client, txn).await,
            _ => self.stock_level(client, txn).await,
        }
    }

    fn committed(&self, client: &mut Client, _csn: Option<Csn>) {
        for district in &client.served {
            let at = (client.home - 1) * DISTRICTS + district - 1;
            self.delivered[at as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    fn check(&self, txn: &mut Txn) -> Vec<ConsistencyCheck> {
        self.check_consistency(txn)
    }
}
