//! The five transactions (2.4 to 2.8 of the specification).

use logstead_engine::Txn;

use super::columns::{customer, district, item, line, order, stock, warehouse};
use super::inputs::{CustomerSelector, last_name};
use super::{Client, DISTRICTS, Tpcc};
use crate::access::{Store, TxnError, id, key, number, rewrite};
use crate::driver::TransactionEnd;

/// Most bytes of a customer's data.
const DATA_BYTES_MAX: usize = 500;
/// Orders that Stock-Level looks back.
const RECENT_ORDERS: u32 = 20;

impl Tpcc {
    /// The customer's number: of those with the name, the one in the middle by first name, rounded up.
    async fn find_customer(
        &self,
        txn: &mut Txn,
        found: &mut Vec<u32>,
        warehouse: u32,
        district: u32,
        who: CustomerSelector,
    ) -> Result<u32, TxnError> {
        let name = match who {
            CustomerSelector::Id(id) => return Ok(id),
            CustomerSelector::Name(name) => name,
        };
        let mut prefix = key::<2, 8>([warehouse, district]).to_vec();
        last_name(name, &mut prefix);
        prefix.push(0);
        found.clear();
        Store::range(
            txn,
            &self.customer_by_name,
            &prefix,
            &prefix,
            false,
            |row| {
                found.push(id(row.bytes, customer::ID));
                true
            },
        )
        .await?;
        match found.len() {
            0 => Err(TxnError::Broken(format!(
                "no customer of district {district} of warehouse {warehouse} has last name {name}"
            ))),
            n => Ok(found[n.div_ceil(2) - 1]),
        }
    }

    pub(super) async fn new_order(
        &self,
        client: &mut Client,
        txn: &mut Txn,
    ) -> Result<TransactionEnd, TxnError> {
        let Client { input, builder, .. } = client;
        let lines = &input.lines[..input.line_count];
        let (w_id, d_id, c_id) = (input.warehouse, input.district, input.customer);
        let w_tax = self
            .warehouse
            .must_read(txn, &key::<1, 4>([w_id]), |row| number(row, warehouse::TAX))
            .await?;
        let (mut d_tax, mut o_id) = (0, 0);
        self.district
            .must_update(txn, &key::<2, 8>([w_id, d_id]), builder, |row, builder| {
                d_tax = number(row, district::TAX);
                o_id = id(row, district::NEXT_ORDER);
                let next = (o_id + 1).to_be_bytes();
                rewrite(row, builder, &[(district::NEXT_ORDER, &next)]);
            })
            .await?;
        let discount = self
            .customer
            .must_read(txn, &key::<3, 12>([w_id, d_id, c_id]), |row| {
                client.seen ^= row.column(customer::LAST).map_or(0, |n| n.len() as i64);
                client.seen ^= row.column(customer::CREDIT).map_or(0, |c| i64::from(c[0]));
                number(row, customer::DISCOUNT)
            })
            .await?;
        builder.start(1, order::COUNT);
        for id in [w_id, d_id, o_id, c_id] {
            builder.push(Some(&id.to_be_bytes()));
        }
        builder.push(Some(&self.now()));
        builder.push_null();
        builder.push(Some(&(lines.len() as u32).to_be_bytes()));
        let is_local = lines.iter().all(|line| line.supplier == w_id);
        builder.push(Some(&[u8::from(is_local)]));
        self.order.must_insert(txn, builder.finish()).await?;
        builder.start(1, 3);
        for id in [w_id, d_id, o_id] {
            builder.push(Some(&id.to_be_bytes()));
        }
        self.new_order.must_insert(txn, builder.finish()).await?;
        let mut sum = 0;
        for (n, ordered) in (1_u32..).zip(lines) {
            let price = self
                .item
                .read(txn, &key::<1, 4>([ordered.item]), |row| {
                    client.seen ^= row.column(item::NAME).map_or(0, |n| n.len() as i64);
                    client.seen ^= row.column(item::DATA).map_or(0, |d| d.len() as i64);
                    number(row, item::PRICE)
                })
                .await?;
            // An unused item: the order is taken back (2.4.2.3).
            let Some(price) = price else {
                return Ok(TransactionEnd::RollBack);
            };
            let quantity = i64::from(ordered.quantity);
            let mut info = [0; 24];
            let from = key::<2, 8>([ordered.supplier, ordered.item]);
            self.stock
                .must_update(txn, &from, builder, |row, builder| {
                    if let Some(dist) = row.column(stock::DIST + d_id as usize - 1)
                        && let Ok(dist) = dist.try_into()
                    {
                        info = dist;
                    }
                    client.seen ^= row.column(stock::DATA).map_or(0, |d| d.len() as i64);
                    let in_stock = number(row, stock::QUANTITY);
                    let left = if in_stock >= quantity + 10 {
                        in_stock - quantity
                    } else {
                        in_stock - quantity + 91
                    };
                    let remote = i64::from(ordered.supplier != w_id);
                    let ytd = number(row, stock::YTD) + quantity;
                    let orders = number(row, stock::ORDERS) + 1;
                    let remote = number(row, stock::REMOTE) + remote;
                    rewrite(
                        row,
                        builder,
                        &[
                            (stock::QUANTITY, &left.to_be_bytes()),
                            (stock::YTD, &ytd.to_be_bytes()),
                            (stock::ORDERS, &orders.to_be_bytes()),
                            (stock::REMOTE, &remote.to_be_bytes()),
                        ],
                    );
                })
                .await?;
            let amount = quantity * price;
            sum += amount;
            builder.start(1, line::COUNT);
            for id in [w_id, d_id, o_id, n, ordered.item, ordered.supplier] {
                builder.push(Some(&id.to_be_bytes()));
            }
            builder.push_null();
            builder.push(Some(&quantity.to_be_bytes()));
            builder.push(Some(&amount.to_be_bytes()));
            builder.push(Some(&info));
            self.line.must_insert(txn, builder.finish()).await?;
        }
        client.seen ^= sum * (10_000 - discount) * (10_000 + w_tax + d_tax);
        Ok(TransactionEnd::Commit)
    }

