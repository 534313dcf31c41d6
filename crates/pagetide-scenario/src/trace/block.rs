//! A block of records as bytes: four columns, one after the other, so that like stands beside
//! like when the block is compressed.
//!
//! Before compression: the lengths in bytes of the first three columns as varints, then
//! * places: zigzag difference of the page's number to that of the previous record in the block
//!   (0 before the first), where pages are numbered through all regions in order,
//! * kinds: one byte a record,
//! * references: varint, less 1,
//! * times: varint.
//!
//! Every block can be read without the others.

use super::format::{Kinds, MAX_BLOCK_RECORDS};
use super::varint;

/// Longest block before compression.
pub(crate) const MAX_RAW: usize = MAX_BLOCK_RECORDS * (3 * varint::MAX_LEN + 1) + 64;
/// Longest block as stored: zstd's own bound is below this.
pub(crate) const MAX_STORED: usize = MAX_RAW + MAX_RAW / 128 + 1024;
/// Magic, records, raw length, stored length.
pub(crate) const PREFIX: usize = 16;

/// One record, its page numbered through all regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flat {
    pub(crate) place: u64,
    pub(crate) kinds: Kinds,
    pub(crate) references: u64,
    pub(crate) time: u64,
}

/// Collects the records of a block.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    records: usize,
    last_place: u64,
    places: Vec<u8>,
    kinds: Vec<u8>,
    references: Vec<u8>,
    times: Vec<u8>,
}

impl Encoder {
    /// Adds a record; the caller keeps to [`MAX_BLOCK_RECORDS`].
    pub(crate) fn push(&mut self, record: Flat) {
        assert!(self.records < MAX_BLOCK_RECORDS);
        assert!(record.references > 0);
        let difference = record.place as i64 - self.last_place as i64;
        varint::put(&mut self.places, varint::zigzag(difference));
        self.kinds.push(record.kinds.bits());
        varint::put(&mut self.references, record.references - 1);
        varint::put(&mut self.times, record.time);
        self.last_place = record.place;
        self.records += 1;
    }

    /// Records so far.
    pub(crate) fn records(&self) -> usize {
        self.records
    }

    /// Writes the block's bytes into `raw` and starts the next one.
    pub(crate) fn finish(&mut self, raw: &mut Vec<u8>) {
        raw.clear();
        for column in [&self.places, &self.kinds, &self.references] {
            varint::put(raw, column.len() as u64);
        }
        for column in
            [&mut self.places, &mut self.kinds, &mut self.references, &mut self.times]
        {
            raw.append(column);
        }
        assert!(raw.len() <= MAX_RAW);
        self.records = 0;
        self.last_place = 0;
    }
}

/// Takes the records of a block one by one.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    raw: Vec<u8>,
    left: usize,
    last_place: u64,
    /// Next byte of each column, and the end of each.
    next: [usize; 4],
    end: [usize; 4],
}

impl Decoder {
    /// The buffer to decompress the next block into; [`Decoder::begin`] must follow.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        self.left = 0;
        &mut self.raw
    }

    /// Starts on the block in the buffer.
    pub(crate) fn begin(&mut self, records: usize) -> Result<(), &'static str> {
        const SHORT: &str = "a column is longer than the block";
        let mut rest = self.raw.as_slice();
        let mut lengths = [0usize; 3];
        for length in &mut lengths {
            let value = varint::take(&mut rest).ok_or(SHORT)?;
            *length = value.try_into().map_err(|_| SHORT)?;
        }
        let mut at = self.raw.len() - rest.len();
        for (column, length) in lengths.into_iter().enumerate() {
            if length > self.raw.len() - at {
                return Err(SHORT);
            }
            self.next[column] = at;
            at += length;
            self.end[column] = at;
        }
        self.next[3] = at;
        self.end[3] = self.raw.len();
        if lengths[1] != records {
            return Err("the column of kinds has not one byte a record");
        }
        self.left = records;
        self.last_place = 0;
        Ok(())
    }

    /// The next record, or `None` at the end of the block.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Flat>, &'static str> {
        if self.left == 0 {
            return Ok(None);
        }
        const SHORT: &str = "a column ends before its records";
        let difference = varint::unzigzag(self.take(0).ok_or(SHORT)?);
        let kinds = Kinds::from_bits(self.raw[self.next[1]]).ok_or("unknown kind of reference")?;
        self.next[1] += 1;
        let references = self.take(2).ok_or(SHORT)?.checked_add(1).ok_or("too many references")?;
        let time = self.take(3).ok_or(SHORT)?;
        if kinds.is_none() {
            return Err("a record of no kind");
        }
        let place = self.last_place.checked_add_signed(difference).ok_or("a page below 0")?;
        self.last_place = place;
        self.left -= 1;
        if self.left == 0 && self.next != self.end {
            return Err("a column goes on after its records");
        }
        Ok(Some(Flat { place, kinds, references, time }))
    }

    #[inline]
    fn take(&mut self, column: usize) -> Option<u64> {
        let mut rest = &self.raw[self.next[column]..self.end[column]];
        let value = varint::take(&mut rest)?;
        self.next[column] = self.end[column] - rest.len();
        Some(value)
    }
}
