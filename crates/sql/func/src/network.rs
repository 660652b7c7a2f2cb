//! Functions and operators of `inet`, `cidr`, `macaddr` and `macaddr8`.

use super::arithmetic::bad_args;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, Inet, network};
use logstead_types::SqlState;

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn out_of_range() -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "result is out of range",
    )
}

fn one(a: &[Datum]) -> Result<&Inet> {
    match a {
        [Datum::Inet(v), ..] => Ok(v),
        _ => Err(bad_args(a)),
    }
}

fn two(a: &[Datum]) -> Result<(&Inet, &Inet)> {
    match a {
        [Datum::Inet(x), Datum::Inet(y)] => Ok((&**x, &**y)),
        _ => Err(bad_args(a)),
    }
}

fn inet(v: &Inet, address: u128, bits: u8) -> Result<Datum> {
    Ok(Datum::inet(Inet {
        cidr: false,
        address,
        bits,
        ..*v
    }))
}

fn text(write: impl FnOnce(&mut Vec<u8>)) -> Result<Datum> {
    let mut out = Vec::new();
    write(&mut out);
    Ok(Datum::text(String::from_utf8_lossy(&out).into_owned()))
}

/// The second network has the first, and the first has at least `more` bits more.
fn within(inner: &Inet, outer: &Inet, more: u8) -> Datum {
    let smaller = inner.bits >= outer.bits.saturating_add(more);
    Datum::Bool(smaller && inner.same_prefix(outer, outer.bits))
}

/// `<<`
pub(super) fn sub(a: &[Datum]) -> Result<Datum> {
    two(a).map(|(x, y)| within(x, y, 1))
}

/// `<<=`
pub(super) fn sub_equal(a: &[Datum]) -> Result<Datum> {
    two(a).map(|(x, y)| within(x, y, 0))
}

/// `>>`
pub(super) fn sup(a: &[Datum]) -> Result<Datum> {
    two(a).map(|(x, y)| within(y, x, 1))
}

/// `>>=`
pub(super) fn sup_equal(a: &[Datum]) -> Result<Datum> {
    two(a).map(|(x, y)| within(y, x, 0))
}

/// `&&`
pub(super) fn overlap(a: &[Datum]) -> Result<Datum> {
    two(a).map(|(x, y)| Datum::Bool(x.same_prefix(y, x.bits.min(y.bits))))
}

/// `~`
pub(super) fn not(a: &[Datum]) -> Result<Datum> {
    let v = one(a)?;
    inet(v, !v.address & v.address_max(), v.bits)
}

fn combined(a: &[Datum], word: &str, f: fn(u128, u128) -> u128) -> Result<Datum> {
    let (x, y) = two(a)?;
    if x.v6 != y.v6 {
        return Err(invalid(format!(
            "cannot {word} inet values of different sizes"
        )));
    }
    inet(x, f(x.address, y.address), x.bits.max(y.bits))
}

/// `&`
pub(super) fn and(a: &[Datum]) -> Result<Datum> {
    combined(a, "AND", |x, y| x & y)
}

/// `|`
pub(super) fn or(a: &[Datum]) -> Result<Datum> {
    combined(a, "OR", |x, y| x | y)
}

fn moved(v: &Inet, by: i128) -> Result<Datum> {
    let by_size = by.unsigned_abs();
    let address = match by < 0 {
        true => v.address.checked_sub(by_size),
        false => v.address.checked_add(by_size),
    };
    let address = address
        .filter(|address| *address <= v.address_max())
        .ok_or_else(out_of_range)?;
    inet(v, address, v.bits)
}

/// `inet + bigint`, `bigint + inet`
pub(super) fn plus(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Inet(v), Datum::Int8(n)] | [Datum::Int8(n), Datum::Inet(v)] => {
            moved(v, i128::from(*n))
        }
        _ => Err(bad_args(a)),
    }
}

/// `inet - bigint`, `inet - inet`
pub(super) fn minus(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Inet(v), Datum::Int8(n)] => moved(v, -i128::from(*n)),
        [Datum::Inet(x), Datum::Inet(y)] => {
            if x.v6 != y.v6 {
                return Err(invalid("cannot subtract inet values of different sizes"));
            }
            let size = i128::try_from(x.address.abs_diff(y.address)).map_err(|_| out_of_range())?;
            let difference = if x.address < y.address { -size } else { size };
            i64::try_from(difference)
                .map(Datum::Int8)
                .map_err(|_| out_of_range())
        }
        _ => Err(bad_args(a)),
    }
}

/// `family`
pub(super) fn family(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(if one(a)?.v6 { 6 } else { 4 }))
}

/// `masklen`
pub(super) fn masklen(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(i32::from(one(a)?.bits)))
}

/// `broadcast`
pub(super) fn broadcast(a: &[Datum]) -> Result<Datum> {
    let v = one(a)?;
    let hosts = v.address_max() & !v.mask(v.bits);
    inet(v, v.address | hosts, v.bits)
}

/// `network`, and the cast of `inet` to `cidr`
pub(super) fn to_cidr(a: &[Datum]) -> Result<Datum> {
    let v = one(a)?;
    Ok(Datum::inet(v.to_cidr(v.bits)))
}

/// `netmask`
pub(super) fn netmask(a: &[Datum]) -> Result<Datum> {
    let v = one(a)?;
    inet(v, v.mask(v.bits), v.width())
}

/// `hostmask`
pub(super) fn hostmask(a: &[Datum]) -> Result<Datum> {
    let v = one(a)?;
    inet(v, v.address_max() & !v.mask(v.bits), v.width())
}

