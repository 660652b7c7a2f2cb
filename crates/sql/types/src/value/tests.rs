//! Tests of the forms of values: keys order as values do, stored and wire forms read back, damaged bytes are errors.

use super::numeric::Numeric;
use super::text_io::{OutputStyle, input, message_text as printed};
use super::*;
use crate::TypeId;
use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hasher};

/// A small deterministic generator: the seed is in the test, a failure repeats.
struct Seeded(u64);

impl Seeded {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn small(&mut self) -> i64 {
        let v = self.next() as i64;
        match self.below(4) {
            0 => v,
            1 => v % 3,
            2 => v >> 40,
            _ => v % 1000,
        }
    }

    fn numeric(&mut self) -> Numeric {
        match self.below(12) {
            0 => Numeric::NaN,
            1 => Numeric::Infinity,
            2 => Numeric::NegInfinity,
            3 => Numeric::parse(&format!("{}e{}", self.small(), self.below(60) as i64 - 20))
                .expect("numeric"),
            4 => {
                let digits: String = (0..=self.below(60))
                    .map(|_| char::from(b'0' + self.below(10) as u8))
                    .collect();
                Numeric::parse(&format!("-1{digits}.{}", self.below(100))).expect("numeric")
            }
            _ => Numeric::new(i128::from(self.small()), self.below(6) as u16),
        }
    }

    fn text(&mut self) -> String {
        let letters = ['a', 'b', ' ', '\0', '\u{1}', 'ä', '\u{ffff}', 'z'];
        (0..self.below(5))
            .map(|_| letters[self.below(8) as usize])
            .collect()
    }

    fn value(&mut self, ty: TypeId) -> Datum {
        let v = self.small();
        match ty {
            oid::BOOL => Datum::Bool(v & 1 == 1),
            oid::INT2 => Datum::Int2(v as i16),
            oid::INT4 => Datum::Int4(v as i32),
            oid::INT8 => Datum::Int8(v),
            oid::FLOAT4 => Datum::Float4(f32::from_bits(v as u32)),
            oid::FLOAT8 => match self.below(6) {
                0 => Datum::Float8(-0.0),
                1 => Datum::Float8(0.0),
                2 => Datum::Float8(f64::NAN),
                3 => Datum::Float8(v as f64),
                _ => Datum::Float8(f64::from_bits(self.next())),
            },
            oid::NUMERIC => Datum::numeric(self.numeric()),
            oid::TEXT => Datum::text(self.text()),
            oid::BPCHAR => Datum::text(self.text()),
            oid::BYTEA => Datum::Bytea(self.text().into_bytes().into()),
            oid::DATE => Datum::Date(v as i32),
            oid::TIME => Datum::Time(v.rem_euclid(calendar::DAY)),
            oid::TIMESTAMP => Datum::Timestamp(v),
            oid::TIMESTAMPTZ => Datum::TimestampTz(v),
            oid::UUID => Datum::Uuid(Box::new((u128::from(self.next()) << 3).to_be_bytes())),
            oid::OID => Datum::Oid(v as u32),
            oid::CHAR => Datum::Char(v as u8),
            oid::INET | oid::CIDR => {
                let v6 = self.below(2) == 1;
                let width = if v6 { 16 } else { 4 };
                // Few addresses, so that networks lie in each other.
                let low = [0, 1, 64, 255][self.below(4) as usize];
                let bytes: Vec<u8> = (0..width).map(|i| (u8::from(i > 1)) * low).collect();
                let bits = self.below(u64::from(width as u8) * 8 + 1) as u8;
                let inet = Inet::of_bytes(&bytes, bits).expect("inet");
                Datum::inet(if ty == oid::CIDR {
                    inet.to_cidr(bits)
                } else {
                    inet
                })
            }
            oid::MACADDR => Datum::Mac([v as u8, 1, 2, 3, (v >> 8) as u8, 0]),
            oid::MACADDR8 => Datum::Mac8(v.to_le_bytes()),
            oid::MONEY => Datum::Money(v),
            oid::PG_LSN => Datum::Lsn(v as u64),
            oid::TIMETZ => Datum::TimeTz(TimeTz {
                micros: v.rem_euclid(24) * calendar::HOUR,
                west: (self.below(9) as i32 - 4) * 3600,
            }),
            oid::BIT | oid::VARBIT => {
                let len = self.below(20) as u32;
                let bytes = vec![[0, 1, 0x80, 0xff][self.below(4) as usize]; 3];
                Datum::Bits(Bits::new(len, bytes))
            }
            oid::INTERVAL => Datum::Interval(Box::new(Interval {
                months: (v % 3) as i32,
                days: (v % 40) as i32,
                micros: v / 1000,
            })),
            _ => {
                let n = self.below(4) * (1 + self.below(2));
                let items: Vec<Datum> = (0..n)
                    .map(|_| {
                        if self.below(5) == 0 {
                            Datum::Null
                        } else {
                            self.value(oid::INT4)
                        }
                    })
                    .collect();
                // Sometimes pairs, sometimes counted from elsewhere.
                let lower = 1 - self.below(2) as i32;
                let dim = |len: u64| array::Dim {
                    lower,
                    len: len as i32,
                };
                let dims = match self.below(2) {
                    0 if n.is_multiple_of(2) => vec![dim(n / 2), dim(2)],
                    _ => vec![dim(n)],
                };
                let made = Array::shaped(oid::INT4, &dims, items);
                Datum::Array(std::sync::Arc::new(made.expect("dimensions")))
            }
        }
    }
}

