//! Encodings of several bytes a character: the Encoding Standard's tables, and over them what PostgreSQL has otherwise
//! (`multi_byte.txt`).
//!
//! Owns: how long a character is, which bytes may be one (PostgreSQL's `pg_verify_mbstr`), and the tables, each made
//! when it is first asked for.

use super::Encoding;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::OnceLock;

/// The bytes of one character.
pub(super) type Bytes = SmallVec<[u8; 4]>;

/// These encodings, and whose tables they are under.
const KNOWN: [(&str, &encoding_rs::Encoding); 8] = [
    ("EUC_JP", encoding_rs::EUC_JP),
    ("SJIS", encoding_rs::SHIFT_JIS),
    ("EUC_KR", encoding_rs::EUC_KR),
    ("UHC", encoding_rs::EUC_KR),
    ("EUC_CN", encoding_rs::GBK),
    ("GBK", encoding_rs::GBK),
    ("GB18030", encoding_rs::GB18030),
    ("BIG5", encoding_rs::BIG5),
];

fn place(encoding: Encoding) -> Option<usize> {
    KNOWN.iter().position(|(name, _)| *name == encoding.name())
}

/// Is it one of them?
pub(super) fn is_known(encoding: Encoding) -> bool {
    place(encoding).is_some()
}

/// How many bytes the character has that begins so, as PostgreSQL counts them.
pub(super) fn length(encoding: Encoding, bytes: &[u8]) -> usize {
    let first = bytes.first().copied().unwrap_or(0);
    match (encoding.name(), first) {
        (_, ..0x80) => 1,
        ("SJIS", 0xa1..=0xdf) => 1,
        ("EUC_JP" | "EUC_KR", 0x8f) => 3,
        ("GB18030", _) if matches!(bytes.get(1), Some(b'0'..=b'9')) => 4,
        _ => 2,
    }
}

/// May these bytes, as many as [`length`] says, be a character?
pub(super) fn is_valid(encoding: Encoding, bytes: &[u8]) -> bool {
    let euc = |byte: u8| (0xa1..=0xfe).contains(&byte);
    match (encoding.name(), bytes) {
        (_, [single]) => *single != 0,
        ("EUC_JP", [0x8e, second]) => (0xa1..=0xdf).contains(second),
        ("EUC_JP", [0x8f, second, third]) => euc(*second) && euc(*third),
        ("EUC_JP" | "EUC_KR" | "EUC_CN", [first, second]) => euc(*first) && euc(*second),
        ("SJIS", [first, second]) => {
            matches!(first, 0x81..=0x9f | 0xe0..=0xfc)
                && matches!(second, 0x40..=0x7e | 0x80..=0xfc)
        }
        ("GB18030", [first, second]) => {
            matches!(first, 0x81..=0xfe) && matches!(second, 0x40..=0x7e | 0x80..=0xfe)
        }
        ("GB18030", [first, _, third, fourth]) => {
            matches!(first, 0x81..=0xfe) && matches!(third, 0x81..=0xfe) && fourth.is_ascii_digit()
        }
        ("BIG5" | "GBK" | "UHC", [_, second]) => *second != 0,
        _ => false,
    }
}

/// What the Encoding Standard has for these bytes.
fn standard(of: &'static encoding_rs::Encoding, bytes: &[u8]) -> Option<char> {
    let text = of.decode_without_bom_handling_and_without_replacement(bytes)?;
    let mut characters = text.chars();
    let first = characters.next()?;
    // What users may define means nothing to anybody else; in GB18030 it is part of the encoding.
    let private = ('\u{e000}'..='\u{f8ff}').contains(&first) && of != encoding_rs::GB18030;
    (characters.next().is_none() && !private).then_some(first)
}

/// One of them.
pub(super) struct Table {
    of: &'static encoding_rs::Encoding,
    /// By the two bytes, or the last two of three; 0 is none.
    two: Vec<u32>,
    three: Vec<u32>,
    /// Of four bytes, what is not in order.
    four: Vec<(Bytes, u32)>,
    bytes: HashMap<char, Bytes, foldhash::fast::RandomState>,
}

fn at(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}