/// `host`
pub(super) fn host(a: &[Datum]) -> Result<Datum> {
    let v = one(a)?;
    text(|out| v.write_address(out))
}

/// `text`: the mask is always shown
pub(super) fn show(a: &[Datum]) -> Result<Datum> {
    let v = one(a)?;
    text(|out| v.write(true, out))
}

/// `abbrev(inet)`
pub(super) fn abbrev(a: &[Datum]) -> Result<Datum> {
    let v = one(a)?;
    text(|out| v.write(false, out))
}

/// `abbrev(cidr)`
pub(super) fn abbrev_cidr(a: &[Datum]) -> Result<Datum> {
    let v = one(a)?;
    text(|out| v.write_abbreviated(out))
}

fn asked_bits(a: &[Datum]) -> Result<(&Inet, u8)> {
    let [Datum::Inet(v), Datum::Int4(asked)] = a else {
        return Err(bad_args(a));
    };
    let v = &**v;
    if *asked == -1 {
        return Ok((v, v.width()));
    }
    u8::try_from(*asked)
        .ok()
        .filter(|bits| *bits <= v.width())
        .map(|bits| (v, bits))
        .ok_or_else(|| invalid(format!("invalid mask length: {asked}")))
}

/// `set_masklen(inet, integer)`
pub(super) fn set_masklen(a: &[Datum]) -> Result<Datum> {
    asked_bits(a).and_then(|(v, bits)| inet(v, v.address, bits))
}

/// `set_masklen(cidr, integer)`
pub(super) fn set_masklen_cidr(a: &[Datum]) -> Result<Datum> {
    asked_bits(a).map(|(v, bits)| Datum::inet(v.to_cidr(bits)))
}

/// `inet_same_family`
pub(super) fn same_family(a: &[Datum]) -> Result<Datum> {
    two(a).map(|(x, y)| Datum::Bool(x.v6 == y.v6))
}

/// `inet_merge`: the smallest network that has both
pub(super) fn merge(a: &[Datum]) -> Result<Datum> {
    let (x, y) = two(a)?;
    if x.v6 != y.v6 {
        return Err(invalid("cannot merge addresses from different families"));
    }
    let mut bits = x.bits.min(y.bits);
    while !x.same_prefix(y, bits) {
        bits -= 1;
    }
    Ok(Datum::inet(x.to_cidr(bits)))
}

/// The lower of two networks.
pub(super) fn smaller(a: &[Datum]) -> Result<Datum> {
    two(a).map(|(x, y)| Datum::inet(if x.compare(y).is_lt() { *x } else { *y }))
}

/// The higher of two networks.
pub(super) fn larger(a: &[Datum]) -> Result<Datum> {
    two(a).map(|(x, y)| Datum::inet(if x.compare(y).is_gt() { *x } else { *y }))
}

/// The three-way comparison of two values.
pub(super) fn cmp(a: &[Datum]) -> Result<Datum> {
    match a {
        [x, y] => Ok(Datum::Int4(logstead_sql_types::value::compare(x, y) as i32)),
        _ => Err(bad_args(a)),
    }
}

/// `~` of a hardware address
pub(super) fn mac_not(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Mac(v)] => Ok(Datum::Mac(v.map(|b| !b))),
        [Datum::Mac8(v)] => Ok(Datum::Mac8(v.map(|b| !b))),
        _ => Err(bad_args(a)),
    }
}

fn mac_combined(a: &[Datum], f: fn(u8, u8) -> u8) -> Result<Datum> {
    match a {
        [Datum::Mac(x), Datum::Mac(y)] => Ok(Datum::Mac(std::array::from_fn(|i| f(x[i], y[i])))),
        [Datum::Mac8(x), Datum::Mac8(y)] => Ok(Datum::Mac8(std::array::from_fn(|i| f(x[i], y[i])))),
        _ => Err(bad_args(a)),
    }
}

/// `&` of hardware addresses
pub(super) fn mac_and(a: &[Datum]) -> Result<Datum> {
    mac_combined(a, |x, y| x & y)
}

/// `|` of hardware addresses
pub(super) fn mac_or(a: &[Datum]) -> Result<Datum> {
    mac_combined(a, |x, y| x | y)
}

/// `trunc`: the maker's three bytes
pub(super) fn mac_trunc(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Mac([x, y, z, ..])] => Ok(Datum::Mac([*x, *y, *z, 0, 0, 0])),
        [Datum::Mac8([x, y, z, ..])] => Ok(Datum::Mac8([*x, *y, *z, 0, 0, 0, 0, 0])),
        _ => Err(bad_args(a)),
    }
}

/// `macaddr8_set7bit`
pub(super) fn mac8_set7bit(a: &[Datum]) -> Result<Datum> {
    let [Datum::Mac8(v)] = a else {
        return Err(bad_args(a));
    };
    let mut v = *v;
    v[0] |= 2;
    Ok(Datum::Mac8(v))
}

/// macaddr to macaddr8
pub(super) fn mac_to_mac8(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Mac(v)] => Ok(Datum::Mac8(network::widen(*v))),
        _ => Err(bad_args(a)),
    }
}

/// macaddr8 to macaddr
pub(super) fn mac8_to_mac(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Mac8([a, b, c, 0xff, 0xfe, d, e, f])] => Ok(Datum::Mac([*a, *b, *c, *d, *e, *f])),
        [Datum::Mac8(_)] => Err(SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "macaddr8 data out of range to convert to macaddr",
        )
        .hint(
            "Only addresses that have FF and FE as values in the 4th and 5th bytes from the left, for example \
             xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from macaddr8 to macaddr.",
        )),
        _ => Err(bad_args(a)),
    }
}