const TYPES: [TypeId; 28] = [
    oid::BOOL,
    oid::INT2,
    oid::INT4,
    oid::INT8,
    oid::FLOAT4,
    oid::FLOAT8,
    oid::NUMERIC,
    oid::TEXT,
    oid::BPCHAR,
    oid::BYTEA,
    oid::DATE,
    oid::TIME,
    oid::TIMESTAMP,
    oid::TIMESTAMPTZ,
    oid::UUID,
    oid::OID,
    oid::CHAR,
    oid::INTERVAL,
    oid::INT4_ARRAY,
    oid::INET,
    oid::CIDR,
    oid::MACADDR,
    oid::MACADDR8,
    oid::MONEY,
    oid::PG_LSN,
    oid::TIMETZ,
    oid::BIT,
    oid::VARBIT,
];

#[test]
fn keys_order_as_values_do() {
    let mut r = Seeded(0x5eed);
    for ty in TYPES {
        for _ in 0..1500 {
            let (a, b) = (r.value(ty), r.value(ty));
            let tails = (r.value(oid::INT4), r.value(oid::INT4));
            let desc = r.below(2) == 1;
            let key = |d: &Datum, tail: &Datum| {
                let mut k = Vec::new();
                key::encode_key(ty, d, desc, false, &mut k);
                key::encode_key(oid::INT4, tail, false, false, &mut k);
                k
            };
            let first = compare_as(ty, &a, &b);
            let first = if desc { first.reverse() } else { first };
            let want = first.then(compare(&tails.0, &tails.1));
            assert_eq!(
                key(&a, &tails.0).cmp(&key(&b, &tails.1)),
                want,
                "{ty} {a:?} {b:?} desc {desc}"
            );
        }
    }
}

#[test]
fn stored_form_reads_back_and_makes_the_same_keys() {
    let mut r = Seeded(77);
    for ty in TYPES {
        for _ in 0..500 {
            let d = r.value(ty);
            let mut bytes = Vec::new();
            stored::encode(&d, &mut bytes);
            let back = stored::decode(ty, &bytes).expect("decode");
            assert_eq!(compare(&d, &back), Ordering::Equal, "{ty} {d:?}");
            let (mut k, mut l) = (Vec::new(), Vec::new());
            key::encode_key(ty, &d, true, true, &mut k);
            key::encode_key_stored(ty, Some(&bytes), true, true, &mut l).expect("key");
            assert_eq!(k, l);
            let style = OutputStyle::UTC;
            let mut out = Vec::new();
            stored::stored_text_output(SqlType::of(ty), &bytes, &style, &mut out).expect("text");
            assert_eq!(
                String::from_utf8_lossy(&out),
                printed(&d, SqlType::of(ty), &style)
            );
            let (mut x, mut y) = (Vec::new(), Vec::new());
            binary_io::binary_output(&d, SqlType::of(ty), &mut x).expect("short");
            stored::stored_binary_output(SqlType::of(ty), &bytes, &mut y).expect("binary");
            assert_eq!(x, y);
        }
    }
}

