//! The algorithms that compress pages: the size that each reaches, and its work.
//!
//! Linux: `crypto_comp`, drivers/block/zram/zcomp.c, lib/lzo, lib/lz4, lib/zstd (6.1). Pagetide has
//! no bytes. An algorithm is a factor on the size that lzo-rle reaches ([`PageContent`]), and a count
//! of pages ([`Work`]) that the world turns into time.
//!
//! Sources of the factors: one desktop image of 1.1 GiB in zram (linuxreviews.org, "Comparison of
//! Compression Algorithms"): lzo 387.8 MB, lzo-rle 388 MB, lz4 403.4 MB, zstd 285.3 MB. Images of
//! a compiler, an interpreter and a JavaScript engine, 123 700 pages, compressed page by page: lz4
//! 1.05 to 1.15 of lzo, zstd (level 3, the kernel's) 0.55 to 0.77, with 0.74 in the middle of the
//! largest.

use super::content::PageContent;
use crate::stats::work::Work;
use crate::units::digest::State;

/// Declares the algorithms, each with its factor and its two counters of work.
macro_rules! compressors {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal,
        $per_mille:literal, $compressed:ident, $decompressed:ident;)*) => {
        /// An algorithm that compresses single pages.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
        #[repr(u8)]
        pub enum Compressor {
            $($(#[doc = $doc])+ $name,)*
        }

        impl Compressor {
            /// All algorithms.
            pub const ALL: [Compressor; [$($text),*].len()] = [$(Compressor::$name),*];

            /// The kernel's name, as in `comp_algorithm`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Compressor::$name => $text,)*
                }
            }

            /// Description of the algorithm.
            pub const fn doc(self) -> &'static str {
                match self {
                    $(Compressor::$name => concat!($($doc),+),)*
                }
            }

            /// Compressed size in 1/1000 of that of lzo-rle.
            const fn per_mille(self) -> u32 {
                match self {
                    $(Compressor::$name => $per_mille,)*
                }
            }

            /// Counts the compression of a page.
            pub(crate) fn count_compressed(self, work: &mut Work) {
                match self {
                    $(Compressor::$name => work.$compressed += 1,)*
                }
            }

            /// Counts the decompression of a page.
            pub(crate) fn count_decompressed(self, work: &mut Work) {
                match self {
                    $(Compressor::$name => work.$decompressed += 1,)*
                }
            }
        }
    };
}

compressors! {
    /// LZO1X-1.
    Lzo = "lzo", 1000, lzo_compressed, lzo_decompressed;
    /// LZO1X-1 with a code for runs of zeroes; the default of zram.
    LzoRle = "lzo-rle", 1000, lzo_rle_compressed, lzo_rle_decompressed;
    /// LZ4.
    Lz4 = "lz4", 1040, lz4_compressed, lz4_decompressed;
    /// Zstandard, level 3.
    Zstd = "zstd", 735, zstd_compressed, zstd_decompressed;
}

impl Compressor {
    /// Bytes of a compressed page; at most the bytes of a page. A page filled with one value is
    /// stored without the compressor, so its size is that of a very small page.
    pub fn compressed_size(self, content: PageContent, page_bytes: u64) -> u32 {
        let of_4096 = match content {
            PageContent::Zeroes | PageContent::SameFilled => 32,
            PageContent::Compressible { size } => u64::from(size * self.per_mille()) / 1000,
            PageContent::Incompressible => 4096,
        };
        (of_4096.clamp(1, 4096) * page_bytes / 4096) as u32
    }
}
