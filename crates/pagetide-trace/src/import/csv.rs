//! Importer for csv: text with one request per line. The options that describe the columns have
//! libCacheSim's names.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::str::FromStr;

use csv::{ByteRecord, ReaderBuilder, Terminator};
use xxhash_rust::xxh3::xxh3_128;

use super::formats::FormatSpec;
use super::objects::{ObjectPages, ObjectRequest};
use super::source::{ImportInput, MAX_LINE};
use super::spool::Spool;
use super::{bad_option, wrong_format, ImportOptions, ImportResult, COLUMNS};
use crate::error::{quote, FileType, TraceError, TraceProblem};
use crate::format::{AccessKinds, FoldWindow, MAX_TEXT, PAGE_SIZE};

/// Entry in the list of importers.
pub(super) const FORMAT: FormatSpec = FormatSpec {
    name: "csv",
    what: "Text with one request a line, see the csv options",
    contents: "csv",
    is_text: true,
    is_marked: |_| false,
    window: FoldWindow { pages: 1, time: 0 },
    options: &[
        "time-divisor",
        "trace-type-params",
        "time-col",
        "obj-id-col",
        "obj-size-col",
        "op-col",
        "tenant-col",
        "delimiter",
        "has-header",
        "obj-id-is-num",
    ],
    if_empty: "check that the columns are the right ones",
};

/// Decimals of a second that are read; further digits are ignored.
const FRACTION_DIGITS: u32 = 9;

/// The columns, counted from 1, and the form of their text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsvOptions {
    /// `time-col`: seconds, with up to nine decimals. `None`: no time passes.
    pub time_col: Option<usize>,
    /// `obj-id-col`: a number, or any text unless `obj-id-is-num`. `None`: the only column.
    pub obj_id_col: Option<usize>,
    /// `obj-size-col`: bytes. `None`: one page.
    pub obj_size_col: Option<usize>,
    /// `op-col`. `None`: all requests are reads.
    pub op_col: Option<usize>,
    /// `tenant-col`: each tenant has its own objects, in its own region. `None`: one tenant.
    pub tenant_col: Option<usize>,
    /// `delimiter`. `None`: the first of tab, comma, bar and semicolon that the first line has.
    pub delimiter: Option<u8>,
    /// `has-header`: the first line has column names. `None`: guess; it is a header if a column
    /// that must be a number does not start with a digit, or if no column does and one of the
    /// second line does.
    pub has_header: Option<bool>,
    /// `obj-id-is-num`: objects must be numbers.
    pub obj_id_is_num: bool,
}

impl FromStr for CsvOptions {
    type Err = TraceError;

    /// Parses libCacheSim's form: `time-col=1,obj-id-col=2,obj-size-col=3,delimiter=,`.
    fn from_str(text: &str) -> Result<CsvOptions, TraceError> {
        let mut options = CsvOptions::default();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let form = "`KEY=VALUE,KEY=VALUE,...`";
            let Some((key, after)) = rest.split_once('=') else {
                return Err(bad_option("csv options", rest, form));
            };
            let (value, after) = if key.trim() == "delimiter" {
                // The delimiter may be the comma, which also separates the options.
                let end = after.chars().next().map_or(0, char::len_utf8);
                let end = if after.starts_with("\\t") { 2 } else { end };
                let (value, after) = after.split_at(end);
                (value, after.strip_prefix(',').unwrap_or(after))
            } else {
                let (value, after) = after.split_once(',').unwrap_or((after, ""));
                (value.trim(), after)
            };
            options.set(key.trim(), value)?;
            rest = after.trim_start();
        }
        Ok(options)
    }
}

