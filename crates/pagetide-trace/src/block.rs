//! Encoding of a block of records: columns, one after the other, so that similar values are adjacent
//! when the block is compressed.
//!
//! Before compression: the lengths in bytes of all columns but the last as varints, then
//! * uses: varint of 8 * place + kinds, where places number the pages of all regions in order,
//! * references: varint of their number less 1,
//! * times: varint,
//! * in a trace of requests, the bytes of the request that begins with the record, or 0: varint.
//!
//! Places are absolute, not differences: a program returns to the same pages in the same order,
//! and the compressor finds these repetitions. This makes the trace in the repository 10 % smaller.
//!
//! Every block can be decoded without the others.

use crate::format::{AccessKinds, MAX_BLOCK_RECORDS};
use crate::varint;

const MAX_COLUMNS: usize = 4;
/// Bits of the kinds in the first column.
const KIND_BITS: u32 = 3;
/// Longest block before compression.
pub(crate) const MAX_RAW: usize = (MAX_BLOCK_RECORDS * MAX_COLUMNS + MAX_COLUMNS) * varint::MAX_LEN;
/// Longest compressed block; zstd's own bound is below this.
pub(crate) const MAX_STORED: usize = MAX_RAW + MAX_RAW / 128 + 1024;
/// Magic, records, raw length, stored length.
pub(crate) const PREFIX: usize = 16;

/// One record. `place` numbers its page across all regions (see `places`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlacedRecord {
    pub(crate) place: u64,
    pub(crate) kinds: AccessKinds,
    pub(crate) references: u64,
    pub(crate) time: u64,
    pub(crate) bytes: u64,
}

/// Number of columns of a trace.
fn nr_columns(has_requests: bool) -> usize {
    MAX_COLUMNS - usize::from(!has_requests)
}

/// Collects the records of a block.
#[derive(Debug)]
pub(crate) struct Encoder {
    records: usize,
    columns: Vec<Vec<u8>>,
}

impl Encoder {
    pub(crate) fn new(has_requests: bool) -> Encoder {
        Encoder { records: 0, columns: vec![Vec::new(); nr_columns(has_requests)] }
    }

    /// Adds a record. The caller must stay within [`MAX_BLOCK_RECORDS`].
    pub(crate) fn push(&mut self, record: PlacedRecord) {
        assert!(self.records < MAX_BLOCK_RECORDS);
        assert!(record.references > 0);
        let uses = record.place << KIND_BITS | u64::from(record.kinds.bits());
        let values = [uses, record.references - 1, record.time, record.bytes];
        for (column, value) in self.columns.iter_mut().zip(values) {
            varint::put(column, value);
        }
        self.records += 1;
    }

    pub(crate) fn records(&self) -> usize {
        self.records
    }

    /// Moves the encoded block into `raw` and starts the next block.
    pub(crate) fn finish(&mut self, raw: &mut Vec<u8>) {
        raw.clear();
        for column in &self.columns[..self.columns.len() - 1] {
            varint::put(raw, column.len() as u64);
        }
        for column in &mut self.columns {
            raw.append(column);
        }
        assert!(raw.len() <= MAX_RAW);
        self.records = 0;
    }
}

/// Iterates over the records of a block.
#[derive(Debug)]
pub(crate) struct Decoder {
    raw: Vec<u8>,
    left: usize,
    has_requests: bool,
    /// Next byte of each column, and the end of each.
    next: [usize; MAX_COLUMNS],
    end: [usize; MAX_COLUMNS],
}

impl Decoder {
    pub(crate) fn new(has_requests: bool) -> Decoder {
        let none = [0; MAX_COLUMNS];
        Decoder { raw: Vec::new(), left: 0, has_requests, next: none, end: none }
    }

