//! Importer for the output of `valgrind --tool=lackey --trace-mem=yes`: one reference per line.
//!
//! `I  04016b80,3` instruction, ` L 1ffefffe78,8` load, ` S ...` store, ` M ...` modify: address
//! in hexadecimal, size in bytes. Empty lines are skipped, and so are messages of valgrind, which
//! start with `==`, `--` or `**`. Any other line is an error. The clock counts the `I` lines.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

use super::formats::FormatSpec;
use super::regions::{self, TouchedPage};
use super::source::{ImportInput, InputLine};
use super::spool::Spool;
use super::{wrong_format, ImportOptions, ImportResult, PageLayout};
use crate::error::{quote, FileType, TraceError, TraceProblem};
use crate::format::{AccessKinds, Clock, FoldWindow, PAGE_SIZE};

/// Entry in the list of importers.
pub(super) const FORMAT: FormatSpec = FormatSpec {
    name: "lackey",
    what: "Output of `valgrind --tool=lackey --trace-mem=yes`",
    contents: "lackey output",
    is_text: true,
    is_marked: |start| {
        const REFERENCES: [&[u8]; 4] = [b"I  ", b" L ", b" S ", b" M "];
        let is_one = |line: &[u8]| REFERENCES.iter().any(|prefix| line.starts_with(prefix));
        start.starts_with(b"==") || start.split(|&byte| byte == b'\n').any(is_one)
    },
    window: FoldWindow { pages: 512, time: 2_000_000 },
    options: &["maps"],
    if_empty: "record with `valgrind --tool=lackey --trace-mem=yes`",
};

/// Largest access accepted; lackey itself stops at 512 bytes.
const MAX_ACCESS: u64 = PAGE_SIZE as u64;
/// Entries of the cache in front of the page table.
const CACHE: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LackeyReference {
    kinds: AccessKinds,
    address: u64,
    size: u64,
}

pub(super) fn read(
    source: &mut ImportInput<'_>,
    options: &ImportOptions,
    spool: &mut Spool<'_>,
) -> Result<ImportResult, TraceError> {
    let start = source.peek(256)?;
    let start = &start[..start.len().min(256)];
    if matches!(
        FileType::of(start),
        FileType::Ptt | FileType::Gzip | FileType::Binary | FileType::Empty
    ) {
        return Err(wrong_format(&FORMAT, start));
    }
    let mut table = PageNumbers::new();
    let mut instructions = 0u64;
    let mut skipped = 0;
    while let Some(line) = source.line()? {
        let Some(reference) = parse(line.text) else {
            if is_noise(line.text) {
                skipped += 1;
                continue;
            }
            return Err(bad_line(line));
        };
        let at_line = |problem| TraceError::at_line(line.number, line.byte, problem);
        instructions += u64::from(reference.kinds == AccessKinds::EXECUTE);
        // The first instruction runs at time 0.
        let now = instructions.saturating_sub(1);
        let first = reference.address / u64::from(PAGE_SIZE);
        let last = (reference.address + (reference.size - 1)) / u64::from(PAGE_SIZE);
        for address in first..=last {
            let id = table.touch(address, reference.kinds, spool).map_err(at_line)?;
            spool.touch(id, reference.kinds, now, 0)?;
        }
    }
    let mut identity = options.source.clone().into_bytes();
    for value in [instructions, source.bytes(), table.pages.len() as u64] {
        identity.extend_from_slice(&value.to_le_bytes());
    }
    let layout = regions::derive(&table.into_touched(), options.maps.as_ref(), xxh3_64(&identity));
    Ok(ImportResult {
        layout: PageLayout::Derived(layout),
        clock: Clock::Instructions,
        records: source.lines(),
        skipped,
        disordered: 0,
        has_header: false,
        end: instructions,
    })
}

