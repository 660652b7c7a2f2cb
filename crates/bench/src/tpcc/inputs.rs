//! What transactions are given: the specification's distributions (2.1.5, 2.1.6 and the first part of each profile).

use super::DISTRICTS;
use crate::options::Tpcc as Scale;
use crate::random::Rng;

pub(super) const NEW_ORDER: usize = 0;
pub(super) const PAYMENT: usize = 1;
pub(super) const ORDER_STATUS: usize = 2;
pub(super) const DELIVERY: usize = 3;
pub(super) const STOCK_LEVEL: usize = 4;
/// Of 100 transactions; what is left is Stock-Level.
const MIX: [u64; 4] = [45, 43, 4, 4];

/// Most lines of an order.
pub(super) const LINES_MAX: usize = 15;
/// Last names there are.
const NAMES: u32 = 1000;
const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];

/// The last name with this number, appended to `out`.
pub(super) fn last_name(number: u32, out: &mut Vec<u8>) {
    for digit in [number / 100, number / 10 % 10, number % 10] {
        out.extend_from_slice(SYLLABLES[digit as usize].as_bytes());
    }
}

/// The C of each NURand, drawn once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constants {
    /// For last names while loading, and while running.
    last_load: u32,
    last_run: u32,
    customer: u32,
    item: u32,
}

impl Constants {
    pub(super) fn new(seed: u64) -> Constants {
        let mut rng = Rng::of_part(seed, u64::MAX);
        let last_load = rng.between(0, 255);
        // 2.1.6.1: the two must differ by 65 to 119, but not by 96 or 112.
        let last_run = loop {
            let drawn = rng.between(0, 255);
            let delta = drawn.abs_diff(last_load);
            if (65..=119).contains(&delta) && delta != 96 && delta != 112 {
                break drawn;
            }
        };
        Constants {
            last_load,
            last_run,
            customer: rng.between(0, 1023),
            item: rng.between(0, 8191),
        }
    }

    /// How many last names the customers of a district have between them.
    pub(super) fn names(scale: &Scale) -> u32 {
        scale.customers.min(NAMES)
    }

    /// The last name of a customer beyond the first thousand.
    pub(super) fn name_to_load(&self, scale: &Scale, rng: &mut Rng) -> u32 {
        nurand(255, self.last_load, 0, Self::names(scale) - 1, rng)
    }

    fn name(&self, scale: &Scale, rng: &mut Rng) -> u32 {
        nurand(255, self.last_run, 0, Self::names(scale) - 1, rng)
    }

    fn customer(&self, scale: &Scale, rng: &mut Rng) -> u32 {
        nurand(1023, self.customer, 1, scale.customers, rng)
    }

    fn item(&self, scale: &Scale, rng: &mut Rng) -> u32 {
        nurand(8191, self.item, 1, scale.items, rng)
    }
}

/// 2.1.6: numbers from `low` to `high`, some more often than others.
fn nurand(a: u32, c: u32, low: u32, high: u32, rng: &mut Rng) -> u32 {
    let (first, second) = (rng.between(0, a), rng.between(low, high));
    ((first | second) + c) % (high - low + 1) + low
}

/// A customer, by number or by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CustomerSelector {
    Id(u32),
    Name(u32),
}

/// A line of a new order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    pub(super) item: u32,
    pub(super) supplier: u32,
    pub(super) quantity: u32,
}

/// The inputs of one transaction.
pub(super) struct Input {
    pub(super) kind: usize,
    pub(super) warehouse: u32,
    pub(super) district: u32,
    pub(super) customer: u32,
    pub(super) lines: [Line; LINES_MAX],
    pub(super) line_count: usize,
    pub(super) who: CustomerSelector,
    pub(super) customer_warehouse: u32,
    pub(super) customer_district: u32,
    pub(super) amount: i64,
    pub(super) carrier: u32,
    pub(super) threshold: i64,
}

impl Default for Input {
    fn default() -> Input {
        Input {
            kind: NEW_ORDER,
            warehouse: 1,
            district: 1,
            customer: 1,
            lines: [Line::default(); LINES_MAX],
            line_count: 0,
            who: CustomerSelector::Id(1),
            customer_warehouse: 1,
            customer_district: 1,
            amount: 0,
            carrier: 1,
            threshold: 10,
        }
    }
}

impl Input {
    /// Draws the next transaction of a session at home in `home`; gives its kind.
    pub(super) fn draw(
        &mut self,
        home: u32,
        scale: &Scale,
        constants: &Constants,
        rng: &mut Rng,
    ) -> usize {
        let mut dice = rng.below(100);
        self.kind = STOCK_LEVEL;
        for (kind, share) in MIX.into_iter().enumerate() {
            match dice.checked_sub(share) {
                Some(rest) => dice = rest,
                None => {
                    self.kind = kind;
                    break;
                }
            }
        }
        self.warehouse = home;
        self.district = rng.between(1, DISTRICTS);
        match self.kind {
            NEW_ORDER => self.draw_new_order(scale, constants, rng),
            PAYMENT => {
                (self.customer_warehouse, self.customer_district) =
                    if scale.warehouses > 1 && rng.percent(15) {
                        (
                            another(home, scale.warehouses, rng),
                            rng.between(1, DISTRICTS),
                        )
                    } else {
                        (home, self.district)
                    };
                self.draw_who(scale, constants, rng);
                self.amount = i64::from(rng.between(100, 500_000));
            }
            ORDER_STATUS => self.draw_who(scale, constants, rng),
            DELIVERY => self.carrier = rng.between(1, 10),
            _ => self.threshold = i64::from(rng.between(10, 20)),
        }
        self.kind
    }