    /// The buffer for the next decompressed block; call [`Decoder::begin`] after filling it.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        self.left = 0;
        &mut self.raw
    }

    /// Drops the rest of the current block.
    pub(crate) fn clear(&mut self) {
        self.left = 0;
    }

    /// Starts to decode the block in the buffer.
    pub(crate) fn begin(&mut self, records: usize) -> Result<(), &'static str> {
        const SHORT: &str = "a column is longer than the block";
        let mut rest = self.raw.as_slice();
        let last = nr_columns(self.has_requests) - 1;
        let mut lengths = [0; MAX_COLUMNS];
        for length in &mut lengths[..last] {
            let value = varint::take(&mut rest).ok_or(SHORT)?;
            *length = value.try_into().map_err(|_| SHORT)?;
        }
        let mut at = self.raw.len() - rest.len();
        for (column, &length) in lengths[..last].iter().enumerate() {
            if length > self.raw.len() - at {
                return Err(SHORT);
            }
            self.next[column] = at;
            at += length;
            self.end[column] = at;
        }
        self.next[last] = at;
        self.end[last] = self.raw.len();
        self.left = records;
        Ok(())
    }

    /// The next record, or `None` at the end of the block.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<PlacedRecord>, &'static str> {
        if self.left == 0 {
            return Ok(None);
        }
        const SHORT: &str = "a column ends before its records";
        let uses = self.take(0).ok_or(SHORT)?;
        let references = self.take(1).ok_or(SHORT)?.checked_add(1).ok_or("too many references")?;
        let time = self.take(2).ok_or(SHORT)?;
        let bytes = if self.has_requests { self.take(3).ok_or(SHORT)? } else { 0 };
        let kinds = AccessKinds::from_bits(uses as u8 & 7).expect("three bits");
        if kinds.is_none() {
            return Err("a record has no kind");
        }
        self.left -= 1;
        if self.left == 0 && self.next != self.end {
            return Err("a column is longer than its records");
        }
        Ok(Some(PlacedRecord { place: uses >> KIND_BITS, kinds, references, time, bytes }))
    }

    #[inline]
    fn take(&mut self, column: usize) -> Option<u64> {
        let mut rest = &self.raw[self.next[column]..self.end[column]];
        let value = varint::take(&mut rest)?;
        self.next[column] = self.end[column] - rest.len();
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(raw: &[u8], records: usize) -> Result<Vec<PlacedRecord>, &'static str> {
        let mut decoder = Decoder::new(false);
        decoder.buffer().extend_from_slice(raw);
        decoder.begin(records)?;
        let mut flats = Vec::new();
        while let Some(flat) = decoder.next()? {
            flats.push(flat);
        }
        assert_eq!(flats.len(), records);
        Ok(flats)
    }

    fn raw(columns: [&[u8]; 3]) -> Vec<u8> {
        let mut raw = vec![columns[0].len() as u8, columns[1].len() as u8];
        raw.extend(columns.concat());
        raw
    }

    #[test]
    fn columns_must_fit_their_records() {
        let flat =
            PlacedRecord { place: 2, kinds: AccessKinds::WRITE, references: 6, time: 7, bytes: 0 };
        assert_eq!(decode(&raw([&[18], &[5], &[7]]), 1), Ok(vec![flat]));
        for (columns, records) in [
            ([&[18u8][..], &[5], &[7]], 2),
            ([&[18], &[5], &[7, 0]], 1),
            ([&[18], &[5, 5], &[7]], 1),
            ([&[18], &[], &[7]], 1),
            ([&[16], &[5], &[7]], 1),
            ([&[18], &[0xff; 10], &[7]], 1),
            ([&[18], &[5], &[0x80]], 1),
        ] {
            assert!(decode(&raw(columns), records).is_err(), "{columns:?} {records}");
        }
        assert!(decode(&[], 1).is_err());
        assert!(decode(&[9, 9, 1], 1).is_err());
        let all_ones = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert!(decode(&raw([&[18], &all_ones, &[7]]), 1).is_err(), "2^64 references");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            raw in prop::collection::vec(any::<u8>(), 0..64),
            records in 0usize..40,
        ) {
            let _ = decode(&raw, records);
        }
    }
}
