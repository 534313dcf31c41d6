//! `policy.pages = "two-queues"`: approximates S3-FIFO with Linux's two lists.
//!
//! S3-FIFO (Yang and others, SOSP 2023) has a small queue for new pages, a tenth of the cache, and
//! a large one for pages that were used again. A page leaves the large queue only after one round
//! for each of up to three uses. In Linux 6.1 the inactive list can be half of memory, and a page
//! leaves the active list after one round, used or not. Here the inactive list is the small queue,
//! the active list is the large one, shadows are the ghosts, and a page's mark counts its uses.
//!
//! Differences from S3-FIFO: a use through a mapping is only a bit that reclaim finds, and the
//! first fault sets it, so a mapped page needs two trips through the small queue to be promoted, as
//! in Linux; and pages that leave the large queue go through the small one.
//!
//! Invariant: a mark is at most 3.
//!
//! With two-queues.toml the policy saves three faults in a hundred: most evicted pages are needed
//! again after a distance longer than any list:
//!
//! ```text
//! scenario   two-queues: Popular pages and a scan: one round on the active list, or one for each use?
//! version    pagetide 0.1.0
//! seeds      1 to 10 (10 repeats)
//! machine    2 CPUs, 128 MiB, disk (ssd), no swap
//! variants   linux-6.1: as described
//!            two-queues: policy.pages=two-queues
//!            linux-5.4: policy.lru=linux-5.4
//!
//!                                      linux-6.1                 two-queues                 linux-5.4
//! ---------------------------------------------------------------------------------------------------
//! query.query.walltime     s       13.87 ±  0.07     13.47 ±  0.04   -2.9%*     13.86 ±  0.07  -0.0%
//! query.query.pgmajfault           38946 ±   231     37810 ±   138   -2.9%*     38945 ±   225  -0.0%
//! workingset_refault_file          42250 ±   274     41034 ±   223   -2.9%*     42254 ±   246  +0.0%
//! workingset_activate_file           116 ±    12       102 ±     9  -11.4%*       116 ±    11  +0.4%
//! pgscan_kswapd                  3415381 ± 24500   3368426 ± 22957   -1.4%*   3415669 ± 23313  +0.0%
//! pgsteal_kswapd                 3328254 ± 17227   3281075 ± 14429   -1.4%*   3327876 ± 15325  -0.0%
//! pgrefill                           757 ±    88       780 ±   116   +2.9%        769 ±    96  +1.5%
//! scan.bytes               GiB     12.75 ±  0.05     12.57 ±  0.05   -1.4%*     12.75 ±  0.05  -0.0%
//!
//! mean ± sample standard deviation over the seeds; change against linux-6.1 in per cent; * means
//! differ (Welch's t-test, p < 0.05)
//! ```

use pagetide::policy::{Digest, InitialList, ListSizes, PagePolicy, PageVerdict, PageView};

/// Maximum number of counted uses.
const USES_MAX: u8 = 3;
/// Ratio of the lengths of the large and the small queue.
const RATIO: u64 = 9;

/// The policy. All its state is in the marks of pages.
#[derive(Clone, Copy, Debug)]
pub struct TwoQueues;

fn used(page: &mut PageView<'_>) {
    page.mark = (page.mark + 1).min(USES_MAX);
}

impl PagePolicy for TwoQueues {
    fn on_new(&mut self, _: &mut PageView<'_>, linux: InitialList) -> InitialList {
        // As in Linux, a ghost goes to the large queue if its distance is at most the length of
        // that queue.
        linux
    }

    fn on_referenced(&mut self, page: &mut PageView<'_>, _: bool) -> bool {
        // Promotion waits until the page reaches the end of the queue.
        used(page);
        false
    }

    fn judge(&mut self, page: &mut PageView<'_>, linux: PageVerdict) -> PageVerdict {
        if page.nr_references > 0 {
            used(page);
        }
        match page.mark {
            0 => PageVerdict::Reclaim,
            // Its first use, which is its fault if it is mapped.
            1 if page.nr_references > 0 => PageVerdict::Keep,
            1 => linux,
            _ => {
                page.mark = 0;
                PageVerdict::Activate
            }
        }
    }

    fn stays_active(&mut self, page: &mut PageView<'_>, _: bool) -> bool {
        if page.nr_references > 0 {
            used(page);
            return true;
        }
        let stays = page.mark > 0;
        page.mark = page.mark.saturating_sub(1);
        stays
    }

    fn inactive_is_low(&self, sizes: &ListSizes, _: bool) -> bool {
        sizes.inactive * RATIO < sizes.active
    }

    fn digest(&self, _: &mut Digest) {}
}
