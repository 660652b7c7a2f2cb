//! Names, both directions, and what is an error.

use super::*;
use crate::value::oid;

fn decode(name: &str, bytes: &[u8]) -> Result<String> {
    let mut out = Vec::new();
    Encoding::named(name).unwrap().decode(bytes, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn encode(name: &str, text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    Encoding::named(name).unwrap().encode(text, &mut out)?;
    Ok(out)
}

#[test]
fn names_are_postgresqls() {
    for (name, shown) in [
        ("latin1", "LATIN1"),
        ("ISO-8859-15", "LATIN9"),
        ("Windows-1252", "WIN1252"),
        ("utf-8", "UTF8"),
        ("unicode", "UTF8"),
        ("Shift_JIS", "SJIS"),
        ("sql_ascii", "SQL_ASCII"),
        ("koi8", "KOI8R"),
        ("alt", "WIN866"),
        ("iso_8859_5", "ISO_8859_5"),
        ("johab", "JOHAB"),
    ] {
        let found = Encoding::named(name).unwrap();
        assert_eq!(found.name(), shown);
        assert_eq!(Encoding::numbered(found.number() as i32), Some(found));
    }
    assert_eq!(Encoding::named("latin11"), None);
    let unsupported: Vec<_> = (0..42)
        .filter_map(Encoding::numbered)
        .filter(|encoding| !encoding.is_supported())
        .map(Encoding::name)
        .collect();
    let expected = [
        "EUC_TW",
        "EUC_JIS_2004",
        "MULE_INTERNAL",
        "JOHAB",
        "SHIFT_JIS_2004",
    ];
    assert_eq!(unsupported, expected);
}

#[test]
fn characters_go_both_ways() {
    for (name, text, bytes) in [
        ("LATIN1", "Grüße", &b"Gr\xfc\xdfe"[..]),
        ("LATIN9", "5 €", b"5 \xa4"),
        ("WIN1252", "5 €", b"5 \x80"),
        ("WIN1251", "Мир", b"\xcc\xe8\xf0"),
        ("KOI8R", "Мир", b"\xed\xc9\xd2"),
        ("EUC_JP", "日本ｱ丂", b"\xc6\xfc\xcb\xdc\x8e\xb1\x8f\xb0\xa1"),
        ("SJIS", "表ｱ", b"\x95\x5c\xb1"),
        ("GBK", "汉丂", b"\xba\xba\x81\x40"),
        ("BIG5", "功", b"\xa5\x5c"),
        ("UHC", "한갂", b"\xc7\xd1\x81\x41"),
        ("EUC_KR", "한", b"\xc7\xd1"),
        ("EUC_CN", "汉―", b"\xba\xba\xa1\xaa"),
        ("GB18030", "汉ü𝄞", b"\xba\xba\xa8\xb9\x94\x32\xbe\x34"),
    ] {
        assert_eq!(encode(name, text).unwrap(), bytes, "{name}");
        assert_eq!(decode(name, bytes).unwrap(), text, "{name}");
    }
}

#[test]
fn errors_are_postgresqls() {
    let told = |error: SqlError| format!("{} {}", error.code().as_str(), error.fields().message);
    assert_eq!(
        told(encode("LATIN1", "5 €").unwrap_err()),
        "22P05 character with byte sequence 0xe2 0x82 0xac in encoding \"UTF8\" has no equivalent in encoding \"LATIN1\""
    );
    assert_eq!(
        told(decode("WIN1252", b"a\x81").unwrap_err()),
        "22P05 character with byte sequence 0x81 in encoding \"WIN1252\" has no equivalent in encoding \"UTF8\""
    );
    assert_eq!(
        told(decode("SJIS", b"a\x95").unwrap_err()),
        "22021 invalid byte sequence for encoding \"SJIS\": 0x95"
    );
    assert_eq!(
        told(decode("EUC_JP", b"\xc6 a").unwrap_err()),
        "22021 invalid byte sequence for encoding \"EUC_JP\": 0xc6 0x20"
    );
    assert_eq!(
        told(decode("LATIN1", b"a\0").unwrap_err()),
        "22021 invalid byte sequence for encoding \"LATIN1\": 0x00"
    );
    assert_eq!(
        told(decode("SQL_ASCII", b"a\xff").unwrap_err()),
        "22021 invalid byte sequence for encoding \"UTF8\": 0xff"
    );
}

#[test]
fn a_character_cut_in_two_is_kept_for_later() {
    let sjis = Encoding::named("SJIS").unwrap();
    assert_eq!(sjis.incomplete(b"\x95\x5c\xb1a\x95"), 1);
    assert_eq!(sjis.incomplete(b"\x95\x5c"), 0);
    let gb18030 = Encoding::named("GB18030").unwrap();
    assert_eq!(gb18030.incomplete(b"a\x81\x30\x89"), 3);
    assert_eq!(Encoding::LATIN1.incomplete(b"\xff"), 0);
}

#[test]
fn texts_within_binary_values_are_converted() {
    let latin1 = Encoding::LATIN1;
    let mut array = Vec::new();
    for number in [1, 0, oid::TEXT.get(), 2, 1] {
        array.extend_from_slice(&number.to_be_bytes());
    }
    let head = array.clone();
    array.extend_from_slice(b"\0\0\0\x02\xc3\xbc\xff\xff\xff\xff");
    let mut out = Vec::new();
    let ty = oid::TEXT_ARRAY;
    latin1
        .convert_binary(ty, &array, ConversionDirection::ToClient, &mut out)
        .unwrap();
    let sent = [&head[..], b"\0\0\0\x01\xfc\xff\xff\xff\xff"].concat();
    assert_eq!(out, sent);
    let mut back = Vec::new();
    latin1
        .convert_binary(ty, &sent, ConversionDirection::FromClient, &mut back)
        .unwrap();
    assert_eq!(back, array);
    // Numbers and what is cut off stay as they are.
    for (ty, bytes) in [
        (oid::INT8, &b"\xff\xfe\0\0\0\0\0\xfc"[..]),
        (ty, &array[..25]),
    ] {
        let mut out = Vec::new();
        latin1
            .convert_binary(ty, bytes, ConversionDirection::ToClient, &mut out)
            .unwrap();
        assert_eq!(out, bytes);
    }
}
