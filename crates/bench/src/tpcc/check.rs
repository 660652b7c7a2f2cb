//! The consistency conditions 1 to 12 (3.3.2 of the specification), from one snapshot.
//!
//! Condition 11 is stated for the initial population (2,100 delivered orders in a district); here the orders that
//! committed Delivery transactions delivered are added.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use logstead_engine::Txn;

use super::columns::{customer, district, history, line, order, warehouse};
use super::{DISTRICTS, Tpcc};
use crate::access::{Store, id, number};
use crate::driver::ConsistencyCheck;

/// (warehouse, district)
type District = (u32, u32);
/// (warehouse, district, order or customer)
type Within = (u32, u32, u32);

#[derive(Default)]
struct Order {
    customer: u32,
    is_delivered: bool,
    lines_said: u32,
    lines: u32,
    lines_delivered: u32,
    amount: i64,
    is_new: bool,
}

#[derive(Default)]
struct Customer {
    balance: i64,
    ytd_payment: i64,
    paid: i64,
    delivered: i64,
}

#[derive(Default)]
struct Totals {
    ytd: i64,
    next_order: u32,
    paid: i64,
    orders: u32,
    order_max: u32,
    lines_said: u64,
    lines: u64,
    new_orders: u32,
    new_order_min: u32,
    new_order_max: u32,
    delivered: u32,
}

/// What is wrong with one condition: the first finds, and how many there are.
#[derive(Default)]
struct Faults {
    count: u64,
    first: Vec<String>,
}

/// Faults of a condition that are told.
const TOLD_MAX: usize = 3;

impl Faults {
    fn expect(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.count += 1;
            if self.first.len() < TOLD_MAX {
                self.first.push(what());
            }
        }
    }

    fn into_check(self, name: String) -> ConsistencyCheck {
        let result = match self.count {
            0 => Ok(()),
            n => Err(format!("{n} times: {}", self.first.join("; "))),
        };
        ConsistencyCheck::new(name, result)
    }
}

const NAMES: [&str; 12] = [
    "W_YTD is the sum of D_YTD",
    "D_NEXT_O_ID - 1 is the largest O_ID and NO_O_ID",
    "NO_O_ID of a district have no gaps",
    "O_OL_CNT of a district add up to its order lines",
    "an order has no carrier exactly if it is a new order",
    "O_OL_CNT is the number of the order's lines",
    "a line has no delivery date exactly if its order has no carrier",
    "W_YTD is the sum of H_AMOUNT",
    "D_YTD is the sum of H_AMOUNT",
    "C_BALANCE is what was delivered less what was paid",
    "orders less new orders are those that were delivered",
    "C_BALANCE + C_YTD_PAYMENT is what was delivered",
];

/// Everything the conditions talk about, read from one snapshot.
#[derive(Default)]
struct Picture {
    warehouses: HashMap<u32, i64>,
    districts: HashMap<District, Totals>,
    orders: HashMap<Within, Order>,
    customers: HashMap<Within, Customer>,
    paid_warehouse: HashMap<u32, i64>,
    /// Rows that belong to nothing.
    strays: Faults,
}

