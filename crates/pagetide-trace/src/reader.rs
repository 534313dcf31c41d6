//! Streaming reader of `.ptt` traces. It holds one block in memory, however long the trace is.
//!
//! Every part is verified before use: lengths against their limits, and checksums. At the end the
//! totals in the file are compared with those of the records.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;
use zstd::bulk::Decompressor;

use crate::block::{self, Decoder};
use crate::error::{FileType, TraceError, TracePart, TraceProblem};
use crate::format::{
    AccessKinds, Header, Record, Totals, BLOCK_MAGIC, CHECKSUM, END_MAGIC, FOOTER_MAGIC,
    FOOTER_PREFIX, HEADER_PREFIX, MAGIC, MAX_BLOCK_RECORDS, MAX_FOOTER_BODY, MAX_HEADER_BODY,
    TRAILER, VERSION, VERSION_OF_REQUESTS,
};
use crate::places::Places;
use crate::writer::{block_checksum, checksum, malformed};

/// A fuzzer cannot guess checksums. It reaches the code behind them only if they are not verified.
#[allow(unexpected_cfgs)] // set by cargo-fuzz
const CHECKSUMS_COUNT: bool = !cfg!(fuzzing);

/// Reads a trace, record by record.
pub struct TraceReader<R: Read = File> {
    input: CountedInput<R>,
    file: Option<PathBuf>,
    header: Header,
    header_checksum: u64,
    places: Places,
    decoder: Decoder,
    decompressor: Decompressor<'static>,
    stored: Vec<u8>,
    block_offset: u64,
    first_block: u64,
    counted: Totals,
    digest: Xxh3,
    state: ReadState,
}

#[derive(Debug)]
enum ReadState {
    Reading,
    Ended(Totals),
    Failed(TraceError),
}

impl<R: Read> fmt::Debug for TraceReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("file", &self.file)
            .field("header", &self.header)
            .field("offset", &self.input.offset)
            .field("counted", &self.counted)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl TraceReader<File> {
    pub fn open(path: impl AsRef<Path>) -> Result<TraceReader<File>, TraceError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| TraceError::from(error).in_file(path))?;
        let mut reader = TraceReader::from_reader(file).map_err(|error| error.in_file(path))?;
        reader.file = Some(path.to_path_buf());
        Ok(reader)
    }
}

impl<R: Read + Seek> TraceReader<R> {
    /// Goes back to the first record.
    pub fn rewind(&mut self) -> Result<(), TraceError> {
        let start = self.first_block;
        let moved = self.input.inner.seek(SeekFrom::Start(start));
        moved.map_err(|error| self.name(error.into()))?;
        self.input.offset = start;
        self.decoder.clear();
        self.counted = Totals::default();
        self.digest = Xxh3::new();
        self.digest.update(&self.header_checksum.to_le_bytes());
        self.state = ReadState::Reading;
        Ok(())
    }

    /// The totals of the footer and the length of the file, without reading the records. Rewinds to
    /// the first record.
    pub(crate) fn peek_totals(&mut self) -> Result<(Totals, u64), TraceError> {
        let result = self.read_totals_at_end();
        self.rewind()?;
        result.map_err(|error| self.name(error))
    }

    fn read_totals_at_end(&mut self) -> Result<(Totals, u64), TraceError> {
        let len = self.input.inner.seek(SeekFrom::End(0))?;
        let trailer = len.saturating_sub(TRAILER as u64).max(self.first_block);
        self.input.inner.seek(SeekFrom::Start(trailer))?;
        self.input.offset = trailer;
        let mut bytes = [0; TRAILER];
        self.input.fill(&mut bytes, TracePart::Trailer)?;
        let offset = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
        if bytes[8..] != END_MAGIC || offset < self.first_block || offset >= trailer {
            return Err(malformed(trailer, TracePart::Trailer, "it does not point to a footer"));
        }
        self.input.inner.seek(SeekFrom::Start(offset))?;
        self.input.offset = offset;
        let mut magic = [0; 4];
        self.input.fill(&mut magic, TracePart::Footer)?;
        if magic != FOOTER_MAGIC {
            return Err(malformed(trailer, TracePart::Trailer, "it does not point to a footer"));
        }
        let totals = self.read_footer()?;
        if self.input.offset != len {
            return Err(TraceError::at_byte(self.input.offset, TraceProblem::Trailing));
        }
        Ok((totals, len))
    }
}

