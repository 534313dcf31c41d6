//! Pages in memory at the end of a phase. Linux: mincore(2).

use crate::report::line;
use crate::sys::memory::MemoryMapping;
use pagetide_scenario::workload::{scatter, Program, WorkingSet};

/// Reports the pages of a region that are in memory.
pub fn report_resident(
    region: &str,
    program: &Program,
    regions: &[Option<MemoryMapping>],
    buffer: &mut [u8],
) {
    let number = program.region_number(region).map(|number| number as usize);
    let Some(mapping) = number.and_then(|number| regions.get(number)?.as_ref()) else { return };
    let mut resident = 0u64;
    if mapping.in_core(buffer, |_, present| resident += u64::from(present)).is_ok() {
        line(format_args!("@resident resident {resident}"));
    }
}

/// Reports the pages in memory of the hot and of the cold part of each region.
pub fn report_residency(
    set: &WorkingSet,
    program: &Program,
    regions: &[Option<MemoryMapping>],
    buffer: &mut [u8],
) {
    let mut count = |what: &str, region: &str, pages: u64| {
        let number = program.region_number(region).map(|number| number as usize);
        let Some(mapping) = number.and_then(|number| regions.get(number)?.as_ref()) else { return };
        let hot = pages * u64::from(set.hot_page_percent) / 100;
        // The permutation has no cheap inverse, so mark the pages first.
        let mut resident = [0u64; 2];
        let inverse = ScatterInverse::of_scatter(pages);
        let result = mapping.in_core(buffer, |page, present| {
            if present && page < pages {
                resident[usize::from(inverse.index(page) >= hot)] += 1;
            }
        });
        if result.is_ok() {
            line(format_args!("@resident {what}_hot_resident {}", resident[0]));
            line(format_args!("@resident {what}_cold_resident {}", resident[1]));
        }
    };
    if let Some((region, pages)) = &set.anon {
        count("anon", region, *pages);
    }
    if let Some((_, region, pages, _)) = &set.file {
        count("file", region, *pages);
    }
}

/// The inverse of [`scatter`], which is multiplication by a number modulo `pages`.
struct ScatterInverse {
    pages: u64,
    factor: u64,
}

impl ScatterInverse {
    fn of_scatter(pages: u64) -> ScatterInverse {
        let forward = if pages > 1 { scatter(1, pages) } else { 0 };
        ScatterInverse { pages, factor: inverse_modulo(forward, pages) }
    }

    fn index(&self, page: u64) -> u64 {
        (u128::from(page) * u128::from(self.factor) % u128::from(self.pages.max(1))) as u64
    }
}

/// The x with `a * x = 1` modulo `m`, by Euclid's algorithm; `a` and `m` have no common factor.
fn inverse_modulo(a: u64, m: u64) -> u64 {
    let (mut r0, mut r1) = (i128::from(m), i128::from(a));
    let (mut t0, mut t1) = (0i128, 1i128);
    while r1 != 0 {
        let quotient = r0 / r1;
        (r0, r1) = (r1, r0 - quotient * r1);
        (t0, t1) = (t1, t0 - quotient * t1);
    }
    t0.rem_euclid(i128::from(m.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_undoes_scatter() {
        for pages in [1, 2, 7, 36864, 98304, 7_368_787, 7_368_788] {
            let inverse = ScatterInverse::of_scatter(pages);
            for index in (0..pages).step_by((pages / 1000).max(1) as usize) {
                assert_eq!(inverse.index(scatter(index, pages)), index, "{pages} pages");
            }
        }
    }
}