impl Tpcc {
    fn picture(&self, txn: &mut Txn) -> Picture {
        let mut p = Picture::default();
        self.warehouse.scan(txn, |row| {
            p.warehouses.insert(id(row, 0), number(row, warehouse::YTD));
        });
        self.district.scan(txn, |row| {
            let totals = p.districts.entry((id(row, 0), id(row, 1))).or_default();
            totals.ytd = number(row, district::YTD);
            totals.next_order = id(row, district::NEXT_ORDER);
        });
        self.customer.scan(txn, |row| {
            let which = (id(row, 0), id(row, 1), id(row, 2));
            let customer = p.customers.entry(which).or_default();
            customer.balance = number(row, customer::BALANCE);
            customer.ytd_payment = number(row, customer::YTD_PAYMENT);
        });
        self.order.scan(txn, |row| {
            let which = (id(row, 0), id(row, 1), id(row, 2));
            let order = p.orders.entry(which).or_default();
            order.customer = id(row, order::CUSTOMER);
            order.is_delivered = row.column(order::CARRIER).is_some();
            order.lines_said = id(row, order::LINES);
            let totals = p.districts.entry((which.0, which.1)).or_default();
            totals.orders += 1;
            totals.order_max = totals.order_max.max(which.2);
            totals.lines_said += u64::from(order.lines_said);
            totals.delivered += u32::from(order.is_delivered);
        });
        self.new_order.scan(txn, |row| {
            let which = (id(row, 0), id(row, 1), id(row, 2));
            let totals = p.districts.entry((which.0, which.1)).or_default();
            totals.new_order_min = match totals.new_orders {
                0 => which.2,
                _ => totals.new_order_min.min(which.2),
            };
            totals.new_order_max = totals.new_order_max.max(which.2);
            totals.new_orders += 1;
            match p.orders.get_mut(&which) {
                Some(order) => order.is_new = true,
                None => p
                    .strays
                    .expect(false, || format!("new order {which:?} without order")),
            }
        });
        self.line.scan(txn, |row| {
            let which = (id(row, 0), id(row, 1), id(row, 2));
            p.districts.entry((which.0, which.1)).or_default().lines += 1;
            match p.orders.get_mut(&which) {
                Some(order) => {
                    order.lines += 1;
                    if row.column(line::DELIVERED).is_some() {
                        order.lines_delivered += 1;
                        order.amount += number(row, line::AMOUNT);
                    }
                }
                None => p
                    .strays
                    .expect(false, || format!("a line of {which:?} without order")),
            }
        });
        self.history.scan(txn, |row| {
            let amount = number(row, history::AMOUNT);
            let (w_id, d_id) = (id(row, history::WAREHOUSE), id(row, history::DISTRICT));
            *p.paid_warehouse.entry(w_id).or_default() += amount;
            p.districts.entry((w_id, d_id)).or_default().paid += amount;
            let which = (
                id(row, history::CUSTOMER_WAREHOUSE),
                id(row, history::CUSTOMER_DISTRICT),
                id(row, history::CUSTOMER),
            );
            match p.customers.get_mut(&which) {
                Some(customer) => customer.paid += amount,
                None => p
                    .strays
                    .expect(false, || format!("a payment of {which:?} without customer")),
            }
        });
        let Picture {
            orders,
            customers,
            strays,
            ..
        } = &mut p;
        for (which, order) in orders.iter() {
            match customers.get_mut(&(which.0, which.1, order.customer)) {
                Some(customer) => customer.delivered += order.amount,
                None => strays.expect(false, || format!("order {which:?} without customer")),
            }
        }
        p
    }