impl<R: Read> TraceReader<R> {
    /// Reads the header from a stream. [`TraceReader::next_record`] reads the records.
    pub fn from_reader(inner: R) -> Result<TraceReader<R>, TraceError> {
        let mut input = CountedInput { inner, offset: 0 };
        let (header, header_checksum) = read_header(&mut input)?;
        let mut digest = Xxh3::new();
        digest.update(&header_checksum.to_le_bytes());
        Ok(TraceReader {
            places: Places::new(&header),
            first_block: input.offset,
            block_offset: input.offset,
            input,
            file: None,
            decoder: Decoder::new(header.has_requests()),
            header,
            header_checksum,
            decompressor: Decompressor::new()?,
            stored: Vec::new(),
            counted: Totals::default(),
            digest,
            state: ReadState::Reading,
        })
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The totals, after [`TraceReader::next_record`] has reached the end. They are verified
    /// against the records, except for `distinct_pages`, which is that of the footer.
    pub fn totals(&self) -> Option<&Totals> {
        match &self.state {
            ReadState::Ended(totals) => Some(totals),
            ReadState::Reading | ReadState::Failed(_) => None,
        }
    }

    /// Time from the start to the first reference of the last record read.
    pub fn time(&self) -> u64 {
        self.counted.time
    }

    /// The next record; `None` at the end. After an error, every call returns the same error.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record>, TraceError> {
        match self.decoder.next() {
            Ok(Some(flat)) => {
                let Some((region, page)) = self.places.page(flat.place) else {
                    return Err(self.fail_block("a page is outside all regions"));
                };
                if !self.count(flat) {
                    return Err(self.fail_block("the sum of references or times is too large"));
                }
                Ok(Some(Record {
                    region,
                    page,
                    kinds: flat.kinds,
                    references: flat.references,
                    time: flat.time,
                    bytes: flat.bytes,
                }))
            }
            Ok(None) => self.next_block(),
            Err(what) => Err(self.fail_block(what)),
        }
    }

    fn count(&mut self, flat: block::PlacedRecord) -> bool {
        let counted = &mut self.counted;
        counted.records += 1;
        counted.writes += u64::from(flat.kinds.contains(AccessKinds::WRITE));
        let references = counted.references.checked_add(flat.references);
        let time = counted.time.checked_add(flat.time);
        let (Some(references), Some(time)) = (references, time) else { return false };
        counted.references = references;
        counted.time = time;
        true
    }

    fn fail_block(&mut self, what: &'static str) -> TraceError {
        self.fail(malformed(self.block_offset, TracePart::Block, what))
    }

    fn name(&self, error: TraceError) -> TraceError {
        match &self.file {
            Some(file) => error.in_file(file),
            None => error,
        }
    }

    fn fail(&mut self, error: TraceError) -> TraceError {
        let error = self.name(error);
        // Return no further record of a damaged block.
        self.decoder.clear();
        self.state = ReadState::Failed(error.clone());
        error
    }

