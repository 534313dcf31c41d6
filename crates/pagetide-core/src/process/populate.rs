//! Populating a range of a mapping in one call: MAP_POPULATE, mlock(), MADV_POPULATE_READ and
//! MADV_POPULATE_WRITE. Also MADV_WILLNEED, which reads pages of a mapped file ahead.
//!
//! Linux: `populate_vma_page_range`, `faultin_page_range`, `__mm_populate` (mm/gup.c),
//! `madvise_willneed` (mm/madvise.c), `force_page_cache_ra` (mm/readahead.c) (6.1). The task faults
//! on one page after the other without leaving the kernel. Each present or populated page counts as
//! accessed (`FOLL_TOUCH`).
//!
//! Difference from Linux: MADV_WILLNEED on anonymous memory does not read from swap.
//!
//! Invariant: between two steps the call holds no page, and it ends if its mapping is gone.

use super::fault::Fault;
use super::huge_memory::region_of;
use super::id_pool::NOT_BEGUN;
use super::page_table::Backing;
use super::readahead::ReadaheadWindow;
use super::request::{Populate, PopulateMode};
use super::Machine;
use crate::frames::page_request::SlowRequest;
use crate::interface::bad_id::BadId;
use crate::interface::ctx::Ctx;
use crate::interface::effect::Step;
use crate::interface::outcome::{Frame, Outcome};
use crate::units::HPAGE_PMD_NR;

/// Maximum number of present pages that a step skips.
const PASSED_A_STEP: u64 = HPAGE_PMD_NR;
/// Pages that MADV_WILLNEED reads at a time: 2 MiB (Linux: in `force_page_cache_ra`).
const READ_AT_A_TIME: u32 = HPAGE_PMD_NR as u32;
/// Maximum number of bytes that one MADV_WILLNEED reads: the largest request to a disk without a
/// limit of its own (Linux `bdi->io_pages` by `BLK_DEF_MAX_SECTORS`, 6.1). The read-ahead window is
/// shorter.
const READ_AT_MOST: u64 = 1280 << 10;

impl Machine {
    pub(crate) fn populate_step(
        &mut self,
        populate: &mut Populate,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Step<Outcome> {
        let mapping = match self.owners.living_vma(populate.vma) {
            Ok(mapping) if [NOT_BEGUN, mapping.generation].contains(&populate.born) => mapping,
            Ok(_) => return Step::Done(Outcome::NoMemory),
            Err(id) if populate.born == NOT_BEGUN => return Step::Done(Outcome::BadId(id)),
            Err(_) => return Step::Done(Outcome::NoMemory),
        };
        if populate.end > mapping.len() {
            return Step::Done(Outcome::BadId(BadId::Page(populate.vma)));
        }
        let (born, begins) = (mapping.generation, populate.born == NOT_BEGUN);
        populate.born = born;
        if begins && matches!(populate.how, PopulateMode::Read(_)) {
            let most = READ_AT_MOST / self.mem.page_size.bytes();
            populate.end = populate.end.min(populate.next.saturating_add(most));
        }
        match &mut populate.how {
            PopulateMode::Faults(..) => self.populate_by_faults(populate, slow, ctx),
            PopulateMode::Read(_) => self.populate_page_cache(populate, slow, ctx),
        }
    }

    fn populate_by_faults(
        &mut self,
        populate: &mut Populate,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Step<Outcome> {
        let PopulateMode::Faults(fault, write) = &mut populate.how else { return Step::Continue };
        if let Some(under_way) = fault {
            let step = match self.era.generations {
                true => self.young_fault_step(under_way, slow, ctx),
                false => self.fault_step(under_way, slow, ctx),
            };
            match step {
                Step::Done(Outcome::Got(got)) => {
                    if let Some(slow) = slow.take() {
                        self.abandon_slow_request(&slow, ctx.asker, ctx.cpu);
                    }
                    populate.major |= got.major;
                    *fault = None;
                    if let Frame::At(pfn) = got.frame {
                        // Linux marks only the entry of a huge page.
                        if self.huge_page_at(populate.vma, populate.next).is_none() {
                            self.mark_page_accessed(ctx.cpu, pfn);
                        }
                    }
                    populate.next += 1;
                    return Step::Continue;
                }
                step => return step,
            }
        }
        for _ in 0..PASSED_A_STEP {
            if populate.next >= populate.end {
                return Step::Done(if populate.major { Outcome::Major } else { Outcome::Minor });
            }
            let at = populate.next;
            let huge = self.huge_page_at(populate.vma, at);
            let pte = &mut self.owners.vmas[populate.vma].ptes[at as usize];
            let Some(touched) = pte.touched(*write) else {
                *fault = Some(Fault::new(populate.vma, at, *write));
                return Step::Continue;
            };
            *pte = touched;
            if huge.is_some() {
                populate.next = region_of(at) + HPAGE_PMD_NR;
                continue;
            }
            if !touched.is_zero_page() {
                self.mark_page_accessed(ctx.cpu, touched.pfn());
            }
            populate.next += 1;
        }
        Step::Continue
    }

    fn populate_page_cache(
        &mut self,
        populate: &mut Populate,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Step<Outcome> {
        let PopulateMode::Read(window) = &mut populate.how else { return Step::Continue };
        let Backing::File(file) = self.owners.vmas[populate.vma].backing else {
            return Step::Done(Outcome::Minor);
        };
        if let Some(under_way) = window {
            if let Some(step) = self.readahead_step(under_way, slow, ctx) {
                return step;
            }
            *window = None;
        }
        let left = populate.end.saturating_sub(populate.next).min(READ_AT_A_TIME.into());
        let (start, nr) = (populate.next as u32, left as u32);
        // No page gets the read-ahead mark: MADV_WILLNEED starts no further read-ahead.
        *window = ReadaheadWindow::new(file, &self.owners.files[file], start, nr, u32::MAX);
        populate.next += left;
        match window {
            Some(_) => Step::Continue,
            None => Step::Done(Outcome::Minor),
        }
    }
}