    pub(super) fn check_consistency(&self, txn: &mut Txn) -> Vec<ConsistencyCheck> {
        let p = self.picture(txn);
        let mut faults: [Faults; 12] = std::array::from_fn(|_| Faults::default());
        let mut expect = |condition: usize, holds: bool, what: &dyn Fn() -> String| {
            faults[condition - 1].expect(holds, what);
        };
        for (w_id, ytd) in &p.warehouses {
            let districts = p.districts.iter().filter(|((w, _), _)| w == w_id);
            let sum: i64 = districts.map(|(_, totals)| totals.ytd).sum();
            expect(1, *ytd == sum, &|| {
                format!("warehouse {w_id}: {ytd} and {sum}")
            });
            let paid = p.paid_warehouse.get(w_id).copied().unwrap_or(0);
            expect(8, *ytd == paid, &|| {
                format!("warehouse {w_id}: {ytd} and {paid}")
            });
        }
        for (which, t) in &p.districts {
            let newest = t.next_order.wrapping_sub(1);
            expect(
                2,
                newest == t.order_max && (t.new_orders == 0 || newest == t.new_order_max),
                &|| {
                    format!(
                        "district {which:?}: next {}, orders to {}, new orders to {}",
                        t.next_order, t.order_max, t.new_order_max
                    )
                },
            );
            let gapless =
                t.new_orders == 0 || t.new_order_max - t.new_order_min + 1 == t.new_orders;
            expect(3, gapless, &|| {
                format!(
                    "district {which:?}: {} from {} to {}",
                    t.new_orders, t.new_order_min, t.new_order_max
                )
            });
            expect(4, t.lines_said == t.lines, &|| {
                format!("district {which:?}: {} and {}", t.lines_said, t.lines)
            });
            expect(9, t.ytd == t.paid, &|| {
                format!("district {which:?}: {} and {}", t.ytd, t.paid)
            });
            let at = which.0.wrapping_sub(1) * DISTRICTS + which.1.wrapping_sub(1);
            let by_transactions = self
                .delivered
                .get(at as usize)
                .map_or(0, |n| n.load(Ordering::Relaxed));
            let expected = u64::from(self.delivered_at_first()) + by_transactions;
            let found = u64::from(t.orders) - u64::from(t.new_orders).min(u64::from(t.orders));
            expect(
                11,
                found == expected && u64::from(t.delivered) == expected,
                &|| {
                    format!(
                        "district {which:?}: {found}, with carrier {}, instead of {expected}",
                        t.delivered
                    )
                },
            );
        }
        for (which, order) in &p.orders {
            expect(5, order.is_delivered != order.is_new, &|| {
                format!("order {which:?}")
            });
            expect(6, order.lines_said == order.lines, &|| {
                format!("order {which:?}: {} and {}", order.lines_said, order.lines)
            });
            let delivered = if order.is_delivered { order.lines } else { 0 };
            expect(7, order.lines_delivered == delivered, &|| {
                format!(
                    "order {which:?}: {} of {} lines",
                    order.lines_delivered, order.lines
                )
            });
        }
        for (which, c) in &p.customers {
            expect(10, c.balance == c.delivered - c.paid, &|| {
                format!(
                    "customer {which:?}: {} instead of {} - {}",
                    c.balance, c.delivered, c.paid
                )
            });
            expect(12, c.balance + c.ytd_payment == c.delivered, &|| {
                format!(
                    "customer {which:?}: {} + {} instead of {}",
                    c.balance, c.ytd_payment, c.delivered
                )
            });
        }
        let mut checks: Vec<ConsistencyCheck> = faults
            .into_iter()
            .zip(NAMES)
            .enumerate()
            .map(|(at, (faults, name))| faults.into_check(format!("condition {}: {name}", at + 1)))
            .collect();
        checks.push(
            p.strays
                .into_check("no row is without what it belongs to".into()),
        );
        let scale = &self.scale;
        let found = [p.warehouses.len(), p.districts.len(), p.customers.len()];
        let expected = [1, DISTRICTS, DISTRICTS * scale.customers]
            .map(|n| n as usize * scale.warehouses as usize);
        checks.push(ConsistencyCheck::new(
            "warehouses, districts and customers are all there",
            (found == expected)
                .then_some(())
                .ok_or_else(|| format!("{found:?} instead of {expected:?}")),
        ));
        checks.push(ConsistencyCheck::new(
            "indexes and tables agree",
            self.agree(txn),
        ));
        checks
    }

    fn agree(&self, txn: &mut Txn) -> Result<(), String> {
        let stores: [&Store; 9] = [
            &self.warehouse,
            &self.district,
            &self.customer,
            &self.history,
            &self.order,
            &self.new_order,
            &self.line,
            &self.item,
            &self.stock,
        ];
        stores
            .into_iter()
            .try_for_each(|store| store.check_indexes(txn))
    }
}

#[cfg(test)]
mod tests {
    //! Each condition is broken by hand and found.

    use std::sync::Arc;

    use logstead_engine::{
        Engine, EngineOptions, Isolation, LogHome, MemoryHome, RowBuilder, WorkerId,
    };
    use logstead_env::Env;

    use super::super::columns::stock;
    use super::*;
    use crate::access::{key, rewrite};
    use crate::options::Tpcc as Scale;
    use crate::testing::add;

    const SCALE: Scale = Scale {
        warehouses: 1,
        items: 100,
        customers: 30,
    };

    /// Numbers of the conditions that do not hold when `break_it` has changed something.
    fn broken(break_it: impl AsyncFnOnce(&Tpcc, &mut Txn, &mut RowBuilder)) -> Vec<String> {
        crate::testing::broken(|engine| Tpcc::new(engine, SCALE, 1), break_it)
            .into_iter()
            .map(|name| name.split(':').next().unwrap_or_default().to_owned())
            .collect()
    }