impl Table {
    fn of(encoding: Encoding, of: &'static encoding_rs::Encoding) -> Table {
        let mut table = Table {
            of,
            two: vec![0; 1 << 16],
            three: Vec::new(),
            four: Vec::new(),
            bytes: HashMap::default(),
        };
        if encoding.name() == "EUC_JP" {
            table.three = vec![0; 1 << 16];
        }
        let mut sequences: Vec<Bytes> = Vec::new();
        for first in 0x80..=0xff_u8 {
            let single: Bytes = SmallVec::from_slice(&[first]);
            if length(encoding, &single) == 1 {
                sequences.push(single);
                continue;
            }
            for second in 0x30..=0xff_u8 {
                for bytes in [&[first, second][..], &[0x8f, first, second]] {
                    if length(encoding, bytes) == bytes.len() && is_valid(encoding, bytes) {
                        sequences.push(SmallVec::from_slice(bytes));
                    }
                }
            }
        }
        for bytes in &sequences {
            if let Some(character) = standard(of, bytes) {
                table.set(bytes, u32::from(character));
            }
        }
        let corrections = corrections(encoding);
        for (bytes, number) in corrections.iter().filter(|(bytes, _)| !bytes.is_empty()) {
            table.set(bytes, *number);
        }
        // Back: as the Standard does if that comes back to the character, else by the first that does.
        for bytes in sequences {
            let Some(character) = table.character(&bytes) else {
                continue;
            };
            if table.bytes.contains_key(&character) {
                continue;
            }
            let mut buffer = [0; 4];
            let (preferred, _, failed) = of.encode(character.encode_utf8(&mut buffer));
            let comes_back = !failed
                && length(encoding, &preferred) == preferred.len()
                && is_valid(encoding, &preferred)
                && table.character(&preferred) == Some(character);
            let chosen = match comes_back {
                true => SmallVec::from_slice(&preferred),
                false => bytes,
            };
            table.bytes.insert(character, chosen);
        }
        for (character, bytes) in back(encoding) {
            table.bytes.insert(character, bytes);
        }
        table
    }

    fn set(&mut self, bytes: &[u8], number: u32) {
        let place = match bytes {
            [single] => self.two.get_mut(usize::from(*single)),
            [first, second] => self.two.get_mut(at(*first, *second)),
            [_, second, third] => self.three.get_mut(at(*second, *third)),
            [_, _, _, _] => {
                self.four.push((SmallVec::from_slice(bytes), number));
                None
            }
            _ => None,
        };
        if let Some(place) = place {
            *place = number;
        }
    }

    /// What these bytes, one character's, stand for.
    pub(super) fn character(&self, bytes: &[u8]) -> Option<char> {
        let number = match bytes {
            [single] => self.two.get(usize::from(*single)),
            [first, second] => self.two.get(at(*first, *second)),
            [_, second, third] => self.three.get(at(*second, *third)),
            // GB18030: in order of the characters' numbers.
            _ => match self.four.iter().find(|(known, _)| **known == *bytes) {
                Some((_, number)) => return char::from_u32(*number),
                None => return standard(self.of, bytes),
            },
        };
        char::from_u32(*number?).filter(|c| *c != '\0')
    }

    /// The bytes that stand for a character.
    pub(super) fn bytes(&self, character: char) -> Option<Bytes> {
        if let Some(bytes) = self.bytes.get(&character) {
            return Some(bytes.clone());
        }
        if self.of != encoding_rs::GB18030 {
            return None;
        }
        let mut buffer = [0; 4];
        let (bytes, _, failed) = self.of.encode(character.encode_utf8(&mut buffer));
        (!failed && bytes.len() == 4).then(|| SmallVec::from_slice(&bytes))
    }
}

/// The words behind a name and an arrow in the text.
fn words(encoding: Encoding, way: char) -> impl Iterator<Item = &'static str> {
    let text = include_str!("multi_byte.txt");
    let lines = text.lines().filter(move |line| {
        let mut words = line.split(' ');
        words.next() == Some(encoding.name()) && words.next().is_some_and(|w| w.starts_with(way))
    });
    lines.flat_map(|line| line.split(' ').skip(2))
}

fn sequence(number: u32) -> Bytes {
    let bytes = number.to_be_bytes();
    bytes.into_iter().skip_while(|byte| *byte == 0).collect()
}

/// What bytes stand for in PostgreSQL and not in the Standard: `BYTES=CHARACTER`, or `BYTES+MORE=CHARACTER` for so many
/// more in a row.
fn corrections(encoding: Encoding) -> Vec<(Bytes, u32)> {
    words(encoding, '<').flat_map(pairs).collect()
}

/// By what bytes characters are told in PostgreSQL and not here so far.
fn back(encoding: Encoding) -> Vec<(char, Bytes)> {
    let pairs = words(encoding, '>').flat_map(pairs);
    pairs
        .filter_map(|(bytes, number)| Some((char::from_u32(number)?, bytes)))
        .collect()
}

fn pairs(word: &'static str) -> impl Iterator<Item = (Bytes, u32)> {
    let (bytes, character) = word.split_once('=').unwrap_or(("0", "0"));
    let (bytes, more) = bytes.split_once('+').unwrap_or((bytes, "0"));
    let number = |text: &str| u32::from_str_radix(text, 16).unwrap_or(0);
    let (bytes, more, character) = (number(bytes), number(more), number(character));
    (0..=more).map(move |nth| (sequence(bytes + nth), character + nth))
}

/// The table of an encoding.
pub(super) fn table(encoding: Encoding) -> Option<&'static Table> {
    static TABLES: [OnceLock<Table>; KNOWN.len()] = [const { OnceLock::new() }; KNOWN.len()];
    let place = place(encoding)?;
    let (_, of) = KNOWN.get(place)?;
    Some(TABLES.get(place)?.get_or_init(|| Table::of(encoding, of)))
}