/// Types whose values are written as texts in the test below.
const WRITTEN: [(TypeId, &[&str]); 9] = [
    (oid::INT4RANGE, &["empty", "[1,5)", "(,7)", "[3,)", "(,)"]),
    (oid::NUMRANGE, &["[1.0,2.50]", "(,-3e9)", "empty"]),
    (oid::TSRANGE, &["[2020-01-01,2021-01-01)"]),
    (
        oid::INT4MULTIRANGE,
        &["{}", "{[1,3)}", "{(,2),[5,9),[20,)}"],
    ),
    (oid::NUMMULTIRANGE, &["{[1.00,2]}", "{(,)}"]),
    (oid::CITEXT, &["", "Ab", "aB"]),
    (oid::TEXT_ARRAY, &["{}", "{a,NULL,\"\"}", "[0:1]={x,y}"]),
    (oid::NUMERIC_ARRAY, &["{1.0,-2,NaN}", "{{1},{-100}}"]),
    (oid::TSQUERY, &["a & !b", "c"]),
];

#[test]
fn the_length_of_a_column_is_read_from_its_key() {
    let mut r = Seeded(0xd1_71de);
    let written = WRITTEN.iter().flat_map(|(ty, texts)| {
        let value = |text| input(SqlType::of(*ty), text, None).expect("written");
        texts.iter().map(move |text| (*ty, value(text)))
    });
    let mut values: Vec<(TypeId, Datum)> = written.collect();
    for ty in TYPES {
        values.push((ty, Datum::Null));
        values.extend((0..300).map(|_| (ty, r.value(ty))));
    }
    let length = |ty, key: &[u8]| {
        let shape = key_length::KeyShape::of(ty).expect("a shape");
        shape.column_length(key)
    };
    for (ty, d) in &values {
        let mut key = Vec::new();
        key::encode_key(*ty, d, false, false, &mut key);
        let whole = key.len();
        for cut in 0..whole {
            assert_eq!(length(*ty, &key[..cut]), None, "{ty} {d:?} cut at {cut}");
        }
        for tail in [&[][..], &[0, 0, 0], &[0xff; 20], &r.next().to_be_bytes()] {
            key.truncate(whole);
            key.extend_from_slice(tail);
            assert_eq!(length(*ty, &key), Some(whole), "{ty} {d:?} then {tail:?}");
        }
        // Bounds of scans are no keys of values: whatever they are, what follows changes nothing.
        let at = r.below(whole as u64) as usize;
        key[at] = key[at].wrapping_add(1);
        if let Some(end) = length(*ty, &key) {
            key[end..].fill(0xa5);
            assert_eq!(length(*ty, &key), Some(end), "{ty} {d:?} changed at {at}");
        }
    }
}

#[test]
fn types_whose_keys_do_not_tell_their_length_have_no_shape() {
    let of_users = |kind: u32| TypeId::new((FIRST_USER_OID + 800) / 8 * 8 + kind);
    let made = (0..16).map(of_users).filter(|ty| !user::is_enum(*ty));
    let made = made.filter(|ty| info::element_of(*ty).is_none_or(|of| !user::is_enum(of)));
    let built_in = [oid::JSONB, oid::RECORD, oid::HSTORE, oid::POINT, oid::JSON];
    for ty in made.chain(built_in) {
        assert_eq!(key_length::KeyShape::of(ty), None, "{ty}");
    }
}

#[test]
fn equal_values_hash_alike() {
    let hashed = |ty, d: &Datum| {
        let mut h = DefaultHasher::new();
        hash_as(ty, d, &mut h);
        h.finish()
    };
    let n = |s: &str| Datum::numeric(Numeric::parse(s).expect("numeric"));
    let big = "1".to_owned() + &"0".repeat(50);
    for (ty, a, b) in [
        (oid::NUMERIC, n("1.0"), n("1.000")),
        (oid::NUMERIC, n(&big), n(&(big.clone() + ".00"))),
        (oid::FLOAT8, Datum::Float8(0.0), Datum::Float8(-0.0)),
        (oid::BPCHAR, Datum::text("ab"), Datum::text("ab   ")),
        (oid::INT8, Datum::Int4(5), Datum::Int8(5)),
        (
            oid::INTERVAL,
            input(SqlType::of(oid::INTERVAL), "1 mon", None).expect("i"),
            input(SqlType::of(oid::INTERVAL), "30 days", None).expect("i"),
        ),
    ] {
        assert_eq!(compare_as(ty, &a, &b), Ordering::Equal);
        assert_eq!(hashed(ty, &a), hashed(ty, &b));
    }
}

