//! Derives regions from the raw addresses of a program.
//!
//! With a maps file: a page in a file mapping is a page of that file. A page that the program
//! writes in a private mapping is anonymous, as after copy-on-write.
//!
//! Without a maps file: an executed page is a page of an executable file. A page that is never
//! written is also a file page (constants of the same image) if touched pages at most [`IMAGE_GAP`]
//! apart connect it to an executed page.
//!
//! All other pages are anonymous. Pages of a type with at most [`REGION_GAP`] untouched pages
//! between them form a region. The holes stay in the region, so neighbours remain neighbours.

use xxhash_rust::xxh3::xxh3_64;

use super::maps::Maps;
use crate::format::{AccessKinds, RegionKind, TraceRegion};

/// Longest hole in a derived region, in pages (256 KiB).
pub const REGION_GAP: u64 = 64;
/// Largest distance of adjacent touched pages in a program image, in pages (1 MiB).
pub const IMAGE_GAP: u64 = 256;
/// Most regions derived from addresses. Above it, further pages go into the last region, one
/// [`REGION_GAP`] apart.
const MAX_DERIVED: usize = 1024;

/// A page that the program touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TouchedPage {
    /// Virtual page number.
    pub(crate) address: u64,
    /// Spool page number.
    pub(crate) id: u32,
    /// Union of its access types in the whole trace.
    pub(crate) kinds: AccessKinds,
}

/// The regions, and the region and page of each spool page number.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AddressLayout {
    pub(crate) regions: Vec<TraceRegion>,
    pub(crate) places: Vec<(u32, u64)>,
}

/// Derives the regions. `pages` is sorted by address. `identity` is a hash of the trace, for file
/// keys.
pub(crate) fn derive(pages: &[TouchedPage], maps: Option<&Maps>, identity: u64) -> AddressLayout {
    let mut layout = AddressLayout { regions: Vec::new(), places: vec![(0, 0); pages.len()] };
    let anonymous = match maps {
        Some(maps) => take_mapped(pages, maps, &mut layout),
        None => take_images(pages, identity, &mut layout),
    };
    cluster(&anonymous, &mut layout, |address| TraceRegion {
        name: format!("anon-{:x}", address << 12),
        kind: RegionKind::Anon,
        pages: 0,
        start: address,
    });
    layout
}

/// Places the pages of mapped files; returns the other pages.
fn take_mapped(pages: &[TouchedPage], maps: &Maps, layout: &mut AddressLayout) -> Vec<TouchedPage> {
    let mut rest = Vec::new();
    let mut region_of = vec![None; maps.mappings().len()];
    for page in pages {
        let found = maps.find(page.address).filter(|&index| {
            maps.mappings()[index].shared || !page.kinds.contains(AccessKinds::WRITE)
        });
        let Some(index) = found else {
            rest.push(*page);
            continue;
        };
        let mapping = &maps.mappings()[index];
        let region = *region_of[index].get_or_insert_with(|| {
            let mut name = mapping.path.clone().into_bytes();
            name.extend_from_slice(&mapping.file_page.to_le_bytes());
            layout.regions.push(TraceRegion {
                name: mapping.path.clone(),
                kind: RegionKind::File { key: xxh3_64(&name), executable: mapping.executable },
                pages: mapping.end - mapping.start,
                start: mapping.start,
            });
            layout.regions.len() as u32 - 1
        });
        layout.places[page.id as usize] = (region, page.address - mapping.start);
    }
    rest
}

/// Places the pages that seem to belong to a program image; returns the other pages.
fn take_images(
    pages: &[TouchedPage],
    identity: u64,
    layout: &mut AddressLayout,
) -> Vec<TouchedPage> {
    let mut text = Vec::new();
    let mut constants = Vec::new();
    let mut rest = Vec::new();
    let is_executed = |page: &TouchedPage| page.kinds.contains(AccessKinds::EXECUTE);
    for image in pages.chunk_by(|a, b| b.address - a.address <= IMAGE_GAP) {
        let has_text = image.iter().any(is_executed);
        for page in image {
            if is_executed(page) {
                text.push(*page);
            } else if has_text && !page.kinds.contains(AccessKinds::WRITE) {
                constants.push(*page);
            } else {
                rest.push(*page);
            }
        }
    }
    for (pages, executable, name) in [(&text, true, "text"), (&constants, false, "constants")] {
        cluster(pages, layout, |address| {
            let mut key = identity.to_le_bytes().to_vec();
            key.extend_from_slice(&address.to_le_bytes());
            key.push(u8::from(executable));
            TraceRegion {
                name: format!("{name}-{:x}", address << 12),
                kind: RegionKind::File { key: xxh3_64(&key), executable },
                pages: 0,
                start: address,
            }
        });
    }
    rest
}

/// Places pages of one type, with a new region after each gap. `describe` creates a region from its
/// first page number.
fn cluster(
    pages: &[TouchedPage],
    layout: &mut AddressLayout,
    describe: impl Fn(u64) -> TraceRegion,
) {
    let mut last: Option<u64> = None;
    for page in pages {
        let step = last.map(|last| page.address - last);
        last = Some(page.address);
        let is_near = step.is_some_and(|step| step <= REGION_GAP + 1);
        if step.is_none() || (!is_near && layout.regions.len() < MAX_DERIVED) {
            let region = describe(page.address);
            layout.regions.push(TraceRegion { pages: 1, ..region });
        } else {
            let region = layout.regions.last_mut().expect("a region was begun");
            region.pages += step.unwrap_or(1).min(REGION_GAP + 1);
        }
        let number = layout.regions.len() - 1;
        layout.places[page.id as usize] = (number as u32, layout.regions[number].pages - 1);
    }
}
