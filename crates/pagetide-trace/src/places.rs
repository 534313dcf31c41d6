//! Numbers the pages of all regions consecutively. The place of a page is its number in its region
//! plus the number of pages in all regions before.

use crate::format::{Header, MAX_REGIONS};

/// Entries of the table that narrows the binary search.
const HINTS: u64 = 4096;

/// Converts between (region, page) and place.
#[derive(Debug)]
pub(crate) struct Places {
    /// Place of the first page of each region, then the end of the last region.
    bases: Vec<u64>,
    /// Region of every `1 << shift`th place, then the last region.
    hints: Vec<u32>,
    shift: u32,
}

impl Places {
    pub(crate) fn new(header: &Header) -> Places {
        assert!(header.regions.len() <= MAX_REGIONS);
        let mut bases = Vec::with_capacity(header.regions.len() + 1);
        let mut next = 0;
        bases.push(next);
        for region in &header.regions {
            next += region.pages;
            bases.push(next);
        }
        let shift = (0..64).find(|&shift| next >> shift < HINTS).unwrap_or(63);
        let mut hints = Vec::new();
        let mut region = 0;
        for place in (0..next).step_by(1 << shift) {
            while bases[region as usize + 1] <= place {
                region += 1;
            }
            hints.push(region);
        }
        hints.push((bases.len() as u32).saturating_sub(2));
        Places { bases, hints, shift }
    }

    /// Place of a page; `None` if the region or page does not exist.
    #[inline]
    pub(crate) fn place(&self, region: u32, page: u64) -> Option<u64> {
        let base = *self.bases.get(region as usize)?;
        let end = *self.bases.get(region as usize + 1)?;
        (page < end - base).then(|| base + page)
    }

    /// Region and page of a place; `None` if it is above all regions.
    #[inline]
    pub(crate) fn page(&self, place: u64) -> Option<(u32, u64)> {
        if place >= *self.bases.last()? {
            return None;
        }
        let hint = (place >> self.shift) as usize;
        let mut region = self.hints[hint] as usize;
        let mut last = self.hints[hint + 1] as usize;
        while region < last {
            let middle = (region + last).div_ceil(2);
            if self.bases[middle] <= place {
                region = middle;
            } else {
                last = middle - 1;
            }
        }
        Some((region as u32, place - self.bases[region]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Clock, FoldWindow, RegionKind, TraceRegion};

    fn places(sizes: &[u64]) -> Places {
        let region = |&pages: &u64| TraceRegion {
            name: String::new(),
            kind: RegionKind::Anon,
            pages,
            start: 0,
        };
        let window = FoldWindow { pages: 1, time: 0 };
        let regions = sizes.iter().map(region).collect();
        Places::new(&Header::new(Clock::Instructions, window, String::new(), regions))
    }

    #[test]
    fn there_and_back() {
        let many = vec![3; 5000];
        for sizes in [&[][..], &[1], &[4095], &[4096, 1], &[1, 1 << 33, 1, 7, 1 << 33], &many] {
            let places = places(sizes);
            let mut next = 0;
            for (region, &pages) in sizes.iter().enumerate() {
                for page in [0, pages / 2, pages - 1] {
                    let at = (region as u32, page);
                    assert_eq!(places.place(at.0, at.1), Some(next + page));
                    assert_eq!(places.page(next + page), Some(at));
                }
                assert_eq!(places.place(region as u32, pages), None);
                next += pages;
            }
            assert_eq!(places.page(next), None);
            assert_eq!(places.page(u64::MAX), None);
            assert_eq!(places.place(sizes.len() as u32, 0), None);
        }
    }
}