impl CsvOptions {
    /// Sets one option by its libCacheSim name.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), TraceError> {
        let column = |what| {
            let number = value.parse().ok().filter(|&number: &usize| number > 0);
            number.ok_or_else(|| bad_option(what, value, "a column number (from 1)"))
        };
        let boolean = |what| match value.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" => Ok(true),
            "false" | "0" | "no" => Ok(false),
            _ => Err(bad_option(what, value, "`true` or `false`")),
        };
        match key {
            "time-col" => self.time_col = Some(column("time-col")?),
            "obj-id-col" => self.obj_id_col = Some(column("obj-id-col")?),
            "obj-size-col" => self.obj_size_col = Some(column("obj-size-col")?),
            "op-col" => self.op_col = Some(column("op-col")?),
            "tenant-col" => self.tenant_col = Some(column("tenant-col")?),
            "has-header" => self.has_header = Some(boolean("has-header")?),
            "obj-id-is-num" => self.obj_id_is_num = boolean("obj-id-is-num")?,
            "delimiter" => {
                self.delimiter = Some(match value.as_bytes() {
                    b"\\t" => b'\t',
                    &[byte] if byte.is_ascii() && !b"\r\n\"".contains(&byte) => byte,
                    _ => {
                        return Err(bad_option("delimiter", value, "one ASCII character or `\\t`"))
                    }
                });
            }
            // libCacheSim has these too; they do not affect memory.
            "ttl-col" | "cnt-col" | "obj-cost-col" => {}
            _ => {
                let known = "one of time-col, obj-id-col, obj-size-col, op-col, tenant-col, \
                             delimiter, has-header, obj-id-is-num";
                return Err(bad_option("csv option", key, known));
            }
        }
        Ok(())
    }
}

pub(super) fn read(
    source: &mut ImportInput<'_>,
    options: &ImportOptions,
    spool: &mut Spool<'_>,
) -> Result<ImportResult, TraceError> {
    let columns = &options.csv;
    let start = source.peek(1 << 12)?;
    let start = &start[..start.len().min(1 << 12)];
    match FileType::of(&start[..start.len().min(256)]) {
        FileType::Text => {}
        // Object names may be in any encoding.
        FileType::Binary if !start.contains(&0) => {}
        _ => return Err(wrong_format(&FORMAT, start)),
    }
    let delimiter = columns.delimiter.unwrap_or_else(|| guess_delimiter(start));
    let mut builder = ReaderBuilder::new();
    builder
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .buffer_capacity(1 << 16)
        .terminator(Terminator::CRLF);
    let mut first_lines = builder.from_reader(start).into_byte_records().map_while(Result::ok);
    let (first, second) = (first_lines.next(), first_lines.next());
    let first = first.unwrap_or_default();
    let id_column = match columns.obj_id_col {
        Some(column) => column,
        None if first.len() <= 1 => 1,
        None => {
            let line = start.split(|&byte| byte == b'\n').next().unwrap_or_default();
            let problem = TraceProblem::NoObjectColumn { line: quote(line.trim_ascii_end()) };
            return Err(TraceError::at_line(1, 0, problem));
        }
    };
    let has_header = Fields { record: &first, columns, id_column }.is_header(second.as_ref());
    let mut reader = builder.from_reader(LineGuard { source, run: 0, is_over: false });
    let mut record = ByteRecord::new();
    let mut objects = ObjectPages::new(options);
    let mut tenants = Tenants::default();
    let mut records = 0;
    loop {
        let more = reader.read_byte_record(&mut record);
        let position = record.position().unwrap_or(reader.position());
        let (line, byte) = (position.line(), position.byte());
        let place = |problem| TraceError::at_line(line, byte, problem);
        if reader.get_ref().is_over {
            let (value, limit) = (MAX_LINE as u64 + 1, MAX_LINE as u64);
            return Err(place(TraceProblem::TooLarge { what: "length of a line", value, limit }));
        }
        match more {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return Err(refuse(error, place)),
        }
        records += 1;
        if records == 1 && has_header {
            continue;
        }
        let fields = Fields { record: &record, columns, id_column };
        let Some(kinds) = fields.kinds().map_err(place)? else {
            objects.skip();
            continue;
        };
        let request = ObjectRequest {
            time: fields.time().map_err(place)?,
            tenant: tenants.number(fields.tenant().map_err(place)?),
            object: fields.object().map_err(place)?,
            size: fields.size().map_err(place)?,
            kinds,
        };
        objects.request(request, spool, place)?;
    }
    let bytes = reader.get_ref().source.bytes();
    Ok(ImportResult { has_header, ..objects.finish(records, bytes, &tenants.names) })
}