    pub(super) async fn payment(
        &self,
        client: &mut Client,
        txn: &mut Txn,
    ) -> Result<TransactionEnd, TxnError> {
        let Client {
            input,
            builder,
            found,
            ..
        } = client;
        let (w_id, d_id, amount) = (input.warehouse, input.district, input.amount);
        let (c_w_id, c_d_id) = (input.customer_warehouse, input.customer_district);
        let mut names = Vec::with_capacity(24);
        self.warehouse
            .must_update(txn, &key::<1, 4>([w_id]), builder, |row, builder| {
                names.clear();
                names.extend_from_slice(row.column(warehouse::NAME).unwrap_or_default());
                names.extend_from_slice(b"    ");
                let ytd = number(row, warehouse::YTD) + amount;
                rewrite(row, builder, &[(warehouse::YTD, &ytd.to_be_bytes())]);
            })
            .await?;
        let names_so_far = names.len();
        self.district
            .must_update(txn, &key::<2, 8>([w_id, d_id]), builder, |row, builder| {
                names.truncate(names_so_far);
                names.extend_from_slice(row.column(district::NAME).unwrap_or_default());
                let ytd = number(row, district::YTD) + amount;
                rewrite(row, builder, &[(district::YTD, &ytd.to_be_bytes())]);
            })
            .await?;
        let c_id = self
            .find_customer(txn, found, c_w_id, c_d_id, input.who)
            .await?;
        let c_key = key::<3, 12>([c_w_id, c_d_id, c_id]);
        self.customer
            .must_update(txn, &c_key, builder, |row, builder| {
                let balance = (number(row, customer::BALANCE) - amount).to_be_bytes();
                let paid = (number(row, customer::YTD_PAYMENT) + amount).to_be_bytes();
                let payments = (number(row, customer::PAYMENTS) + 1).to_be_bytes();
                let changes: [(usize, &[u8]); 3] = [
                    (customer::BALANCE, &balance),
                    (customer::YTD_PAYMENT, &paid),
                    (customer::PAYMENTS, &payments),
                ];
                if row.column(customer::CREDIT) == Some(b"BC") {
                    // Bad credit: the payment is noted in front of the customer's data.
                    let mut data =
                        format!("{c_id} {c_d_id} {c_w_id} {d_id} {w_id} {amount}|").into_bytes();
                    data.extend_from_slice(row.column(customer::DATA).unwrap_or_default());
                    data.truncate(DATA_BYTES_MAX);
                    let [a, b, c] = changes;
                    rewrite(row, builder, &[a, b, c, (customer::DATA, &data)]);
                } else {
                    rewrite(row, builder, &changes);
                }
            })
            .await?;
        self.build_history(builder, [c_id, c_d_id, c_w_id, d_id, w_id], amount, &names);
        self.history.must_insert(txn, builder.finish()).await?;
        Ok(TransactionEnd::Commit)
    }

