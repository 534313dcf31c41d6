//! Derives regions from the raw addresses of a program.
//!
//! With a maps file: a page in a mapping of a file is a page of that file, unless the program
//! writes to it and the mapping is private; then it is anonymous, as after copy-on-write.
//!
//! Without one: an executed page is a page of an executable file; a page that is never written
//! and lies near an executed one (within [`IMAGE_GAP`], over touched pages) is a page of a file
//! too (constants of the same image).
//!
//! All other pages are anonymous. Pages of a kind with at most [`REGION_GAP`] untouched pages
//! between them make a region, and the holes stay in it, so that neighbours remain neighbours.

use xxhash_rust::xxh3::xxh3_64;

use super::maps::Maps;
use crate::format::{Kinds, Region, RegionKind};

/// Untouched pages within a derived region: 256 KiB.
pub const REGION_GAP: u64 = 64;
/// Untouched pages within what is taken for one program image: 1 MiB.
pub const IMAGE_GAP: u64 = 256;
/// Most regions derived from addresses; beyond, pages of a kind are put into the last region of
/// their kind one [`REGION_GAP`] apart.
const MAX_DERIVED: usize = 1024;

/// A page that the program touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Touched {
    /// Virtual page number.
    pub(crate) address: u64,
    /// The importer's number for it.
    pub(crate) id: u32,
    /// All uses of it in the whole trace.
    pub(crate) kinds: Kinds,
}

/// Regions, and for each page number of the importer its region and page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) regions: Vec<Region>,
    pub(crate) places: Vec<(u32, u64)>,
}

/// Derives regions; `pages` in the order of addresses, `identity` tells this trace from others.
pub(crate) fn derive(pages: &[Touched], maps: Option<&Maps>, identity: u64) -> Layout {
    let mut layout = Layout { regions: Vec::new(), places: vec![(0, 0); pages.len()] };
    let anonymous = match maps {
        Some(maps) => take_mapped(pages, maps, &mut layout),
        None => take_images(pages, identity, &mut layout),
    };
    cluster(&anonymous, &mut layout, |address| Region {
        name: format!("anon-{:x}", address << 12),
        kind: RegionKind::Anon,
        pages: 0,
        start: address,
    });
    layout
}

/// Places the pages that are of mapped files; gives the rest.
fn take_mapped(pages: &[Touched], maps: &Maps, layout: &mut Layout) -> Vec<Touched> {
    let mut rest = Vec::new();
    let mut region_of = vec![None; maps.mappings().len()];
    for page in pages {
        let found = maps
            .find(page.address)
            .filter(|&index| maps.mappings()[index].shared || !page.kinds.contains(Kinds::WRITE));
        let Some(index) = found else {
            rest.push(*page);
            continue;
        };
        let mapping = &maps.mappings()[index];
        let region = *region_of[index].get_or_insert_with(|| {
            let mut name = mapping.path.clone().into_bytes();
            name.extend_from_slice(&mapping.file_page.to_le_bytes());
            layout.regions.push(Region {
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

/// Places the pages that seem to be of a program's image; gives the rest.
fn take_images(pages: &[Touched], identity: u64, layout: &mut Layout) -> Vec<Touched> {
    let mut text = Vec::new();
    let mut constants = Vec::new();
    let mut rest = Vec::new();
    let is_executed = |page: &Touched| page.kinds.contains(Kinds::EXECUTE);
    for image in pages.chunk_by(|a, b| b.address - a.address <= IMAGE_GAP) {
        let has_text = image.iter().any(is_executed);
        for page in image {
            if is_executed(page) {
                text.push(*page);
            } else if has_text && !page.kinds.contains(Kinds::WRITE) {
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
            Region {
                name: format!("{name}-{:x}", address << 12),
                kind: RegionKind::File { key: xxh3_64(&key), executable },
                pages: 0,
                start: address,
            }
        });
    }
    rest
}

/// Places pages of one kind into as many regions as they have gaps; `describe` makes a region
/// from its first address.
fn cluster(pages: &[Touched], layout: &mut Layout, describe: impl Fn(u64) -> Region) {
    let mut last: Option<u64> = None;
    for page in pages {
        let step = last.map(|last| page.address - last);
        last = Some(page.address);
        let is_near = step.is_some_and(|step| step <= REGION_GAP + 1);
        if step.is_none() || (!is_near && layout.regions.len() < MAX_DERIVED) {
            let region = describe(page.address);
            layout.regions.push(Region { pages: 1, ..region });
        } else {
            let region = layout.regions.last_mut().expect("a region was begun");
            region.pages += step.unwrap_or(1).min(REGION_GAP + 1);
        }
        let number = layout.regions.len() - 1;
        layout.places[page.id as usize] = (number as u32, layout.regions[number].pages - 1);
    }
}
