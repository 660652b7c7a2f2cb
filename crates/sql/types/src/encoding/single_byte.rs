//! Encodings of one byte a character, but for LATIN1, whose bytes are its characters' numbers.

use super::Encoding;
use std::sync::OnceLock;

/// One of them.
pub(super) struct Table {
    /// Of the bytes from 0x80 on; 0 is none.
    characters: Vec<u16>,
    /// The other way round, by character.
    bytes: Vec<(u16, u8)>,
}

impl Table {
    fn of(numbers: &str) -> Table {
        let numbers = numbers.split(' ');
        let characters: Vec<u16> = numbers
            .map(|number| u16::from_str_radix(number, 16).unwrap_or(0))
            .collect();
        let mut bytes: Vec<(u16, u8)> = (0x80..=0xff)
            .zip(&characters)
            .filter(|(_, character)| **character != 0)
            .map(|(byte, character)| (*character, byte))
            .collect();
        bytes.sort_unstable();
        Table { characters, bytes }
    }

    /// What a byte from 0x80 on stands for.
    pub(super) fn character(&self, byte: u8) -> Option<char> {
        let found = self.characters.get(usize::from(byte.checked_sub(0x80)?))?;
        char::from_u32(u32::from(*found)).filter(|c| *c != '\0')
    }

    /// The byte that stands for a character.
    pub(super) fn byte(&self, character: char) -> Option<u8> {
        let wanted = u16::try_from(u32::from(character)).ok()?;
        let at = self.bytes.binary_search_by_key(&wanted, |(c, _)| *c).ok()?;
        self.bytes.get(at).map(|(_, byte)| *byte)
    }
}

/// The table of an encoding, read when it is first asked for.
pub(super) fn table(encoding: Encoding) -> Option<&'static Table> {
    static TABLES: OnceLock<Vec<(Encoding, Table)>> = OnceLock::new();
    let tables = TABLES.get_or_init(|| {
        let text = include_str!("single_byte.txt");
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        lines
            .filter_map(|(name, numbers)| Some((Encoding::named(name)?, Table::of(numbers))))
            .collect()
    });
    let found = tables.iter().find(|(known, _)| *known == encoding);
    found.map(|(_, table)| table)
}
