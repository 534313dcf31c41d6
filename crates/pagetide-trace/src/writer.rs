//! Streaming writer of `.ptt` traces. It holds one block in memory, however long the trace is.

use std::fmt;
use std::io::Write;

use xxhash_rust::xxh3::{xxh3_64, Xxh3};
use zstd::bulk::Compressor;

use crate::block::{self, Encoder, PlacedRecord};
use crate::error::{TraceError, TracePart, TraceProblem};
use crate::format::{
    AccessKinds, Header, Record, Totals, BLOCK_MAGIC, CHECKSUM, END_MAGIC, MAX_BLOCK_RECORDS,
};
use crate::pages::PageSet;
use crate::places::Places;

/// zstd level of a finished trace: 10 % smaller than level 3, and still faster to write than
/// tracing a program.
const LEVEL: i32 = 19;

/// Writes a trace, record by record.
///
/// Without [`TraceWriter::finish`] the output has no footer, and every reader returns an error.
pub struct TraceWriter<W: Write> {
    sink: W,
    places: Places,
    offset: u64,
    encoder: Encoder,
    compressor: Compressor<'static>,
    raw: Vec<u8>,
    stored: Vec<u8>,
    seen: PageSet,
    totals: Totals,
    digest: Xxh3,
}

impl<W: Write> fmt::Debug for TraceWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("offset", &self.offset)
            .field("totals", &self.totals)
            .finish_non_exhaustive()
    }
}

impl<W: Write> TraceWriter<W> {
    pub fn new(sink: W, header: &Header) -> Result<TraceWriter<W>, TraceError> {
        TraceWriter::with_level(sink, header, LEVEL)
    }

    /// Same as [`TraceWriter::new`], with another zstd level.
    pub(crate) fn with_level(
        mut sink: W,
        header: &Header,
        level: i32,
    ) -> Result<TraceWriter<W>, TraceError> {
        let bytes = header.encode()?;
        sink.write_all(&bytes)?;
        let mut digest = Xxh3::new();
        digest.update(&bytes[bytes.len() - CHECKSUM..]);
        Ok(TraceWriter {
            sink,
            places: Places::new(header),
            offset: bytes.len() as u64,
            encoder: Encoder::new(header.has_requests()),
            compressor: Compressor::new(level)?,
            raw: Vec::new(),
            stored: Vec::new(),
            seen: PageSet::default(),
            totals: Totals::default(),
            digest,
        })
    }

    /// Adds a record.
    ///
    /// # Panics
    /// If the region or page is not in the header, or the record has no kind or no references.
    pub fn push(&mut self, record: &Record) -> Result<(), TraceError> {
        let place = self.places.place(record.region, record.page);
        let place = place.expect("the record's page is in the header");
        assert!(!record.kinds.is_none(), "the record has no kind");
        assert!(record.references > 0, "the record has no references");
        let too_large = |what| {
            TraceError::whole(TraceProblem::TooLarge { what, value: u64::MAX, limit: u64::MAX - 1 })
        };
        let totals = &mut self.totals;
        totals.references = totals
            .references
            .checked_add(record.references)
            .ok_or_else(|| too_large("number of references"))?;
        totals.time = totals.time.checked_add(record.time).ok_or_else(|| too_large("time"))?;
        totals.records += 1;
        totals.writes += u64::from(record.kinds.contains(AccessKinds::WRITE));
        self.seen.insert(place);
        self.encoder.push(PlacedRecord {
            place,
            kinds: record.kinds,
            references: record.references,
            time: record.time,
            bytes: record.bytes,
        });
        if self.encoder.records() == MAX_BLOCK_RECORDS {
            self.write_block()?;
        }
        Ok(())
    }

    /// Ends the trace `tail` after the first reference of the last record, and returns the sink.
    pub fn finish(mut self, tail: u64) -> Result<(W, Totals), TraceError> {
        if self.encoder.records() > 0 {
            self.write_block()?;
        }
        self.totals.time = self.totals.time.checked_add(tail).ok_or(TraceError::whole(
            TraceProblem::TooLarge { what: "time", value: u64::MAX, limit: u64::MAX - 1 },
        ))?;
        self.totals.distinct_pages = self.seen.len();
        self.totals.digest = self.digest.digest();
        self.sink.write_all(&self.totals.encode())?;
        self.sink.write_all(&self.offset.to_le_bytes())?;
        self.sink.write_all(&END_MAGIC)?;
        self.sink.flush()?;
        Ok((self.sink, self.totals))
    }

    fn write_block(&mut self) -> Result<(), TraceError> {
        let records = self.encoder.records() as u32;
        self.encoder.finish(&mut self.raw);
        self.stored.clear();
        self.stored.reserve(zstd::zstd_safe::compress_bound(self.raw.len()));
        self.compressor.compress_to_buffer(&self.raw, &mut self.stored)?;
        assert!(self.stored.len() <= block::MAX_STORED);
        let mut prefix = [0u8; block::PREFIX];
        prefix[..4].copy_from_slice(&BLOCK_MAGIC);
        prefix[4..8].copy_from_slice(&records.to_le_bytes());
        prefix[8..12].copy_from_slice(&(self.raw.len() as u32).to_le_bytes());
        prefix[12..].copy_from_slice(&(self.stored.len() as u32).to_le_bytes());
        let checksum = block_checksum(&prefix, &self.stored).to_le_bytes();
        self.digest.update(&checksum);
        self.sink.write_all(&prefix)?;
        self.sink.write_all(&self.stored)?;
        self.sink.write_all(&checksum)?;
        self.offset += (block::PREFIX + self.stored.len() + CHECKSUM) as u64;
        Ok(())
    }
}

/// Checksum over a block's prefix and its stored bytes.
pub(crate) fn block_checksum(prefix: &[u8; block::PREFIX], stored: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(prefix);
    hash.update(stored);
    hash.digest()
}

/// Checksum over contiguous bytes.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// An error about a part of the file.
pub(crate) fn malformed(byte: u64, part: TracePart, what: &'static str) -> TraceError {
    TraceError::at_byte(byte, TraceProblem::Malformed { part, what })
}