fn guess_delimiter(start: &[u8]) -> u8 {
    let line = start.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let candidates = [b'\t', b',', b'|', b';'];
    candidates.into_iter().find(|candidate| line.contains(candidate)).unwrap_or(b',')
}

/// Converts an error of the csv crate. For a byte record it can only be an I/O error.
fn refuse(error: csv::Error, place: impl Fn(TraceProblem) -> TraceError) -> TraceError {
    let message = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(error) => match TraceError::unwrap_io(error) {
            Ok(error) => error,
            Err(error) => place(TraceProblem::Io { kind: error.kind(), message }),
        },
        _ => place(TraceProblem::Io { kind: io::ErrorKind::InvalidData, message }),
    }
}

/// One line, interpreted by the options.
struct Fields<'a> {
    record: &'a ByteRecord,
    columns: &'a CsvOptions,
    id_column: usize,
}

impl<'a> Fields<'a> {
    fn get(&self, option: &'static str, column: usize) -> Result<&'a [u8], TraceProblem> {
        let present = self.record.len();
        let field = self.record.get(column - 1);
        let field = field.ok_or(TraceProblem::MissingColumn { option, column, present })?;
        Ok(field.trim_ascii())
    }

    /// Whether this first line has the names of the columns.
    fn is_header(&self, second: Option<&ByteRecord>) -> bool {
        if let Some(has_header) = self.columns.has_header {
            return has_header;
        }
        let is_number = |field: &[u8]| field.trim_ascii().first().is_some_and(u8::is_ascii_digit);
        let has_number = |line: &ByteRecord| line.iter().any(is_number);
        let numbers = [
            self.columns.time_col,
            self.columns.obj_size_col,
            self.columns.obj_id_is_num.then_some(self.id_column),
        ];
        let lacks_number =
            |column: usize| !is_number(self.record.get(column - 1).unwrap_or_default());
        numbers.into_iter().flatten().any(lacks_number)
            || !has_number(self.record) && second.is_some_and(has_number)
    }

    fn time(&self) -> Result<Option<u64>, TraceProblem> {
        let Some(column) = self.columns.time_col else { return Ok(None) };
        let text = self.get("time-col", column)?;
        let expected = "a number of seconds such as `12` or `12.345`";
        let bad = || TraceProblem::BadText {
            what: "time-col",
            text: quote(text),
            expected,
            hint: COLUMNS,
        };
        parse_seconds(text).ok_or_else(bad).map(Some)
    }

    fn tenant(&self) -> Result<Option<&'a [u8]>, TraceProblem> {
        self.columns.tenant_col.map(|column| self.get("tenant-col", column)).transpose()
    }

    fn object(&self) -> Result<u128, TraceProblem> {
        let text = self.get("obj-id-col", self.id_column)?;
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<u64>().ok());
        let expected = "a number from 0 to 18446744073709551615";
        match number {
            Some(number) => Ok(u128::from(number)),
            None if self.columns.obj_id_is_num || text.is_empty() => Err(TraceProblem::BadText {
                what: "obj-id-col",
                text: quote(text),
                expected,
                hint: COLUMNS,
            }),
            // A hash collision is less likely than a broken disk. The top bit distinguishes texts
            // from numbers.
            None => Ok(xxh3_128(text) | 1 << 127),
        }
    }

    fn size(&self) -> Result<u64, TraceProblem> {
        let Some(column) = self.columns.obj_size_col else { return Ok(u64::from(PAGE_SIZE)) };
        let text = self.get("obj-size-col", column)?;
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        number.ok_or_else(|| TraceProblem::BadText {
            what: "obj-size-col",
            text: quote(text),
            expected: "a number of bytes",
            hint: COLUMNS,
        })
    }

    /// `None` for operations that do not touch the object's content.
    fn kinds(&self) -> Result<Option<AccessKinds>, TraceProblem> {
        let Some(column) = self.columns.op_col else { return Ok(Some(AccessKinds::READ)) };
        let text = self.get("op-col", column)?;
        let lower = text.to_ascii_lowercase();
        let both = AccessKinds::READ.union(AccessKinds::WRITE);
        match lower.as_slice() {
            b"r" | b"read" | b"get" | b"gets" | b"head" => Ok(Some(AccessKinds::READ)),
            b"w" | b"write" | b"set" | b"add" | b"put" | b"replace" | b"update" | b"cas" => {
                Ok(Some(AccessKinds::WRITE))
            }
            b"append" | b"prepend" | b"incr" | b"decr" => Ok(Some(both)),
            b"delete" | b"nop" => Ok(None),
            _ => Err(TraceProblem::BadText {
                what: "op-col",
                text: quote(text),
                expected: "`read`, `write` or a memcached operation (get, set, delete, ...)",
                hint: COLUMNS,
            }),
        }
    }
}

