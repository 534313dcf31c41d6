//! Summary of a trace, for `pagetide trace info` and `pagetide check`.

use std::path::Path;

use crate::error::{TraceError, TracePart};
use crate::format::{Header, Record, Totals};
use crate::pages::PageSet;
use crate::places::Places;
use crate::reader::TraceReader;
use crate::writer::malformed;

/// Most slices of [`TraceInfo::timeline`].
pub const SLICES: u64 = 32;

/// Header, totals and timeline of a trace file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceInfo {
    pub header: Header,
    pub totals: Totals,
    /// Length of the file.
    pub bytes: u64,
    /// At most [`SLICES`] equal slices of the trace's time; empty after
    /// [`TraceInfo::read_summary`].
    pub timeline: Vec<TraceSlice>,
}

/// A slice of a trace's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceSlice {
    /// Distinct pages in the slice: its working set.
    pub pages: u64,
    /// Pages that no earlier slice has.
    pub new_pages: u64,
    pub records: u64,
}

impl TraceInfo {
    /// Reads header and footer only, so the time does not depend on the length. If the end of the
    /// file is damaged, reads all records to find the first bad byte.
    pub fn read_summary(path: impl AsRef<Path>) -> Result<TraceInfo, TraceError> {
        let mut reader = TraceReader::open(&path)?;
        match reader.peek_totals() {
            Ok((totals, bytes)) => Ok(TraceInfo {
                header: reader.header().clone(),
                totals,
                bytes,
                timeline: Vec::new(),
            }),
            Err(at_end) => {
                while reader.next_record()?.is_some() {}
                Err(at_end)
            }
        }
    }

    /// Reads and verifies the whole file.
    pub fn scan(path: impl AsRef<Path>) -> Result<TraceInfo, TraceError> {
        let path = path.as_ref();
        let mut info = TraceInfo::read_summary(path)?;
        let mut reader = TraceReader::open(path)?;
        let mut scan = Scan::new(&info);
        while let Some(record) = reader.next_record()? {
            scan.add(&record, reader.time());
        }
        if scan.all.len() != info.totals.distinct_pages {
            let what = "its number of distinct pages differs from that of the records";
            return Err(malformed(info.bytes, TracePart::Footer, what).in_file(path));
        }
        info.timeline = scan.finish();
        Ok(info)
    }
}

/// Builds [`TraceInfo::timeline`].
struct Scan {
    places: Places,
    slice_time: u64,
    slices: Vec<TraceSlice>,
    all: PageSet,
    slice: PageSet,
}

impl Scan {
    fn new(info: &TraceInfo) -> Scan {
        Scan {
            places: Places::new(&info.header),
            slice_time: info.totals.time.div_ceil(SLICES).max(1),
            slices: vec![TraceSlice::default()],
            all: PageSet::default(),
            slice: PageSet::default(),
        }
    }

    fn add(&mut self, record: &Record, time: u64) {
        let wanted = (time / self.slice_time).min(SLICES - 1) as usize;
        while self.slices.len() <= wanted {
            self.close();
            self.slices.push(TraceSlice::default());
        }
        let place = self.places.place(record.region, record.page).expect("a page that was read");
        let slice = self.slices.last_mut().expect("never empty");
        slice.records += 1;
        slice.new_pages += u64::from(self.all.insert(place));
        self.slice.insert(place);
    }

    fn close(&mut self) {
        self.slices.last_mut().expect("never empty").pages = self.slice.len();
        self.slice.clear();
    }

    fn finish(mut self) -> Vec<TraceSlice> {
        self.close();
        self.slices
    }
}
