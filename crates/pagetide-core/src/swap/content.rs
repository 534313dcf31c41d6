//! The contents of pages, as far as a compressor notices: a distribution for each address space.
//!
//! Linux has the bytes; Pagetide draws the [`PageContent`] of a page from the [`ContentMix`] of its
//! owner. The draw is a hash of the seed, the owner and the index of the page. So a page has the
//! same content in every variant of a scenario with the same seed, whatever is reclaimed when, and
//! a page that is written again stays of its kind: a program puts the same sort of data into the
//! same place. (Effect: a page never moves to another size class of the pool, so that less memory
//! is lost to fragments than with contents that change.)
//!
//! # Sources of the default
//!
//! * Filled with one value: S. Desireddy, "zswap: same-filled pages handling" (Linux 4.16): 17 % of
//!   the pages in zswap, 14 % zeroes. U. Arif, "mm: store zero pages to be swapped out in a bitmap"
//!   (2024): 10 to 20 % in Meta's fleet. Z. Xianrong, "zram: extend zero pages to same element
//!   pages" (4.11): 6.1 % zeroes and 2.5 % others on Android.
//! * Incompressible: 31 % in Google's fleet (Lagar-Cavilla et al., ASPLOS 2019; their limit of 2990
//!   bytes counts more), 0 to 1.3 % in the images below. The default is 6 %, which together with
//!   the ratio gives what owners of desktops and servers report: lzo-rle 2.2 to 3.0, lz4 2.6 to 2.8,
//!   zstd 3.4 to 4.2 (the default mix: 2.9, 2.8, 3.7). zram then stores 8 % of the pages without
//!   compression. S. Senozhatsky's test of this limit (linux-mm, 6 March 2018, LZO) has a ratio of
//!   2.7, 12.8 % filled pages and, before his change, 8.7 % without compression.
//! * The spread of sizes: three images of 123 700 pages (a compiler, an interpreter, a JavaScript
//!   engine), each page compressed by LZO, each image divided by its mean, with equal weights.
//!
//! Invariant: the parts of a mix are at most 1000 per mille together.

use crate::units::digest::State;
use crate::units::scramble::scramble;
use alloc::vec;
use alloc::vec::Vec;

/// Sizes at 17 equally spaced quantiles, in 1/1024 of the mean.
const SIZE_QUANTILES: [u64; 17] =
    [38, 582, 664, 715, 756, 816, 866, 891, 916, 971, 1071, 1171, 1253, 1350, 1417, 1578, 2694];

/// Largest mean whose sizes are all below a page.
const MEAN_UNLIMITED: u16 = (4096 * 1024 / SIZE_QUANTILES[SIZE_QUANTILES.len() - 1]) as u16;

/// The content of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageContent {
    /// Zeroes.
    Zeroes,
    /// Another word, repeated.
    SameFilled,
    /// Data that lzo-rle compresses to `size` bytes of 4096.
    Compressible {
        /// Bytes of 4096.
        size: u32,
    },
    /// Data that no algorithm compresses.
    Incompressible,
}

/// The distribution of contents of an owner's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub struct ContentMix {
    /// Pages of zeroes, per mille.
    pub zero: u16,
    /// Pages filled with another word, per mille.
    pub same: u16,
    /// Incompressible pages, per mille.
    pub incompressible: u16,
    /// Mean size of the other pages, compressed by lzo-rle, in bytes of 4096, before sizes are
    /// limited to a page. It is the mean up to 1557; beyond, see [`ContentMix::mean_before_limit`].
    pub mean_size: u16,
}

impl Default for ContentMix {
    fn default() -> ContentMix {
        ContentMix::DEFAULT
    }
}

impl ContentMix {
    /// Programs as measured (see above). Other pages compress to 4096 / 2.7 bytes.
    pub const DEFAULT: ContentMix =
        ContentMix { zero: 140, same: 30, incompressible: 60, mean_size: 1517 };

