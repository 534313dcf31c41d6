//! Converts cache requests for objects into references to pages of files.
//!
//! Each tenant has one file. It holds the tenant's objects in the order of first appearance, each
//! in ceil(bytes / 4096) consecutive pages. The next object follows directly, so an object that
//! grows moves to the end of the file, and its old pages are not used again. A request touches, in
//! order, all pages of the object at its size in that request.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

use super::spool::Spool;
use super::{ImportOptions, ImportResult};
use crate::error::{TraceError, TraceProblem};
use crate::format::{AccessKinds, Clock, RegionKind, TraceRegion, PAGE_SIZE};

/// Most tenants.
pub(crate) const MAX_TENANTS: u32 = 4096;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectRequest {
    /// Nanoseconds of the input's clock, if it has one.
    pub(crate) time: Option<u64>,
    pub(crate) tenant: u32,
    pub(crate) object: u128,
    pub(crate) size: u64,
    pub(crate) kinds: AccessKinds,
}

/// Assigns pages to objects.
pub(crate) struct ObjectPages<'a> {
    options: &'a ImportOptions,
    objects: BTreeMap<(u32, u128), Extent>,
    tenants: Vec<TenantFile>,
    layout: ObjectLayout,
    first_time: Option<u64>,
    now: u64,
    skipped: u64,
    disordered: u64,
}

#[derive(Clone, Copy)]
struct Extent {
    id: u32,
    pages: u32,
}

#[derive(Default)]
struct TenantFile {
    pages: u64,
}

/// Region and page of each spool page number, as runs sorted by first number.
#[derive(Debug, Default)]
pub(crate) struct ObjectLayout {
    pub(crate) regions: Vec<TraceRegion>,
    runs: Vec<PageNumberRun>,
    /// Index of the run of the last lookup.
    last: usize,
}

#[derive(Debug)]
struct PageNumberRun {
    id: u32,
    region: u32,
    page: u64,
}

impl ObjectLayout {
    /// Region and page of a spool page number.
    pub(crate) fn place(&mut self, id: u64) -> (u32, u64) {
        let begins = |index: usize| self.runs.get(index).map(|run| u64::from(run.id));
        let is_last = begins(self.last).is_some_and(|begin| begin <= id)
            && begins(self.last + 1).is_none_or(|begin| id < begin);
        if !is_last {
            self.last = self.runs.partition_point(|run| u64::from(run.id) <= id) - 1;
        }
        let run = &self.runs[self.last];
        (run.region, run.page + (id - u64::from(run.id)))
    }
}

impl<'a> ObjectPages<'a> {
    pub(crate) fn new(options: &'a ImportOptions) -> ObjectPages<'a> {
        ObjectPages {
            options,
            objects: BTreeMap::new(),
            tenants: Vec::new(),
            layout: ObjectLayout::default(),
            first_time: None,
            now: 0,
            skipped: 0,
            disordered: 0,
        }
    }

    /// Counts a record that is not a reference.
    pub(crate) fn skip(&mut self) {
        self.skipped += 1;
    }

    /// Adds the references of a request to the spool. `place` adds the position to an error.
    pub(crate) fn request(
        &mut self,
        request: ObjectRequest,
        spool: &mut Spool<'_>,
        place: impl Fn(TraceProblem) -> TraceError,
    ) -> Result<(), TraceError> {
        if let Some(time) = request.time {
            self.pass_time(time);
        }
        let limit = self.options.max_object_size;
        if request.size > limit {
            let value = request.size;
            return Err(place(TraceProblem::TooLarge { what: "object size", value, limit }));
        }
        let pages = request.size.div_ceil(u64::from(PAGE_SIZE));
        if pages == 0 {
            self.skipped += 1;
            return Ok(());
        }
        let extent = self.extent(&request, pages, spool).map_err(place)?;
        for id in extent.id..extent.id + pages as u32 {
            let bytes = if id == extent.id { request.size } else { 0 };
            spool.touch(id, request.kinds, self.now, bytes)?;
        }
        Ok(())
    }

    fn pass_time(&mut self, time: u64) {
        if self.options.time_divisor == 0 {
            return;
        }
        let first = *self.first_time.get_or_insert(time);
        let now = time.saturating_sub(first) / self.options.time_divisor;
        if time < first || now < self.now {
            self.disordered += 1;
        }
        self.now = self.now.max(now);
    }

    fn extent(
        &mut self,
        request: &ObjectRequest,
        pages: u64,
        spool: &mut Spool<'_>,
    ) -> Result<Extent, TraceProblem> {
        if request.tenant >= MAX_TENANTS {
            let (value, limit) = (u64::from(request.tenant) + 1, u64::from(MAX_TENANTS));
            return Err(TraceProblem::TooLarge { what: "number of tenants", value, limit });
        }
        let key = (request.tenant, request.object);
        if let Some(&extent) = self.objects.get(&key) {
            if u64::from(extent.pages) >= pages {
                return Ok(extent);
            }
        }
        let id = spool.add_pages(pages)?;
        let extent = Extent { id, pages: pages as u32 };
        self.objects.insert(key, extent);
        while self.tenants.len() <= request.tenant as usize {
            self.tenants.push(TenantFile::default());
        }
        let tenant = &mut self.tenants[request.tenant as usize];
        let page = tenant.pages;
        tenant.pages += pages;
        let runs = &mut self.layout.runs;
        let follows = runs.last().is_some_and(|run| {
            run.region == request.tenant && run.page + u64::from(id - run.id) == page
        });
        if !follows {
            runs.push(PageNumberRun { id, region: request.tenant, page });
        }
        Ok(extent)
    }

    /// Creates one region per tenant. `names` are the names of the tenants.
    pub(crate) fn finish(mut self, records: u64, bytes: u64, names: &[String]) -> ImportResult {
        let mut identity = self.options.source.clone().into_bytes();
        for value in [records, bytes, self.objects.len() as u64] {
            identity.extend_from_slice(&value.to_le_bytes());
        }
        for (number, tenant) in self.tenants.iter().enumerate() {
            let name = names.get(number).cloned().unwrap_or_else(|| "objects".into());
            let mut key = identity.clone();
            key.extend_from_slice(&(number as u64).to_le_bytes());
            let kind = RegionKind::File { key: xxh3_64(&key), executable: false };
            // A tenant has no pages if all its requests have size 0; a region needs at least one.
            let pages = tenant.pages.max(1);
            self.layout.regions.push(TraceRegion { name, kind, pages, start: 0 });
        }
        ImportResult {
            layout: super::PageLayout::Objects(self.layout),
            clock: Clock::Nanoseconds,
            records,
            skipped: self.skipped,
            disordered: self.disordered,
            has_header: false,
            end: self.now,
        }
    }
}