/// Parses seconds with decimals as nanoseconds. Ignores digits after the ninth decimal.
fn parse_seconds(text: &[u8]) -> Option<u64> {
    let mut parts = text.splitn(2, |&byte| byte == b'.');
    let whole = parts.next()?;
    let fraction = parts.next().unwrap_or_default();
    if whole.is_empty() || !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |value: u64, byte: u8| value.checked_mul(10)?.checked_add(u64::from(byte - b'0'));
    let seconds = whole.iter().try_fold(0, |value, &byte| digit(value, byte))?;
    let digits = fraction.len().min(FRACTION_DIGITS as usize);
    let nanos = fraction[..digits].iter().try_fold(0, |value, &byte| digit(value, byte))?;
    let nanos = nanos * 10u64.pow(FRACTION_DIGITS - digits as u32);
    seconds.checked_mul(10u64.pow(FRACTION_DIGITS))?.checked_add(nanos)
}

/// Numbers the tenants in the order of first appearance.
#[derive(Default)]
struct Tenants {
    numbers: BTreeMap<Vec<u8>, u32>,
    names: Vec<String>,
}

impl Tenants {
    fn number(&mut self, tenant: Option<&[u8]>) -> u32 {
        let Some(tenant) = tenant else { return 0 };
        if let Some(&number) = self.numbers.get(tenant) {
            return number;
        }
        let number = self.names.len() as u32;
        // The request of a tenant above the limit is an error, so no more than one is stored.
        if number <= super::objects::MAX_TENANTS {
            self.numbers.insert(tenant.to_vec(), number);
            let name: String = String::from_utf8_lossy(tenant).chars().take(MAX_TEXT / 4).collect();
            self.names.push(name);
        }
        number
    }
}

/// Ends the input at a line longer than [`MAX_LINE`], which the csv crate would buffer whole.
struct LineGuard<'a, 'b> {
    source: &'a mut ImportInput<'b>,
    /// Bytes since the last line end.
    run: usize,
    is_over: bool,
}

impl Read for LineGuard<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.source.peek(1).map_err(TraceError::into_io)?;
        let count = bytes.len().min(buffer.len());
        let bytes = &bytes[..count];
        for &byte in bytes {
            self.run = if byte == b'\n' { 0 } else { self.run + 1 };
            self.is_over |= self.run > MAX_LINE;
        }
        if self.is_over {
            return Ok(0);
        }
        buffer[..count].copy_from_slice(bytes);
        self.source.take(count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds() {
        assert_eq!(parse_seconds(b"12"), Some(12_000_000_000));
        assert_eq!(parse_seconds(b"0.5"), Some(500_000_000));
        assert_eq!(parse_seconds(b"1.0000000019"), Some(1_000_000_001));
        for bad in ["", ".", "x", "-1", "1.2.3", "1e3", "99999999999999999999"] {
            assert_eq!(parse_seconds(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn options_in_one_text() {
        let options: CsvOptions =
            "time-col=1, obj-id-col=2,obj-size-col=3,delimiter=,,has-header=true".parse().unwrap();
        assert_eq!((options.time_col, options.obj_id_col), (Some(1), Some(2)));
        assert_eq!((options.delimiter, options.has_header), (Some(b','), Some(true)));
        let options: CsvOptions = "obj-id-col=5,delimiter=\\t,ttl-col=3".parse().unwrap();
        assert_eq!((options.obj_id_col, options.delimiter), (Some(5), Some(b'\t')));
        for bad in ["obj-id-col", "obj-id-col=0", "obj-id-col=1,x=2", "delimiter="] {
            assert!(bad.parse::<CsvOptions>().is_err(), "{bad}");
        }
    }
}