    /// The `mean_size` with which sizes have this mean, although none is above a page. The spread
    /// has a tail of 2.6 times its mean, which a mean above 1557 would cut off.
    pub fn mean_before_limit(mean: u16) -> u16 {
        const POINTS: u64 = 1024;
        let limited = |mean: u16| {
            let at = |point: u64| (2 * point + 1) << 21;
            let sizes = (0..POINTS).map(|point| scaled_quantile(at(point), mean.into()).min(4096));
            sizes.sum::<u64>() / POINTS
        };
        if mean <= MEAN_UNLIMITED {
            return mean;
        }
        let (mut low, mut high) = (mean, u16::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            match limited(middle) < mean.into() {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// The content of a page: a hash of the seed, the page's owner, and its index there.
    pub fn draw(self, seed: u64, owner: u32, index: u32) -> PageContent {
        let page = u64::from(owner) << 32 | u64::from(index);
        self.at(scramble(seed ^ scramble(page)))
    }

    /// The content at a point of the distribution; `at` is uniform over all values.
    pub fn at(self, at: u64) -> PageContent {
        const SPAN: u64 = 1 << 32;
        // Position in the distribution, in 1/1000 and 2^-32 of that.
        let position = u64::from((at >> 32) as u32) * 1000;
        let (per_mille, rest) = (position / SPAN, position % SPAN);
        let zero = u64::from(self.zero);
        let same = zero + u64::from(self.same);
        let incompressible = 1000 - u64::from(self.incompressible).min(1000);
        if per_mille < zero {
            PageContent::Zeroes
        } else if per_mille < same {
            PageContent::SameFilled
        } else if per_mille >= incompressible {
            PageContent::Incompressible
        } else {
            let parts = (incompressible - same).max(1);
            let quantile = ((per_mille - same) * SPAN + rest) / parts;
            let size = scaled_quantile(quantile, self.mean_size.into());
            PageContent::Compressible { size: size.clamp(1, 4096) as u32 }
        }
    }
}

/// Size at a quantile (in 2^-32) of the measured spread, for a mean.
fn scaled_quantile(quantile: u64, mean: u64) -> u64 {
    let position = quantile * (SIZE_QUANTILES.len() as u64 - 1);
    let (at, within) = ((position >> 32) as usize, position & 0xffff_ffff);
    let at = at.min(SIZE_QUANTILES.len() - 2);
    let (low, high) = (SIZE_QUANTILES[at], SIZE_QUANTILES[at + 1]);
    (((low << 32) + (high - low) * within) / 1024 * mean) >> 32
}

/// Names a mix of a machine; 0 is the machine's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, State)]
pub struct ContentMixId(u16);

/// The mixes of a machine, and the seed of all draws.
#[derive(Clone, Debug, State)]
pub(crate) struct ContentMixes {
    seed: u64,
    mixes: Vec<ContentMix>,
}

impl Default for ContentMixes {
    fn default() -> ContentMixes {
        ContentMixes { seed: 0, mixes: vec![ContentMix::DEFAULT] }
    }
}

impl ContentMixes {
    pub(crate) fn set_default(&mut self, seed: u64, mix: ContentMix) {
        self.seed = seed;
        self.mixes[0] = mix;
    }

    /// The id of a mix; equal mixes have one id. After 65 535 mixes the default takes their place.
    pub(crate) fn intern(&mut self, mix: ContentMix) -> ContentMixId {
        let known = self.mixes.iter().position(|&known| known == mix);
        let at = known.unwrap_or(self.mixes.len());
        let Ok(id) = u16::try_from(at) else { return ContentMixId::default() };
        if known.is_none() {
            self.mixes.push(mix);
        }
        ContentMixId(id)
    }

    /// The content of a page of an owner with the mix `id`.
    pub(crate) fn draw(&self, id: ContentMixId, owner: u32, index: u32) -> PageContent {
        let mix = self.mixes.get(usize::from(id.0)).copied().unwrap_or_default();
        mix.draw(self.seed, owner, index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swap::compressor::Compressor;

    /// Shares in 1/1000 and the mean size of the others, over 200 000 pages.
    fn measured(mix: ContentMix) -> ([u64; 3], u64) {
        let mut mixes = ContentMixes::default();
        mixes.set_default(7, mix);
        let (mut shares, mut bytes, mut others) = ([0; 3], 0, 0);
        for page in 0..200_000 {
            match mixes.draw(ContentMixId::default(), page / 1000, page % 1000) {
                PageContent::Zeroes => shares[0] += 1,
                PageContent::SameFilled => shares[1] += 1,
                PageContent::Incompressible => shares[2] += 1,
                PageContent::Compressible { size } => {
                    bytes += u64::from(size);
                    others += 1;
                }
            }
        }
        (shares.map(|nr: u64| nr / 200), bytes / others.max(1))
    }

    #[test]
    fn the_draws_follow_the_mix() {
        let (shares, mean) = measured(ContentMix::DEFAULT);
        assert!(shares[0].abs_diff(140) < 4 && shares[1].abs_diff(30) < 4, "{shares:?}");
        assert!(shares[2].abs_diff(60) < 4 && mean.abs_diff(1517) < 15, "{shares:?} {mean}");
        let all = ContentMix { zero: 0, same: 0, incompressible: 1000, mean_size: 1 };
        assert_eq!(measured(all).0, [0, 0, 1000]);
        let none = ContentMix { incompressible: 0, mean_size: 700, ..all };
        assert_eq!(measured(none).0, [0; 3]);
    }

    #[test]
    fn the_mean_is_reached_at_low_ratios_too() {
        for mean in [300, 1517, 1800, 2400, 3000] {
            let of = ContentMix { zero: 0, same: 0, incompressible: 0, mean_size: mean };
            let of = ContentMix { mean_size: ContentMix::mean_before_limit(mean), ..of };
            let (_, found) = measured(of);
            assert!(found.abs_diff(mean.into()) * 100 <= u64::from(mean), "{mean}: {found}");
            assert_eq!(of.mean_size == mean, mean < 1557, "{}", of.mean_size);
        }
        assert_eq!(ContentMix::mean_before_limit(4096), u16::MAX);
    }

    #[test]
    fn the_default_compresses_as_reported() {
        let mut mixes = ContentMixes::default();
        mixes.set_default(1, ContentMix::DEFAULT);
        // Stored bytes: as zram counts them, without filled pages.
        let ratio = |compressor: Compressor| {
            let stored = |page| match mixes.draw(ContentMixId::default(), 3, page) {
                PageContent::Zeroes | PageContent::SameFilled => 0,
                content => u64::from(compressor.compressed_size(content, 4096)),
            };
            100 * 4096 * 50_000 / (0..50_000).map(stored).sum::<u64>()
        };
        assert!((260..310).contains(&ratio(Compressor::LzoRle)));
        assert!((250..300).contains(&ratio(Compressor::Lz4)));
        assert!((337..420).contains(&ratio(Compressor::Zstd)));
    }

    #[test]
    fn a_page_keeps_its_content_and_equal_mixes_share_an_id() {
        let mut mixes = ContentMixes::default();
        assert_eq!(mixes.intern(ContentMix::DEFAULT), ContentMixId(0));
        let other = ContentMix { zero: 1, ..ContentMix::DEFAULT };
        let id = mixes.intern(other);
        assert_eq!((id, mixes.intern(other)), (ContentMixId(1), id));
        assert_eq!(mixes.draw(id, 9, 4), mixes.draw(id, 9, 4));
        let unknown = ContentMixId(900);
        assert_eq!(mixes.draw(unknown, 9, 4), mixes.draw(ContentMixId(0), 9, 4));
    }
}