    fn draw_new_order(&mut self, scale: &Scale, constants: &Constants, rng: &mut Rng) {
        self.customer = constants.customer(scale, rng);
        self.line_count = rng.between(5, LINES_MAX as u32) as usize;
        for line in &mut self.lines[..self.line_count] {
            line.item = constants.item(scale, rng);
            line.supplier = if scale.warehouses > 1 && rng.percent(1) {
                another(self.warehouse, scale.warehouses, rng)
            } else {
                self.warehouse
            };
            line.quantity = rng.between(1, 10);
        }
        // 1 % of the orders end with an item that nobody has, and are rolled back.
        if rng.percent(1) {
            self.lines[self.line_count - 1].item = scale.items + 1;
        }
    }

    fn draw_who(&mut self, scale: &Scale, constants: &Constants, rng: &mut Rng) {
        self.who = if rng.percent(60) {
            CustomerSelector::Name(constants.name(scale, rng))
        } else {
            CustomerSelector::Id(constants.customer(scale, rng))
        };
    }
}

/// A warehouse other than `home`.
fn another(home: u32, warehouses: u32, rng: &mut Rng) -> u32 {
    let drawn = rng.between(1, warehouses - 1);
    if drawn >= home { drawn + 1 } else { drawn }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Scale = Scale {
        warehouses: 4,
        items: 1000,
        customers: 300,
    };

    #[test]
    fn names_are_syllables() {
        let mut name = Vec::new();
        last_name(371, &mut name);
        assert_eq!(name, b"PRICALLYOUGHT");
    }

    #[test]
    fn inputs_have_the_specified_shares() {
        let constants = Constants::new(1);
        let mut rng = Rng::new(1);
        let mut input = Input::default();
        let (mut kinds, mut remote, mut by_name, mut rolled_back, mut foreign) =
            ([0; 5], 0, 0, 0, 0);
        let mut lines = 0;
        const DRAWS: u32 = 100_000;
        for _ in 0..DRAWS {
            let kind = input.draw(2, &SCALE, &constants, &mut rng);
            kinds[kind] += 1;
            match kind {
                NEW_ORDER => {
                    let drawn = &input.lines[..input.line_count];
                    assert!((5..=15).contains(&drawn.len()));
                    lines += drawn.len();
                    foreign += drawn.iter().filter(|l| l.supplier != 2).count();
                    assert!(drawn.iter().all(|l| (1..=4).contains(&l.supplier)));
                    assert!(drawn.iter().all(|l| (1..=1001).contains(&l.item)));
                    rolled_back += u32::from(drawn[drawn.len() - 1].item == 1001);
                    assert!((1..=300).contains(&input.customer));
                }
                PAYMENT => {
                    remote += u32::from(input.customer_warehouse != 2);
                    by_name += u32::from(matches!(input.who, CustomerSelector::Name(_)));
                    assert!((1..=4).contains(&input.customer_warehouse));
                }
                _ => {}
            }
            if let CustomerSelector::Name(name) = input.who {
                assert!(name < 300);
            }
        }
        let near = |count: u32, of: u32, percent: f64| {
            let found = f64::from(count) * 100.0 / f64::from(of);
            assert!(
                (found - percent).abs() < 1.0,
                "{found} % instead of {percent}"
            );
        };
        for (kind, percent) in [45.0, 43.0, 4.0, 4.0, 4.0].into_iter().enumerate() {
            near(kinds[kind], DRAWS, percent);
        }
        near(remote, kinds[PAYMENT], 15.0);
        near(by_name, kinds[PAYMENT], 60.0);
        assert!((300..600).contains(&rolled_back), "{rolled_back}");
        let foreign = foreign as f64 / lines as f64;
        assert!((0.008..0.012).contains(&foreign), "{foreign}");
    }

    #[test]
    fn another_warehouse_is_never_home() {
        let mut rng = Rng::new(1);
        let mut seen = [0; 5];
        for _ in 0..1000 {
            seen[another(2, 4, &mut rng) as usize] += 1;
        }
        assert_eq!((seen[0], seen[2]), (0, 0));
        assert!(seen[1] > 0 && seen[3] > 0 && seen[4] > 0);
    }

    #[test]
    fn constants_differ_as_specified() {
        for seed in 0..100 {
            let constants = Constants::new(seed);
            let delta = constants.last_run.abs_diff(constants.last_load);
            assert!((65..=119).contains(&delta) && delta != 96 && delta != 112);
        }
    }
}
