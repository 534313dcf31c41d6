//! The bytes that a task writes into its pages, on a machine with compressed swap.
//!
//! The scenario says how well pages compress ([`ContentMix`]). The simulator draws a size; here a
//! page gets bytes that compress to about the drawn size. Such a page is a list of groups: 16 bytes
//! that no algorithm shortens below 5.8 bits a byte, then 8 bytes that repeat an earlier group's. The
//! rest of the page is zero. So the ratios of the algorithms are near those of real pages
//! (`pagetide_core::swap::compressor`): lz4 reaches 1.05 of lzo, zstd 0.73. docs/verify.md has the
//! sizes that the kernel's algorithms reached.
//!
//! Differences from the simulator: the draw of a page is another one, from the same distribution. A
//! page has zeroes until its first write, so parts of a huge page that no write has met are zero.
//!
//! Invariant: a page keeps its content, whatever is written again. The second word of a page is 0
//! exactly if the page has no bytes yet, or its content is zeroes.

use pagetide_core::swap::content::{ContentMix, PageContent};
use pagetide_scenario::draws::prng::sub_seed;
use pagetide_scenario::model::Setup;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a group: two that are new and one that repeats.
const GROUP_WORDS: usize = 3;
/// Size of a group after compression by lzo-rle: 16 bytes, their length, and the repetition.
const GROUP_SIZE: u32 = 19;
/// Size of the other parts of a page after compression by lzo-rle, as measured: the zeroes at its
/// end, and the end mark.
const REST_SIZE: u32 = 42;
/// Largest size that groups reach; a page of a larger size repeats nothing.
const GROUPS_MAX: u32 = 3200;
/// Groups back to which a repetition refers: within the 2 KiB of lzo's short references.
const HISTORY: usize = 64;
/// 5 random bits of each byte, one that is set in a quarter of them, and one that is always set.
const RANDOM_BITS: u64 = 0x1f1f_1f1f_1f1f_1f1f;
const SELDOM: u64 = 0x2020_2020_2020_2020;
const NOT_ZERO: u64 = 0x4040_4040_4040_4040;

/// The contents of a task's pages.
#[derive(Clone, Copy, Debug)]
pub struct PageContents {
    seed: u64,
    task: u32,
    mix: ContentMix,
}

/// A stream of random words (xorshift64*).
struct RandomWords(u64);

impl RandomWords {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A word that compresses to 5.8 bits a byte.
    fn next_literal(&mut self) -> u64 {
        let random = self.next();
        random & RANDOM_BITS | random & random >> 1 & SELDOM | NOT_ZERO
    }
}

impl PageContents {
    /// Of task number `task`; `None`: nothing compresses pages, so their bytes do not matter.
    pub fn new(setup: &Setup, task: usize, seed: u64) -> Option<PageContents> {
        let machine = &setup.machine;
        if machine.zswap.is_none() && machine.swap.iter().all(|area| area.zram.is_none()) {
            return None;
        }
        let mix = setup.tasks[task].content.unwrap_or(machine.content);
        Some(PageContents { seed: sub_seed(seed, "content"), task: task as u32, mix })
    }

    /// Writes to a page, given its words. The first write gives the page its content.
    #[inline]
    pub fn write(&self, words: &[AtomicU64], region: u32, page: u64) {
        // First a plain store: a read, also that of an atomic addition in QEMU, would fault in the
        // shared page of zeroes. The last word is 0 in all pages but those of one word.
        set(&words[words.len() - 1], 0);
        let [first, second] = [0, 1].map(|at| words[at].load(Ordering::Relaxed));
        if second == 0 {
            self.fill(words, region, page);
        } else if first == second {
            set(&words[words.len() - 1], first);
        }
    }

    #[inline(never)]
    fn fill(&self, words: &[AtomicU64], region: u32, page: u64) {
        let index = (page as u32).wrapping_add(region.wrapping_mul(0x9e37_79b9));
        let of_page = u64::from(self.task) << 32 | u64::from(index);
        let first = self.seed ^ of_page.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let random = RandomWords(first | 1);
        write_content(words, self.mix.draw(self.seed, self.task, index), random);
    }
}

