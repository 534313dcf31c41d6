//! Importer for libCacheSim's oracleGeneral: 24 little-endian bytes a request.
//!
//! u32 time in seconds, u64 object, u32 size in bytes, i64 index of the next request for the same
//! object (-1: none), which is ignored.

use super::formats::FormatSpec;
use super::objects::{ObjectPages, ObjectRequest};
use super::source::ImportInput;
use super::spool::Spool;
use super::{wrong_format, ImportOptions, ImportResult};
use crate::error::{FileType, TraceError, TraceProblem};
use crate::format::{AccessKinds, FoldWindow};

/// Entry in the list of importers.
pub(super) const FORMAT: FormatSpec = FormatSpec {
    name: "oracle-general",
    what: "libCacheSim's 24-byte records, plain or zstd-compressed",
    contents: "oracleGeneral",
    is_text: false,
    is_marked: |_| false,
    window: FoldWindow { pages: 1, time: 0 },
    options: &["time-divisor"],
    if_empty: "download or record it again",
};

/// Bytes in a request.
const RECORD: usize = 24;
/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

pub(super) fn read(
    source: &mut ImportInput<'_>,
    options: &ImportOptions,
    spool: &mut Spool<'_>,
) -> Result<ImportResult, TraceError> {
    let start = source.peek(256)?;
    let start = &start[..start.len().min(256)];
    if !matches!(FileType::of(start), FileType::Binary) {
        return Err(wrong_format(&FORMAT, start));
    }
    let mut objects = ObjectPages::new(options);
    let mut records = 0;
    loop {
        let byte = source.bytes();
        let bytes = source.peek(RECORD)?;
        let Some(bytes) = bytes.first_chunk::<RECORD>() else {
            if bytes.is_empty() {
                break;
            }
            let end = byte + bytes.len() as u64;
            return Err(TraceError::at_byte(
                end,
                TraceProblem::CutShort { what: "24-byte request" },
            ));
        };
        let request = decode(bytes);
        source.take(RECORD);
        records += 1;
        let place = |problem| TraceError::at_byte(byte, problem);
        objects.request(request, spool, place)?;
    }
    Ok(objects.finish(records, source.bytes(), &[]))
}

fn decode(bytes: &[u8; RECORD]) -> ObjectRequest {
    let four = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let object = u64::from_le_bytes(bytes[4..12].try_into().expect("8 bytes"));
    ObjectRequest {
        time: Some(u64::from(four(0)) * SECOND),
        tenant: 0,
        object: u128::from(object),
        size: u64::from(four(12)),
        kinds: AccessKinds::READ,
    }
}
