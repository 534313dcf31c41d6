//! Types for the parts of a `.ptt` file, and the encoding of its header and footer.
//! docs/trace-format.md has the layout byte by byte; `block` encodes the records.

use std::fmt;

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{FileType, TraceError, TracePart, TraceProblem};
#[cfg(feature = "import")]
use crate::import::Format;
use crate::varint;

/// First bytes of a file. They are not text, and a transfer that converts line ends damages them.
pub const MAGIC: [u8; 8] = *b"\x89PTT\r\n\x1a\n";
/// The version of a trace of a program, and of older traces of requests.
pub const VERSION: u16 = 1;
/// The version of a trace of requests, whose records have the bytes of the requests.
pub const VERSION_OF_REQUESTS: u16 = 2;
/// First bytes of a block of records.
pub const BLOCK_MAGIC: [u8; 4] = *b"PTTB";
/// First bytes of the footer.
pub const FOOTER_MAGIC: [u8; 4] = *b"PTTF";
/// Last bytes of a file.
pub const END_MAGIC: [u8; 8] = *b"PTT-END\n";

/// Bytes in a page.
pub const PAGE_SIZE: u32 = 4096;
/// Most regions in a trace.
pub const MAX_REGIONS: usize = 1 << 16;
/// Most pages in all regions together: 64 TiB.
pub const MAX_PAGES: u64 = 1 << 34;
/// Longest name or source text, in bytes.
pub const MAX_TEXT: usize = 4096;
/// Most records in a block.
pub const MAX_BLOCK_RECORDS: usize = 1 << 17;
/// Longest header body, in bytes; the writer returns an error above it.
pub(crate) const MAX_HEADER_BODY: usize = 8 << 20;
/// Longest footer body, in bytes.
pub(crate) const MAX_FOOTER_BODY: usize = 128;

/// Magic, version, flags, length of the body.
pub(crate) const HEADER_PREFIX: usize = 16;
/// Magic, length of the body.
pub(crate) const FOOTER_PREFIX: usize = 8;
/// Offset of the footer, end magic.
pub(crate) const TRAILER: usize = 16;
/// A checksum (xxh3, 64 bits, little-endian).
pub(crate) const CHECKSUM: usize = 8;

/// Unit of the times in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Instructions executed: CPU time.
    Instructions,
    /// Nanoseconds of wall-clock time, at which requests arrive.
    Nanoseconds,
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Clock::Instructions => "instructions",
            Clock::Nanoseconds => "nanoseconds",
        })
    }
}

/// Type of the pages of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionKind {
    /// Anonymous memory.
    Anon,
    /// Pages of a file.
    File {
        /// Identity of the file: regions with equal keys are of the same file.
        key: u64,
        /// Mapped executable.
        executable: bool,
    },
}

/// A contiguous range of pages of one type: a mapping or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceRegion {
    /// Shown to the user only: a path, `heap`, ...
    pub name: String,
    pub kind: RegionKind,
    /// Number of pages, at least 1.
    pub pages: u64,
    /// Virtual page number of its first page in the traced program; 0 if there is none. Only
    /// `pagetide trace info` uses it.
    pub start: u64,
}

/// Limits within which the importer merges references (see docs/trace-format.md, "The window").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldWindow {
    /// Most distinct pages in a window.
    pub pages: u32,
    /// Longest window, in units of the clock.
    pub time: u64,
}

/// The part of a trace before its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub version: u16,
    /// Bytes in a page.
    pub page_size: u32,
    pub clock: Clock,
    pub window: FoldWindow,
    /// The command that recorded the trace; shown to the user only.
    pub source: String,
    /// Indexed by region number.
    pub regions: Vec<TraceRegion>,
}

/// A set of access types.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct AccessKinds(u8);

impl AccessKinds {
    pub const NONE: AccessKinds = AccessKinds(0);
    /// Data was read.
    pub const READ: AccessKinds = AccessKinds(1);
    /// Data was written.
    pub const WRITE: AccessKinds = AccessKinds(2);
    /// Instructions were fetched.
    pub const EXECUTE: AccessKinds = AccessKinds(4);

    /// The set with these bits; `None` if any bit but the lowest three is set.
    pub fn from_bits(bits: u8) -> Option<AccessKinds> {
        (bits <= 7).then_some(AccessKinds(bits))
    }

    /// Bit 0 read, bit 1 write, bit 2 execute.
    pub fn bits(self) -> u8 {
        self.0
    }

    #[must_use]
    pub fn union(self, other: AccessKinds) -> AccessKinds {
        AccessKinds(self.0 | other.0)
    }

    /// True if all of `other` is in this set.
    pub fn contains(self, other: AccessKinds) -> bool {
        self.0 & other.0 == other.0
    }

    pub fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for AccessKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |kind, letter| if self.contains(kind) { letter } else { '-' };
        write!(
            f,
            "{}{}{}",
            letter(AccessKinds::READ, 'r'),
            letter(AccessKinds::WRITE, 'w'),
            letter(AccessKinds::EXECUTE, 'x')
        )
    }
}

