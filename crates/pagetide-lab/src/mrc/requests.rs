//! The requests of a trace, for the reference caches: for its pages, and for its objects.
//!
//! Invariant: the pages have every reference of the trace in order, and the objects every request.

use super::caches::{CacheRequest, RequestStream};
use pagetide_trace::format::PAGE_SIZE;
use pagetide_trace::{Header, RegionKind, TraceError, TraceProblem, TraceReader, TraceRegion};
use std::collections::{BTreeMap, HashMap};

/// A whole trace in memory.
#[derive(Debug)]
pub struct TraceRequests {
    /// Each page is an object.
    pub pages: RequestStream,
    /// The objects of a trace of requests.
    pub objects: Option<RequestStream>,
}

impl TraceRequests {
    pub fn read(reader: &mut TraceReader) -> Result<TraceRequests, TraceError> {
        let header = reader.header();
        let has_requests = header.has_requests();
        let places = places(header);
        let is_file: Vec<bool> = header.regions.iter().map(|it| is_file(it.kind)).collect();
        let (mut pages, mut objects) = (StreamBuilder::default(), StreamBuilder::default());
        while let Some(record) = reader.next_record()? {
            let region = record.region as usize;
            let place = places[region] + record.page;
            let add = |stream: &mut StreamBuilder, bytes| {
                stream.add(place, bytes, record.references, is_file[region])
            };
            add(&mut pages, u64::from(PAGE_SIZE))?;
            if record.bytes > 0 {
                add(&mut objects, record.bytes)?;
            }
        }
        let objects = has_requests.then(|| objects.finish());
        Ok(TraceRequests { pages: pages.finish(), objects })
    }

    /// Number of requests of the trace's input.
    pub fn requests(&self) -> u64 {
        self.objects.as_ref().unwrap_or(&self.pages).totals.requests
    }

    /// The objects, unless each is exactly a page.
    pub fn uneven_objects(&self) -> Option<&RequestStream> {
        self.objects.as_ref().filter(|objects| {
            objects.totals != self.pages.totals
                || objects.requests.iter().any(|it| it.bytes != PAGE_SIZE)
        })
    }
}

/// Numbers places in the order of their first use.
#[derive(Default)]
struct StreamBuilder {
    ids: HashMap<u64, u32>,
    stream: RequestStream,
}

impl StreamBuilder {
    fn add(
        &mut self,
        place: u64,
        bytes: u64,
        references: u64,
        is_read_first: bool,
    ) -> Result<(), TraceError> {
        let too_large = |what, value, limit: u32| {
            TraceError::whole(TraceProblem::TooLarge { what, value, limit: limit.into() })
        };
        let next = u32::try_from(self.ids.len());
        let next = next.ok().filter(|next| *next < u32::MAX);
        let next = next
            .ok_or_else(|| too_large("number of objects", self.ids.len() as u64, u32::MAX - 1))?;
        let object = *self.ids.entry(place).or_insert(next);
        let short = u32::try_from(bytes).map_err(|_| too_large("object size", bytes, u32::MAX))?;
        let totals = &mut self.stream.totals;
        totals.requests = totals.requests.saturating_add(references);
        totals.bytes = totals.bytes.saturating_add(references.saturating_mul(bytes));
        self.stream.requests.push(CacheRequest {
            object,
            bytes: short,
            repeats: u32::try_from(references - 1).unwrap_or(u32::MAX),
            is_free: object == next && !is_read_first,
        });
        Ok(())
    }

    fn finish(self) -> RequestStream {
        RequestStream { nr_objects: self.ids.len() as u32, ..self.stream }
    }
}

pub fn is_file(kind: RegionKind) -> bool {
    matches!(kind, RegionKind::File { .. })
}

/// Number of the first page of each region. Regions of one file share the numbers of its pages.
fn places(header: &Header) -> Vec<u64> {
    let mut files: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let mut next = 0;
    for region in &header.regions {
        if let RegionKind::File { key, .. } = region.kind {
            let pages = &mut files.entry(key).or_default().1;
            *pages = (*pages).max(region.pages);
        }
    }
    for (first, pages) in files.values_mut() {
        *first = next;
        next += *pages;
    }
    let place = |region: &TraceRegion| match region.kind {
        RegionKind::File { key, .. } => files[&key].0,
        RegionKind::Anon => {
            next += region.pages;
            next - region.pages
        }
    };
    header.regions.iter().map(place).collect()
}