    #[cold]
    fn next_block(&mut self) -> Result<Option<Record>, TraceError> {
        match &self.state {
            ReadState::Reading => {}
            ReadState::Ended(_) => return Ok(None),
            ReadState::Failed(error) => return Err(error.clone()),
        }
        match self.read_part() {
            Ok(Some(totals)) => {
                self.state = ReadState::Ended(totals);
                Ok(None)
            }
            Ok(None) => self.next_record(),
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Reads a block and returns `None`, or reads footer and trailer and returns the totals.
    fn read_part(&mut self) -> Result<Option<Totals>, TraceError> {
        let start = self.input.offset;
        let mut magic = [0; 4];
        self.input.fill(&mut magic, TracePart::Block)?;
        if magic == BLOCK_MAGIC {
            self.block_offset = start;
            self.read_block()?;
            return Ok(None);
        }
        if magic != FOOTER_MAGIC {
            return Err(malformed(
                start,
                TracePart::Block,
                "neither a block nor a footer begins here",
            ));
        }
        let totals = self.read_footer()?;
        self.counted.distinct_pages = totals.distinct_pages;
        self.counted.digest = self.digest.digest();
        let counted = Totals { time: totals.time, ..self.counted };
        if totals != counted || totals.time < self.counted.time {
            return Err(malformed(
                start,
                TracePart::Footer,
                "its totals differ from those of the records",
            ));
        }
        if totals.distinct_pages > totals.records {
            return Err(malformed(
                start,
                TracePart::Footer,
                "it has more distinct pages than records",
            ));
        }
        let mut byte = [0];
        if self.input.read_some(&mut byte)? != 0 {
            return Err(TraceError::at_byte(self.input.offset - 1, TraceProblem::Trailing));
        }
        Ok(Some(totals))
    }

    fn read_block(&mut self) -> Result<(), TraceError> {
        let start = self.block_offset;
        let mut prefix = [0; block::PREFIX];
        prefix[..4].copy_from_slice(&BLOCK_MAGIC);
        self.input.fill(&mut prefix[4..], TracePart::Block)?;
        let field = |at: usize| {
            u32::from_le_bytes(prefix[at..at + 4].try_into().expect("4 bytes")) as usize
        };
        let (records, raw_len, stored_len) = (field(4), field(8), field(12));
        if records == 0 || records > MAX_BLOCK_RECORDS {
            return Err(malformed(
                start,
                TracePart::Block,
                "its number of records is out of range",
            ));
        }
        if raw_len > block::MAX_RAW || stored_len > block::MAX_STORED {
            return Err(malformed(start, TracePart::Block, "its length is out of range"));
        }
        self.stored.resize(stored_len, 0);
        self.input.fill(&mut self.stored, TracePart::Block)?;
        let mut stored_checksum = [0; CHECKSUM];
        self.input.fill(&mut stored_checksum, TracePart::Block)?;
        let stored = u64::from_le_bytes(stored_checksum);
        let computed = block_checksum(&prefix, &self.stored);
        if stored != computed && CHECKSUMS_COUNT {
            let problem = TraceProblem::Checksum { part: TracePart::Block, stored, computed };
            return Err(TraceError::at_byte(start, problem));
        }
        self.digest.update(&stored_checksum);
        let raw = self.decoder.buffer();
        raw.clear();
        raw.reserve(raw_len);
        let unpacked = self.decompressor.decompress_to_buffer(&self.stored, raw);
        if unpacked.ok() != Some(raw_len) {
            return Err(malformed(start, TracePart::Block, "its decompressed length is wrong"));
        }
        self.decoder.begin(records).map_err(|what| malformed(start, TracePart::Block, what))
    }

    /// Reads the footer (after its magic, which has been read) and the trailer.
    fn read_footer(&mut self) -> Result<Totals, TraceError> {
        let start = self.input.offset - 4;
        let mut bytes = FOOTER_MAGIC.to_vec();
        bytes.resize(FOOTER_PREFIX, 0);
        self.input.fill(&mut bytes[4..], TracePart::Footer)?;
        let len = u32::from_le_bytes(bytes[4..].try_into().expect("4 bytes")) as usize;
        if len > MAX_FOOTER_BODY {
            return Err(malformed(start, TracePart::Footer, "its length is out of range"));
        }
        bytes.resize(FOOTER_PREFIX + len, 0);
        self.input.fill(&mut bytes[FOOTER_PREFIX..], TracePart::Footer)?;
        self.input.fill_checksum(&bytes, start, TracePart::Footer)?;
        let totals = Totals::decode(&bytes[FOOTER_PREFIX..])
            .ok_or_else(|| malformed(start, TracePart::Footer, "a field is missing or too long"))?;
        let trailer_offset = self.input.offset;
        let mut trailer = [0; TRAILER];
        self.input.fill(&mut trailer, TracePart::Trailer)?;
        if trailer[..8] != start.to_le_bytes() || trailer[8..] != END_MAGIC {
            return Err(malformed(
                trailer_offset,
                TracePart::Trailer,
                "it does not match the footer",
            ));
        }
        Ok(totals)
    }
}

fn read_header<R: Read>(input: &mut CountedInput<R>) -> Result<(Header, u64), TraceError> {
    let mut bytes = vec![0; HEADER_PREFIX];
    let got = input.read_some(&mut bytes)?;
    let is_magic = bytes[..got.min(MAGIC.len())] == MAGIC[..got.min(MAGIC.len())];
    if got == 0 || !is_magic {
        // The prefix is too short for a guess.
        let mut more = [0; 256];
        let extra = input.read_some(&mut more)?;
        bytes.truncate(got);
        bytes.extend_from_slice(&more[..extra]);
        let looks_like = FileType::of(&bytes);
        return Err(TraceError::at_byte(0, TraceProblem::NotATrace { looks_like }));
    }
    if got < HEADER_PREFIX {
        return Err(TraceError::at_byte(
            input.offset,
            TraceProblem::Truncated { part: TracePart::Header },
        ));
    }
    let version = u16::from_le_bytes(bytes[8..10].try_into().expect("2 bytes"));
    if ![VERSION, VERSION_OF_REQUESTS].contains(&version) {
        return Err(TraceError::at_byte(8, TraceProblem::Version { found: version }));
    }
    if bytes[10..12] != [0, 0] {
        return Err(malformed(10, TracePart::Header, "unknown flags"));
    }
    let len = u32::from_le_bytes(bytes[12..].try_into().expect("4 bytes")) as usize;
    if len > MAX_HEADER_BODY {
        return Err(malformed(12, TracePart::Header, "its length is out of range"));
    }
    bytes.resize(HEADER_PREFIX + len, 0);
    input.fill(&mut bytes[HEADER_PREFIX..], TracePart::Header)?;
    let checksum = input.fill_checksum(&bytes, 0, TracePart::Header)?;
    let header = Header::decode(version, &bytes[HEADER_PREFIX..])
        .map_err(|what| malformed(HEADER_PREFIX as u64, TracePart::Header, what))?;
    Ok((header, checksum))
}

/// An input with its read position.
struct CountedInput<R> {
    inner: R,
    offset: u64,
}

impl<R: Read> CountedInput<R> {
    /// Reads until the buffer is full or the input ends; returns the number of bytes.
    fn read_some(&mut self, buffer: &mut [u8]) -> Result<usize, TraceError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.inner.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.offset += filled as u64;
        Ok(filled)
    }

    /// Fills the buffer. The error gives the byte at which the input ends.
    fn fill(&mut self, buffer: &mut [u8], part: TracePart) -> Result<(), TraceError> {
        if self.read_some(buffer)? < buffer.len() {
            return Err(TraceError::at_byte(self.offset, TraceProblem::Truncated { part }));
        }
        Ok(())
    }

    /// Reads a checksum and compares it with that of `bytes`, which start at offset `start`.
    fn fill_checksum(
        &mut self,
        bytes: &[u8],
        start: u64,
        part: TracePart,
    ) -> Result<u64, TraceError> {
        let mut stored = [0; CHECKSUM];
        self.fill(&mut stored, part)?;
        let stored = u64::from_le_bytes(stored);
        let computed = checksum(bytes);
        if stored != computed && CHECKSUMS_COUNT {
            return Err(TraceError::at_byte(
                start,
                TraceProblem::Checksum { part, stored, computed },
            ));
        }
        Ok(computed)
    }
}