#[test]
fn nulls_sort_where_they_are_told() {
    let key = |d: &Datum, first| {
        let mut k = Vec::new();
        key::encode_key(oid::INT4, d, false, first, &mut k);
        k
    };
    assert!(key(&Datum::Null, true) < key(&Datum::Int4(i32::MIN), true));
    assert!(key(&Datum::Null, false) > key(&Datum::Int4(i32::MAX), false));
}

/// Type, text, PostgreSQL's binary form.
const BINARY: &[(&str, &str, &str)] = &[
    ("bool", "t", "01"),
    ("bool", "f", "00"),
    ("int2", "-2", "fffe"),
    ("int2", "300", "012c"),
    ("int4", "-1", "ffffffff"),
    ("int4", "70000", "00011170"),
    ("int8", "-9223372036854775808", "8000000000000000"),
    ("int8", "5", "0000000000000005"),
    ("float4", "1.5", "3fc00000"),
    ("float4", "-0.1", "bdcccccd"),
    ("float8", "1.5", "3ff8000000000000"),
    ("float8", "NaN", "7ff8000000000000"),
    ("float8", "-Infinity", "fff0000000000000"),
    ("numeric", "0", "0000000000000000"),
    ("numeric", "0.00", "0000000000000002"),
    ("numeric", "1", "00010000000000000001"),
    ("numeric", "-1", "00010000400000000001"),
    ("numeric", "12345.678", "0003000100000003000109291a7c"),
    ("numeric", "10000", "00010001000000000001"),
    ("numeric", "0.0001", "0001ffff000000040001"),
    ("numeric", "-0.00001234", "0001fffe4000000804d2"),
    (
        "numeric",
        "99999999999999999999999999999999999999999999.5",
        "000c000a00000001270f270f270f270f270f270f270f270f270f270f270f1388",
    ),
    ("numeric", "1e20", "00010005000000000001"),
    ("numeric", "NaN", "00000000c0000000"),
    ("numeric", "Infinity", "00000000d0000020"),
    ("numeric", "-Infinity", "00000000f0000020"),
    ("numeric", "123.4500", "0002000000000004007b1194"),
    ("text", "héllo", "68c3a96c6c6f"),
    ("text", "", ""),
    ("varchar", "abc", "616263"),
    ("bpchar", "ab ", "616220"),
    ("name", "n", "6e"),
    ("bytea", "\\x00ff", "00ff"),
    ("\"char\"", "a", "61"),
    ("date", "2024-02-29", "00002279"),
    ("date", "infinity", "7fffffff"),
    ("date", "0044-03-15 BC", "fff49d7b"),
    ("time", "13:14:15.678901", "0000000b187ff3b5"),
    (
        "timestamp",
        "2024-02-29 13:14:15.678901",
        "0002b583ce0c53b5",
    ),
    ("timestamp", "-infinity", "8000000000000000"),
    ("timestamptz", "2024-02-29 13:14:15+02", "0002b58220daafc0"),
    (
        "interval",
        "1 year 2 days 03:04:05.6",
        "00000002925e7b00000000020000000c",
    ),
    ("interval", "-1 mon", "000000000000000000000000ffffffff"),
    (
        "uuid",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "a0eebc999c0b4ef8bb6d6bb9bd380a11",
    ),
    ("oid", "4294967295", "ffffffff"),
    (
        "int4[]",
        "{1,NULL,3}",
        "00000001000000010000001700000003000000010000000400000001ffffffff0000000400000003",
    ),
    ("int4[]", "{}", "000000000000000000000017"),
    (
        "text[]",
        "{a,\"b c\"}",
        "0000000100000000000000190000000200000001000000016100000003622063",
    ),
    (
        "int2vector",
        "1 2",
        "0000000100000000000000150000000200000000000000020001000000020002",
    ),
    (
        "oidvector",
        "5 6",
        "00000001000000000000001a000000020000000000000004000000050000000400000006",
    ),
    ("oidvector", "", "00000001000000000000001a0000000000000000"),
    (
        "numeric[]",
        "{1.5,NULL}",
        "0000000100000001000006a400000002000000010000000c000200000000000100011388ffffffff",
    ),
];

