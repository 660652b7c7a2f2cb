//! The order of rows whose sort keys are equal.
//!
//! SQL leaves it open, and PostgreSQL's quicksort, which is not stable, gives one that follows from the rows' first
//! order
//! alone. Programs' tests come to rely on it unknowingly: few rows are sorted here by the same steps
//! (`sort_template.h`),
//! so that equal ones come out as there.

use std::cmp::Ordering;

/// Up to so many rows are sorted like that: with more of them a faster way is taken.
pub(super) const FEW_ROWS: usize = 64;

/// Sorts as PostgreSQL does.
pub(super) fn sort(rows: &mut [usize], compare: &impl Fn(usize, usize) -> Ordering) {
    let n = rows.len();
    let sorted = |pair: &[usize]| compare(pair[0], pair[1]) != Ordering::Greater;
    if rows.windows(2).all(sorted) {
        return;
    }
    if n < 7 {
        for end in 1..n {
            let mut at = end;
            while at > 0 && compare(rows[at - 1], rows[at]) == Ordering::Greater {
                rows.swap(at - 1, at);
                at -= 1;
            }
        }
        return;
    }
    let mut middle = n / 2;
    if n > 7 {
        let (mut low, mut high) = (0, n - 1);
        if n > 40 {
            let d = n / 8;
            low = median(rows, [low, low + d, low + 2 * d], compare);
            middle = median(rows, [middle - d, middle, middle + d], compare);
            high = median(rows, [high - 2 * d, high - d, high], compare);
        }
        middle = median(rows, [low, middle, high], compare);
    }
    rows.swap(0, middle);
    // Equal ones gather at both ends: in front of `a` and behind `d`; `c` and `d` count what is in front of them.
    let (mut a, mut b, mut c, mut d) = (1, 1, n, n);
    loop {
        while b < c {
            match compare(rows[b], rows[0]) {
                Ordering::Greater => break,
                Ordering::Equal => {
                    rows.swap(a, b);
                    a += 1;
                }
                Ordering::Less => {}
            }
            b += 1;
        }
        while b < c {
            match compare(rows[c - 1], rows[0]) {
                Ordering::Less => break,
                Ordering::Equal => {
                    rows.swap(c - 1, d - 1);
                    d -= 1;
                }
                Ordering::Greater => {}
            }
            c -= 1;
        }
        if b >= c {
            break;
        }
        rows.swap(b, c - 1);
        b += 1;
        c -= 1;
    }
    exchange(rows, 0, b, a.min(b - a));
    let (less, greater) = (b - a, d - c);
    exchange(rows, b, n, greater.min(n - d));
    if less > 1 {
        sort(&mut rows[..less], compare);
    }
    if greater > 1 {
        sort(&mut rows[n - greater..], compare);
    }
}

/// Exchanges `count` rows from `from` on with those in front of `end`.
fn exchange(rows: &mut [usize], from: usize, end: usize, count: usize) {
    for at in 0..count {
        rows.swap(from + at, end - count + at);
    }
}

/// Which of three places has the middle row.
fn median(
    rows: &[usize],
    [a, b, c]: [usize; 3],
    compare: &impl Fn(usize, usize) -> Ordering,
) -> usize {
    let order = |x: usize, y: usize| compare(rows[x], rows[y]);
    match order(a, b) {
        Ordering::Less if order(b, c) == Ordering::Less => b,
        Ordering::Less if order(a, c) == Ordering::Less => c,
        Ordering::Less => a,
        _ if order(b, c) == Ordering::Greater => b,
        _ if order(a, c) == Ordering::Less => a,
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_whatever_their_order() {
        let mut seed = 1_u64;
        for n in 0..=FEW_ROWS {
            for kinds in [1, 2, 5, 1000] {
                let keys: Vec<u64> = (0..n)
                    .map(|_| {
                        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        (seed >> 33) % kinds
                    })
                    .collect();
                let mut rows: Vec<usize> = (0..n).collect();
                sort(&mut rows, &|a, b| keys[a].cmp(&keys[b]));
                assert!(rows.windows(2).all(|pair| keys[pair[0]] <= keys[pair[1]]));
                let mut all = rows.clone();
                all.sort_unstable();
                assert!(all.into_iter().eq(0..n));
            }
        }
    }

    /// `SELECT four, unique1 FROM tenk1 WHERE unique1 < 10 ORDER BY four` of PostgreSQL's regression database, whose
    /// rows
    /// come as 4, 2, 1, 6, ...
    #[test]
    fn equal_rows_come_as_in_postgresql() {
        let unique = [4, 2, 1, 6, 9, 8, 5, 3, 7, 0];
        let mut rows: Vec<usize> = (0..unique.len()).collect();
        sort(&mut rows, &|a, b| (unique[a] % 4).cmp(&(unique[b] % 4)));
        let found: Vec<i32> = rows.into_iter().map(|row| unique[row]).collect();
        assert_eq!(found, [0, 8, 4, 5, 9, 1, 6, 2, 3, 7]);
    }
}