/// Parses a line; `None` if it is not a reference.
#[inline]
fn parse(text: &[u8]) -> Option<LackeyReference> {
    let (head, mut rest) = text.split_first_chunk::<3>()?;
    let kinds = match head {
        b"I  " => AccessKinds::EXECUTE,
        b" L " => AccessKinds::READ,
        b" S " => AccessKinds::WRITE,
        b" M " => AccessKinds::READ.union(AccessKinds::WRITE),
        _ => return None,
    };
    let mut address = 0u64;
    let mut digits = 0;
    while let Some((&byte, after)) = rest.split_first() {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ => break,
        };
        address = address << 4 | u64::from(digit);
        digits += 1;
        rest = after;
    }
    if digits == 0 || digits > 16 {
        return None;
    }
    let (b',', mut rest) = rest.split_first()? else { return None };
    let mut size = 0u64;
    if rest.is_empty() || rest.len() > 5 {
        return None;
    }
    while let Some((&byte, after)) = rest.split_first() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        size = size * 10 + u64::from(digit);
        rest = after;
    }
    let is_sane = (1..=MAX_ACCESS).contains(&size) && address.checked_add(size - 1).is_some();
    is_sane.then_some(LackeyReference { kinds, address, size })
}

fn is_noise(text: &[u8]) -> bool {
    let prefixes: [&[u8]; 3] = [b"==", b"--", b"**"];
    text.is_empty() || prefixes.iter().any(|prefix| text.starts_with(prefix))
}

fn bad_line(line: InputLine<'_>) -> TraceError {
    let problem = TraceProblem::BadText {
        what: "lackey line",
        text: quote(line.text),
        expected: "`I  ADDRESS,SIZE` (or ` L`, ` S`, ` M`) with a size from 1 to 4096",
        hint: Some("write valgrind's output to its own file, with --log-file or --log-fd"),
    };
    TraceError::at_line(line.number, line.byte, problem)
}

/// Virtual page -> spool page number (order of first appearance).
struct PageNumbers {
    ids: BTreeMap<u64, u32>,
    /// All access types of each page, by spool page number.
    pages: Vec<AccessKinds>,
    /// Direct-mapped cache of `ids`: (page + 1, number). 0 marks an empty slot.
    cache: Vec<(u64, u32)>,
}

impl PageNumbers {
    fn new() -> PageNumbers {
        PageNumbers { ids: BTreeMap::new(), pages: Vec::new(), cache: vec![(0, 0); CACHE] }
    }

    #[inline]
    fn touch(
        &mut self,
        page: u64,
        kinds: AccessKinds,
        spool: &mut Spool<'_>,
    ) -> Result<u32, TraceProblem> {
        let slot = page as usize % CACHE;
        let (key, mut id) = self.cache[slot];
        if key != page + 1 {
            id = self.find(page, spool)?;
            self.cache[slot] = (page + 1, id);
        }
        let uses = &mut self.pages[id as usize];
        *uses = uses.union(kinds);
        Ok(id)
    }

    #[cold]
    fn find(&mut self, page: u64, spool: &mut Spool<'_>) -> Result<u32, TraceProblem> {
        if let Some(&id) = self.ids.get(&page) {
            return Ok(id);
        }
        let id = spool.add_pages(1)?;
        assert_eq!(id as usize, self.pages.len());
        self.ids.insert(page, id);
        self.pages.push(AccessKinds::NONE);
        Ok(id)
    }

    fn into_touched(self) -> Vec<TouchedPage> {
        let PageNumbers { ids, pages, .. } = self;
        let touched =
            |(address, id): (u64, u32)| TouchedPage { address, id, kinds: pages[id as usize] };
        ids.into_iter().map(touched).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_four_kinds() {
        let reference = |kinds, address, size| Some(LackeyReference { kinds, address, size });
        let both = AccessKinds::READ.union(AccessKinds::WRITE);
        assert_eq!(parse(b"I  04016b80,3"), reference(AccessKinds::EXECUTE, 0x0401_6b80, 3));
        assert_eq!(parse(b" L 1ffefffe78,8"), reference(AccessKinds::READ, 0x1f_feff_fe78, 8));
        assert_eq!(parse(b" S 0,1"), reference(AccessKinds::WRITE, 0, 1));
        assert_eq!(parse(b" M ffffffffffffffff,1"), reference(both, u64::MAX, 1));
    }

    #[test]
    fn refuses_the_rest() {
        for bad in [
            "",
            "I",
            "I  ",
            "I  ,1",
            "I  12",
            "I  12,",
            "I  12,0",
            "I  12,4097",
            "I  12,x",
            " X 12,1",
            "I 12,1",
            " L ffffffffffffffff,2",
            " L 11112222333344445,1",
            " L 12,1 ",
            " L 12,99999999",
            " L g,1",
            "L 12,1",
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