#[test]
fn binary_form_is_postgresqls() {
    for (name, text, hex) in BINARY {
        let ty = SqlType::of(info::by_name(name).expect("type"));
        let d = input(ty, text, None).expect("input");
        let mut out = Vec::new();
        binary_io::binary_output(&d, ty, &mut out).expect("short");
        let mut shown = Vec::new();
        text_io::write_hex(&out, &mut shown);
        assert_eq!(String::from_utf8_lossy(&shown), *hex, "{name} {text}");
        let back = binary_io::binary_input(ty, &out).expect("binary input");
        assert_eq!(
            printed(&back, ty, &OutputStyle::UTC),
            printed(&d, ty, &OutputStyle::UTC),
            "{name} {text}"
        );
    }
}

#[test]
fn hostile_bytes_are_errors_not_panics() {
    let mut r = Seeded(99);
    for t in info::TYPES {
        for _ in 0..200 {
            let bytes: Vec<u8> = (0..r.below(40))
                .map(|_| if r.below(3) == 0 { 0 } else { r.next() as u8 })
                .collect();
            let _ = binary_io::binary_input(SqlType::of(t.oid), &bytes);
            if let Ok(d) = stored::decode(t.oid, &bytes) {
                printed(&d, SqlType::of(t.oid), &OutputStyle::UTC);
            }
            let text = String::from_utf8_lossy(&bytes);
            let _ = input(SqlType::of(t.oid), &text, None);
            let near: String = (0..r.below(14))
                .map(|_| {
                    "0123456789-:+. {},\"eJanPT/"[r.below(25) as usize..]
                        .chars()
                        .next()
                        .unwrap_or('x')
                })
                .collect();
            let _ = input(SqlType::of(t.oid), &near, None);
        }
    }
}

#[test]
fn datum_stays_small() {
    assert!(size_of::<Datum>() <= 24);
}

#[test]
fn numeric_modifiers_round_or_refuse() {
    let ty = |p, s| SqlType {
        oid: oid::NUMERIC,
        typmod: info::typmod_in(oid::NUMERIC, &[p, s], &Default::default()).expect("modifier"),
    };
    assert_eq!(info::format_built_in(ty(5, 2), true), "numeric(5,2)");
    assert_eq!(info::format_built_in(ty(3, -2), true), "numeric(3,-2)");
    let d = input(ty(5, 2), "123.456", None).expect("fits");
    assert_eq!(printed(&d, ty(5, 2), &OutputStyle::UTC), "123.46");
    let e = input(ty(5, 2), "1000", None).expect_err("overflow");
    assert_eq!(e.fields().message, "numeric field overflow");
    assert_eq!(
        e.fields().detail.as_deref(),
        Some("A field with precision 5, scale 2 must round to an absolute value less than 10^3.")
    );
    let e = input(
        SqlType {
            oid: oid::VARCHAR,
            typmod: 7,
        },
        "abcd",
        None,
    )
    .expect_err("too long");
    assert_eq!(
        e.fields().message,
        "value too long for type character varying(3)"
    );
}

#[test]
fn arrays_of_one_dimension_are_stored_as_ever() {
    let read = |text: &str| input(SqlType::of(oid::INT4_ARRAY), text, None).expect("array");
    let stored = |text: &str| {
        let mut bytes = Vec::new();
        stored::encode(&read(text), &mut bytes);
        bytes
    };
    // Element type, first subscript, count, then each element's length and bytes: what rows of older servers hold.
    let old = [
        23, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0, 255, 255, 255, 255,
    ];
    assert_eq!(stored("{7,NULL}"), old);
    let back = stored::decode(oid::INT4_ARRAY, &old).expect("decode");
    assert_eq!(compare(&back, &read("{7,NULL}")), Ordering::Equal);
    // More dimensions are told by the count's highest bit, which older servers take for damage.
    let new = stored("[0:1][5:5]={{7},{8}}");
    assert_eq!(new[8..12], [2, 0, 0, 128]);
    let back = stored::decode(oid::INT4_ARRAY, &new).expect("decode");
    assert_eq!(
        printed(&back, SqlType::of(oid::INT4_ARRAY), &OutputStyle::UTC),
        "[0:1][5:5]={{7},{8}}"
    );
    for end in 0..new.len() {
        assert!(
            stored::decode(oid::INT4_ARRAY, &new[..end]).is_err(),
            "{end} bytes"
        );
    }
    for dimensions in [0, 1, 7, 0x7fff_ffff_u32] {
        let mut bad = new.clone();
        bad[8..12].copy_from_slice(&(dimensions | 1 << 31).to_le_bytes());
        assert!(
            stored::decode(oid::INT4_ARRAY, &bad).is_err(),
            "{dimensions}"
        );
    }
}