    pub(super) async fn order_status(
        &self,
        client: &mut Client,
        txn: &mut Txn,
    ) -> Result<TransactionEnd, TxnError> {
        let Client { input, found, .. } = client;
        let (w_id, d_id) = (input.warehouse, input.district);
        let c_id = self
            .find_customer(txn, found, w_id, d_id, input.who)
            .await?;
        let c_key = key::<3, 12>([w_id, d_id, c_id]);
        client.seen ^= self
            .customer
            .must_read(txn, &c_key, |row| number(row, customer::BALANCE))
            .await?;
        let mut newest = None;
        Store::range(txn, &self.order_by_customer, &c_key, &c_key, true, |row| {
            newest = Some(id(row.bytes, order::ID));
            client.seen ^= i64::from(id(row.bytes, order::CARRIER));
            false
        })
        .await?;
        let Some(o_id) = newest else {
            return Err(TxnError::Broken(format!("customer {c_id} has no order")));
        };
        let o_key = key::<3, 12>([w_id, d_id, o_id]);
        Store::range(txn, &self.line.primary, &o_key, &o_key, false, |row| {
            client.seen ^= number(row.bytes, line::AMOUNT) ^ number(row.bytes, line::DELIVERED);
            true
        })
        .await?;
        Ok(TransactionEnd::Commit)
    }

    pub(super) async fn delivery(
        &self,
        client: &mut Client,
        txn: &mut Txn,
    ) -> Result<TransactionEnd, TxnError> {
        let Client {
            input,
            builder,
            lines,
            served,
            ..
        } = client;
        let w_id = input.warehouse;
        let now = self.now();
        for d_id in 1..=DISTRICTS {
            let district = key::<2, 8>([w_id, d_id]);
            // The oldest order not yet delivered; if another transaction took it meanwhile, the next one.
            let o_id = loop {
                let mut oldest = None;
                Store::range(
                    txn,
                    &self.new_order.primary,
                    &district,
                    &district,
                    false,
                    |row| {
                        oldest = Some(id(row.bytes, 2));
                        false
                    },
                )
                .await?;
                let Some(o_id) = oldest else { break None };
                let o_key = key::<3, 12>([w_id, d_id, o_id]);
                if self.new_order.delete(txn, &o_key).await? {
                    break Some(o_id);
                }
            };
            // None left: the district is skipped (2.7.4.2).
            let Some(o_id) = o_id else { continue };
            let o_key = key::<3, 12>([w_id, d_id, o_id]);
            let mut c_id = 0;
            let carrier = input.carrier.to_be_bytes();
            self.order
                .must_update(txn, &o_key, builder, |row, builder| {
                    c_id = id(row, order::CUSTOMER);
                    rewrite(row, builder, &[(order::CARRIER, &carrier)]);
                })
                .await?;
            lines.clear();
            let mut sum = 0;
            Store::range(txn, &self.line.primary, &o_key, &o_key, false, |row| {
                sum += number(row.bytes, line::AMOUNT);
                lines.push(id(row.bytes, line::NUMBER));
                true
            })
            .await?;
            for n in &*lines {
                let l_key = key::<4, 16>([w_id, d_id, o_id, *n]);
                self.line
                    .must_update(txn, &l_key, builder, |row, builder| {
                        rewrite(row, builder, &[(line::DELIVERED, &now)]);
                    })
                    .await?;
            }
            let c_key = key::<3, 12>([w_id, d_id, c_id]);
            self.customer
                .must_update(txn, &c_key, builder, |row, builder| {
                    let balance = number(row, customer::BALANCE) + sum;
                    let deliveries = number(row, customer::DELIVERIES) + 1;
                    rewrite(
                        row,
                        builder,
                        &[
                            (customer::BALANCE, &balance.to_be_bytes()),
                            (customer::DELIVERIES, &deliveries.to_be_bytes()),
                        ],
                    );
                })
                .await?;
            served.push(d_id);
        }
        Ok(TransactionEnd::Commit)
    }

    pub(super) async fn stock_level(
        &self,
        client: &mut Client,
        txn: &mut Txn,
    ) -> Result<TransactionEnd, TxnError> {
        let Client { input, items, .. } = client;
        let (w_id, d_id) = (input.warehouse, input.district);
        let next = self
            .district
            .must_read(txn, &key::<2, 8>([w_id, d_id]), |row| {
                id(row, district::NEXT_ORDER)
            })
            .await?;
        items.clear();
        let first = key::<3, 12>([w_id, d_id, next.saturating_sub(RECENT_ORDERS)]);
        let last = key::<3, 12>([w_id, d_id, next - 1]);
        Store::range(txn, &self.line.primary, &first, &last, false, |row| {
            items.insert(id(row.bytes, line::ITEM));
            true
        })
        .await?;
        let mut low = 0;
        for item in &*items {
            let in_stock = self
                .stock
                .must_read(txn, &key::<2, 8>([w_id, *item]), |row| {
                    number(row, stock::QUANTITY)
                })
                .await?;
            low += i64::from(in_stock < input.threshold);
        }
        client.seen ^= low;
        Ok(TransactionEnd::Commit)
    }
}
