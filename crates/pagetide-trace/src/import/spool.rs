//! The spool: a temporary file of folded records. It numbers pages in the order of first
//! appearance, because the regions are known only at the end of the input. Then its records are
//! copied to the target with their regions.
//!
//! The spool is itself a `.ptt` file, with one region for all page numbers.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom};

use super::fold::ReferenceFold;
use super::target::TempTarget;
use super::{ImportOptions, ImportResult};
use crate::error::{TraceError, TraceProblem};
use crate::format::{
    AccessKinds, Clock, FoldWindow, Header, Record, RegionKind, Totals, TraceRegion,
};
use crate::reader::TraceReader;
use crate::writer::TraceWriter;

/// zstd level of the spool, which is read once and then deleted.
const SPOOL_LEVEL: i32 = 1;
/// Number of records copied between two tests for cancellation.
const LOOK_EVERY: u64 = 4096;

/// Folds references and stores the records in the spool.
pub(crate) struct Spool<'a> {
    fold: ReferenceFold,
    writer: TraceWriter<BufWriter<&'a File>>,
    target: &'a TempTarget,
    window: FoldWindow,
    /// Time of the first reference of the last record.
    last: u64,
    pages: u32,
    max_pages: u32,
    references: u64,
}

impl<'a> Spool<'a> {
    pub(crate) fn new(
        target: &'a TempTarget,
        window: FoldWindow,
        options: &ImportOptions,
    ) -> Result<Spool<'a>, TraceError> {
        let region = TraceRegion {
            name: String::new(),
            kind: RegionKind::Anon,
            pages: u64::from(u32::MAX),
            start: 0,
        };
        let header = Header::new(Clock::Nanoseconds, window, String::new(), vec![region]);
        let writer = BufWriter::new(target.file());
        Ok(Spool {
            fold: ReferenceFold::new(window),
            writer: target.named(TraceWriter::with_level(writer, &header, SPOOL_LEVEL))?,
            target,
            window,
            last: 0,
            pages: 0,
            max_pages: options.max_pages,
            references: 0,
        })
    }

    /// Reserves `count` new page numbers and returns the first.
    pub(crate) fn add_pages(&mut self, count: u64) -> Result<u32, TraceProblem> {
        let first = self.pages;
        let limit = u64::from(self.max_pages);
        let value = u64::from(first).saturating_add(count);
        if value > limit {
            return Err(TraceProblem::TooLarge { what: "number of distinct pages", value, limit });
        }
        self.pages = value as u32;
        Ok(first)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.references == 0
    }

    /// A reference to a page. `bytes`: of the request that begins with it, or 0.
    #[inline]
    pub(crate) fn touch(
        &mut self,
        page: u32,
        kinds: AccessKinds,
        now: u64,
        bytes: u64,
    ) -> Result<(), TraceError> {
        self.references += 1;
        if !self.fold.merge(page, kinds, now, bytes) {
            self.flush()?;
            let is_merged = self.fold.merge(page, kinds, now, bytes);
            assert!(is_merged, "a new window takes any page");
        }
        Ok(())
    }

    #[cold]
    fn flush(&mut self) -> Result<(), TraceError> {
        for open in self.fold.open() {
            self.target.named(self.writer.push(&Record {
                region: 0,
                page: u64::from(open.page),
                kinds: open.kinds,
                references: open.references,
                time: open.first - self.last,
                bytes: open.bytes,
            }))?;
            self.last = open.first;
        }
        self.fold.clear();
        Ok(())
    }

    /// Ends the spool and copies its records, with regions, into `target`.
    pub(crate) fn copy(
        mut self,
        imported: &mut ImportResult,
        options: &ImportOptions,
        target: &TempTarget,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Totals, TraceError> {
        self.flush()?;
        self.target.named(self.writer.finish(imported.end - self.last))?;
        let layout = &mut imported.layout;
        let mut file = self.target.file();
        file.seek(SeekFrom::Start(0))?;
        let mut spool = TraceReader::from_reader(file)?;
        let header = Header::new(
            imported.clock,
            self.window,
            options.source.clone(),
            layout.regions().to_vec(),
        );
        let mut writer = target.named(TraceWriter::new(BufWriter::new(target.file()), &header))?;
        let mut records = 0u64;
        while let Some(record) = spool.next_record()? {
            records += 1;
            if records.is_multiple_of(LOOK_EVERY) && cancelled() {
                return Err(TraceError::whole(TraceProblem::Cancelled));
            }
            let (region, page) = layout.place(record.page);
            target.named(writer.push(&Record { region, page, ..record }))?;
        }
        let (_, totals) = target.named(writer.finish(imported.end - self.last))?;
        Ok(totals)
    }
}