/// References to one page within one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub region: u32,
    /// Page within the region.
    pub page: u64,
    /// Union of the types of all references.
    pub kinds: AccessKinds,
    /// Number of references, at least 1.
    pub references: u64,
    /// Time from the first reference of the previous record (or the start) to the first reference
    /// of this record.
    pub time: u64,
    /// Bytes of the request that begins with this record. 0 in a record that continues the request
    /// before, and in a trace of [`VERSION`].
    pub bytes: u64,
}

/// Sums over a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub records: u64,
    /// Sum of the references of all records.
    pub references: u64,
    /// Pages with at least one record.
    pub distinct_pages: u64,
    /// Time from start to end, in units of the clock. It includes the time after the first
    /// reference of the last record, which no record has.
    pub time: u64,
    /// Records whose kinds include a write.
    pub writes: u64,
    /// Hash over the checksums of header and blocks; it identifies the content.
    pub digest: u64,
}

impl Header {
    pub fn new(
        clock: Clock,
        window: FoldWindow,
        source: String,
        regions: Vec<TraceRegion>,
    ) -> Header {
        let version = match clock {
            Clock::Instructions => VERSION,
            Clock::Nanoseconds => VERSION_OF_REQUESTS,
        };
        Header { version, page_size: PAGE_SIZE, clock, window, source, regions }
    }

    /// True for a trace of cache requests (objects), false for one of a program's memory
    /// references. Only request traces use wall-clock time. Adjacent objects are unrelated,
    /// although they share a file.
    pub fn is_request_trace(&self) -> bool {
        self.clock == Clock::Nanoseconds
    }

    /// True if the records have the bytes of the requests.
    pub fn has_requests(&self) -> bool {
        self.version == VERSION_OF_REQUESTS
    }

    /// Pages in all regions.
    pub fn pages(&self) -> u64 {
        self.regions.iter().map(|region| region.pages).sum()
    }

    /// Encodes prefix, body and checksum.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, TraceError> {
        let malformed =
            |what| TraceError::whole(TraceProblem::Malformed { part: TracePart::Header, what });
        let mut body = Vec::new();
        varint::put(&mut body, u64::from(self.page_size));
        body.push(match self.clock {
            Clock::Instructions => 0,
            Clock::Nanoseconds => 1,
        });
        varint::put(&mut body, u64::from(self.window.pages));
        varint::put(&mut body, self.window.time);
        varint::put_bytes(&mut body, self.source.as_bytes());
        varint::put(&mut body, self.regions.len() as u64);
        for region in &self.regions {
            varint::put_bytes(&mut body, region.name.as_bytes());
            match region.kind {
                RegionKind::Anon => body.push(0),
                RegionKind::File { key, executable } => {
                    body.push(if executable { 2 } else { 1 });
                    body.extend_from_slice(&key.to_le_bytes());
                }
            }
            varint::put(&mut body, region.pages);
            varint::put(&mut body, region.start);
        }
        self.check().map_err(malformed)?;
        if body.len() > MAX_HEADER_BODY {
            return Err(malformed("too long"));
        }
        let mut bytes = Vec::with_capacity(HEADER_PREFIX + body.len() + CHECKSUM);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&0u16.to_le_bytes());
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&body);
        let checksum = xxh3_64(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        Ok(bytes)
    }

    /// Decodes a body. The caller has verified its checksum.
    pub(crate) fn decode(version: u16, mut body: &[u8]) -> Result<Header, &'static str> {
        const SHORT: &str = "a field is missing or too long";
        let bytes = &mut body;
        let page_size = varint::take(bytes).ok_or(SHORT)?;
        let clock = match take_byte(bytes).ok_or(SHORT)? {
            0 => Clock::Instructions,
            1 => Clock::Nanoseconds,
            _ => return Err("unknown clock"),
        };
        let window = FoldWindow {
            pages: varint::take(bytes).and_then(|n| n.try_into().ok()).ok_or(SHORT)?,
            time: varint::take(bytes).ok_or(SHORT)?,
        };
        let source = take_text(bytes).ok_or(SHORT)?;
        let count = varint::take(bytes).ok_or(SHORT)?;
        if count > MAX_REGIONS as u64 {
            return Err("too many regions");
        }
        let mut regions = Vec::new();
        for _ in 0..count {
            let name = take_text(bytes).ok_or(SHORT)?;
            let kind = match take_byte(bytes).ok_or(SHORT)? {
                0 => RegionKind::Anon,
                code @ (1 | 2) => {
                    let (key, rest) = bytes.split_first_chunk::<8>().ok_or(SHORT)?;
                    *bytes = rest;
                    RegionKind::File { key: u64::from_le_bytes(*key), executable: code == 2 }
                }
                _ => return Err("unknown region kind"),
            };
            let pages = varint::take(bytes).ok_or(SHORT)?;
            let start = varint::take(bytes).ok_or(SHORT)?;
            regions.push(TraceRegion { name, kind, pages, start });
        }
        if !bytes.is_empty() {
            return Err("bytes after the last region");
        }
        let page_size = page_size.try_into().map_err(|_| "the page size is not 4096")?;
        let header = Header { version, page_size, clock, window, source, regions };
        header.check()?;
        Ok(header)
    }

    /// Verifies the limits of a header, for reader and writer.
    fn check(&self) -> Result<(), &'static str> {
        if self.page_size != PAGE_SIZE {
            return Err("the page size is not 4096");
        }
        if self.window.pages == 0 {
            return Err("the window has no pages");
        }
        if self.regions.len() > MAX_REGIONS {
            return Err("too many regions");
        }
        let mut texts = self.regions.iter().map(|region| &region.name);
        if self.source.len() > MAX_TEXT || texts.any(|name| name.len() > MAX_TEXT) {
            return Err("a name is too long");
        }
        let mut pages = 0u64;
        for region in &self.regions {
            if region.pages == 0 {
                return Err("a region has no pages");
            }
            pages = pages.saturating_add(region.pages);
        }
        if pages > MAX_PAGES {
            return Err("too many pages");
        }
        Ok(())
    }
}