    #[test]
    fn nothing_broken_nothing_found() {
        // The stock's counters are in no condition.
        let found = broken(async |tpcc, txn, builder| {
            add(&tpcc.stock, txn, builder, &key::<2, 8>([1, 1]), stock::YTD).await;
        });
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn money_that_appears_is_found() {
        let found = broken(async |tpcc, txn, builder| {
            let key = key::<1, 4>([1]);
            add(&tpcc.warehouse, txn, builder, &key, warehouse::YTD).await;
        });
        assert_eq!(found, ["condition 1", "condition 8"]);
        let found = broken(async |tpcc, txn, builder| {
            let key = key::<2, 8>([1, 3]);
            add(&tpcc.district, txn, builder, &key, district::YTD).await;
        });
        assert_eq!(found, ["condition 1", "condition 9"]);
        let found = broken(async |tpcc, txn, builder| {
            let key = key::<3, 12>([1, 1, 1]);
            add(&tpcc.customer, txn, builder, &key, customer::BALANCE).await;
        });
        assert_eq!(found, ["condition 10", "condition 12"]);
        let found = broken(async |tpcc, txn, builder| {
            let key = key::<3, 12>([1, 1, 1]);
            add(&tpcc.customer, txn, builder, &key, customer::YTD_PAYMENT).await;
        });
        assert_eq!(found, ["condition 12"]);
    }

    #[test]
    fn a_lost_order_number_is_found() {
        let found = broken(async |tpcc, txn, builder| {
            tpcc.district
                .must_update(txn, &key::<2, 8>([1, 1]), builder, |row, builder| {
                    let next = id(row, district::NEXT_ORDER) + 1;
                    rewrite(row, builder, &[(district::NEXT_ORDER, &next.to_be_bytes())]);
                })
                .await
                .expect("updates");
        });
        assert_eq!(found, ["condition 2"]);
    }

    #[test]
    fn a_lost_line_is_found() {
        let found = broken(async |tpcc, txn, _| {
            let key = key::<4, 16>([1, 1, 1, 1]);
            assert!(tpcc.line.delete(txn, &key).await.expect("deletes"));
        });
        assert_eq!(found, ["condition 4", "condition 6"]);
    }

    #[test]
    fn a_lost_new_order_is_found() {
        let found = broken(async |tpcc, txn, _| {
            let mut all = Vec::new();
            tpcc.new_order
                .scan(txn, |row| all.push((id(row, 0), id(row, 1), id(row, 2))));
            all.sort_unstable();
            // One with others before and after it.
            let middle = all
                .windows(3)
                .find(|w| w.iter().all(|n| n.1 == w[0].1))
                .map(|w| w[1])
                .expect("three new orders in a district");
            let key = key::<3, 12>([middle.0, middle.1, middle.2]);
            assert!(tpcc.new_order.delete(txn, &key).await.expect("deletes"));
        });
        assert_eq!(found, ["condition 3", "condition 5", "condition 11"]);
    }

    #[test]
    fn a_line_that_is_half_delivered_is_found() {
        let found = broken(async |tpcc, txn, builder| {
            let order = {
                let mut found = None;
                tpcc.new_order.scan(txn, |row| {
                    found = Some([id(row, 0), id(row, 1), id(row, 2)])
                });
                found.expect("some order is new")
            };
            let key = key::<4, 16>([order[0], order[1], order[2], 1]);
            tpcc.line
                .must_update(txn, &key, builder, |row, builder| {
                    rewrite(row, builder, &[(line::DELIVERED, &[0; 8])]);
                })
                .await
                .expect("updates");
        });
        assert_eq!(found, ["condition 7", "condition 10", "condition 12"]);
    }

    #[test]
    fn a_lost_payment_is_found() {
        let found = broken(async |tpcc, txn, _| {
            assert!(
                tpcc.history
                    .delete(txn, &0_u64.to_be_bytes())
                    .await
                    .expect("deletes")
            );
        });
        assert_eq!(found, ["condition 8", "condition 9", "condition 10"]);
    }

    #[test]
    fn a_picture_of_nothing_is_not_consistent() {
        let home = Arc::new(MemoryHome::new(4 << 20));
        let (engine, _) = Engine::open(EngineOptions::default(), LogHome::from(home), Env::real())
            .expect("opens");
        let tpcc = Tpcc::new(&engine, SCALE, 1);
        let worker = engine.worker(WorkerId(0));
        let mut txn = worker.begin(Isolation::RepeatableRead);
        let checks = tpcc.check_consistency(&mut txn);
        assert!(checks.iter().any(|check| check.result.is_err()));
    }
}