fn set(word: &AtomicU64, value: u64) {
    word.store(value, Ordering::Relaxed);
}

/// Writes bytes of this content into a page of zeroes.
fn write_content(words: &[AtomicU64], content: PageContent, mut random: RandomWords) {
    match content {
        PageContent::Zeroes => {}
        PageContent::SameFilled => {
            let value = random.next() | 1;
            words.iter().for_each(|word| set(word, value));
        }
        PageContent::Incompressible => {
            let nr = words.len() - 1;
            words.iter().take(nr).for_each(|word| set(word, random.next()));
        }
        PageContent::Compressible { size } if size <= GROUPS_MAX => {
            write_groups(words, size.saturating_sub(REST_SIZE), random);
        }
        PageContent::Compressible { size } => {
            let nr = (size.saturating_sub(REST_SIZE) / 8) as usize;
            words.iter().take(nr).for_each(|word| set(word, random.next_literal()));
        }
    }
}

/// Writes groups of `size` bytes after compression, and some new words for the rest of it.
fn write_groups(words: &[AtomicU64], size: u32, mut random: RandomWords) {
    let nr_groups = (size / GROUP_SIZE) as usize;
    let nr_last = (size % GROUP_SIZE / 8) as usize;
    let (groups, rest) = words.split_at((nr_groups * GROUP_WORDS).min(words.len()));
    for (at, group) in groups.chunks_exact(GROUP_WORDS).enumerate() {
        set(&group[0], random.next_literal());
        set(&group[1], random.next_literal());
        // The first bytes of a page are in no algorithm's table.
        let repeated = match at {
            0 | 1 => random.next_literal(),
            _ => {
                let back = 1 + random.next() as usize % (at - 1).min(HISTORY);
                groups[(at - back) * GROUP_WORDS].load(Ordering::Relaxed)
            }
        };
        set(&group[2], repeated);
    }
    rest.iter()
        .take(nr_last.max(2 * usize::from(nr_groups == 0)))
        .for_each(|word| set(word, random.next_literal()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::memory::WORDS_OF_PAGE;

    fn page() -> Vec<AtomicU64> {
        (0..WORDS_OF_PAGE).map(|_| AtomicU64::new(0)).collect()
    }

    fn values(words: &[AtomicU64]) -> Vec<u64> {
        words.iter().map(|word| word.load(Ordering::Relaxed)).collect()
    }

    #[test]
    fn a_page_has_the_words_of_its_content() {
        let of = |content| {
            let words = page();
            write_content(&words, content, RandomWords(7));
            values(&words)
        };
        assert!(of(PageContent::Zeroes).iter().all(|&word| word == 0));
        let same = of(PageContent::SameFilled);
        assert!(same[0] != 0 && same.iter().all(|&word| word == same[0]));
        let random = of(PageContent::Incompressible);
        assert!(random.is_sorted_by(|one, next| one != next) && random[WORDS_OF_PAGE - 1] == 0);
        for size in [1, 12, 40, 500, 1517, 3200, 3201, 4096] {
            let words = of(PageContent::Compressible { size });
            let used = words.iter().filter(|&&word| word != 0).count();
            assert!(words[1] != 0, "size {size}");
            let least = size.saturating_sub(70) as usize / 8;
            assert!(used >= least && used <= WORDS_OF_PAGE, "size {size}: {used} words");
        }
        let half = of(PageContent::Compressible { size: 1600 });
        assert_eq!(half.iter().filter(|&&word| word != 0).count(), 82 * GROUP_WORDS);
    }

    #[test]
    fn only_the_first_write_changes_a_page() {
        let contents = PageContents {
            seed: 1,
            task: 0,
            mix: ContentMix { zero: 0, same: 0, incompressible: 500, mean_size: 1000 },
        };
        let words = page();
        contents.write(&words, 0, 5);
        let first = values(&words);
        set(&words[9], 1);
        contents.write(&words, 0, 5);
        assert_ne!(first[0], 0);
        assert_eq!(words[9].load(Ordering::Relaxed), 1);
    }
}