impl Totals {
    /// Encodes prefix, body and checksum.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        for value in [self.records, self.references, self.distinct_pages, self.time, self.writes] {
            varint::put(&mut body, value);
        }
        body.extend_from_slice(&self.digest.to_le_bytes());
        let mut bytes = Vec::with_capacity(FOOTER_PREFIX + body.len() + CHECKSUM);
        bytes.extend_from_slice(&FOOTER_MAGIC);
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&body);
        let checksum = xxh3_64(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Decodes a body. The caller has verified its checksum.
    pub(crate) fn decode(mut body: &[u8]) -> Option<Totals> {
        let bytes = &mut body;
        let totals = Totals {
            records: varint::take(bytes)?,
            references: varint::take(bytes)?,
            distinct_pages: varint::take(bytes)?,
            time: varint::take(bytes)?,
            writes: varint::take(bytes)?,
            digest: u64::from_le_bytes((*bytes).try_into().ok()?),
        };
        Some(totals)
    }
}

fn take_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (&byte, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(byte)
}

fn take_text(bytes: &mut &[u8]) -> Option<String> {
    let text = varint::take_bytes(bytes, MAX_TEXT)?;
    String::from_utf8(text.to_vec()).ok()
}

impl FileType {
    /// Guesses the type of a file from its first few hundred bytes.
    pub fn of(start: &[u8]) -> FileType {
        if start.is_empty() {
            return FileType::Empty;
        }
        if start.starts_with(&MAGIC) {
            return FileType::Ptt;
        }
        if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            return FileType::Zstd;
        }
        if start.starts_with(&[0x1f, 0x8b, 8]) {
            return FileType::Gzip;
        }
        let is_text = |byte: &u8| (b' '..0x7f).contains(byte) || b"\t\r\n".contains(byte);
        if !start.iter().all(is_text) {
            return FileType::Binary;
        }
        #[cfg(feature = "import")]
        if let Some(format) = Format::marked(start) {
            return FileType::Recording(format);
        }
        FileType::Text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WINDOW: FoldWindow = FoldWindow { pages: 64, time: 1000 };

    fn region(pages: u64) -> TraceRegion {
        TraceRegion { name: "r".into(), kind: RegionKind::Anon, pages, start: 0 }
    }

    #[test]
    fn headers_that_cannot_be_are_not_written() {
        let header = |regions| Header::new(Clock::Instructions, WINDOW, String::new(), regions);
        assert!(header(vec![region(1)]).encode().is_ok());
        assert!(header(vec![region(MAX_PAGES)]).encode().is_ok());
        assert!(header(vec![region(0)]).encode().is_err());
        assert!(header(vec![region(MAX_PAGES), region(1)]).encode().is_err());
        assert!(header(vec![region(u64::MAX), region(u64::MAX)]).encode().is_err());
        assert!(header(vec![region(1); MAX_REGIONS]).encode().is_ok());
        assert!(header(vec![region(1); MAX_REGIONS + 1]).encode().is_err());
        let long = TraceRegion { name: "x".repeat(MAX_TEXT + 1), ..region(1) };
        assert!(header(vec![long]).encode().is_err());
        let no_window =
            Header { window: FoldWindow { pages: 0, time: 0 }, ..header(vec![region(1)]) };
        assert!(no_window.encode().is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_decoding_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Header::decode(VERSION, &bytes);
            let _ = Totals::decode(&bytes);
        }

        #[test]
        fn a_damaged_body_is_refused_or_another_header(
            at in any::<prop::sample::Index>(),
            change in 1u8..=255,
        ) {
            let kind = RegionKind::File { key: 1 << 60, executable: true };
            let file = TraceRegion { kind, ..region(1000) };
            let header =
                Header::new(Clock::Instructions, WINDOW, "s".into(), vec![region(5), file]);
            let bytes = header.encode().unwrap();
            let mut body = bytes[HEADER_PREFIX..bytes.len() - CHECKSUM].to_vec();
            let at = at.index(body.len());
            body[at] ^= change;
            if let Ok(other) = Header::decode(VERSION, &body) {
                prop_assert_ne!(other, header);
            }
        }
    }
}
