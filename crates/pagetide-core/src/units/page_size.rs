//! The size of a page, and all conversions between pages and bytes.
//!
//! Linux: `PAGE_SHIFT` and `PAGE_SIZE`, chosen when the kernel is built (arm64 has 4, 16 and 64
//! KiB, ppc64 has 4 and 64 KiB). Here the size is chosen when the machine is created. Orders,
//! pageblocks and huge pages keep their number of pages, so their size in bytes grows with the page
//! size (docs/fidelity.md has the values of real machines). A page table is one page.
//!
//! Invariant: a machine's page size ([`Memory::page_size`]) never changes.
//!
//! [`Memory::page_size`]: crate::frames::page_alloc::Memory::page_size

use crate::units::digest::State;

/// The size of a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, State)]
#[repr(u8)]
pub enum PageSize {
    /// 4 KiB: x86-64, and the default everywhere.
    #[default]
    Kib4 = 12,
    /// 16 KiB: arm64.
    Kib16 = 14,
    /// 64 KiB: arm64, ppc64.
    Kib64 = 16,
}

impl PageSize {
    /// All sizes, smallest first.
    pub const ALL: [PageSize; 3] = [PageSize::Kib4, PageSize::Kib16, PageSize::Kib64];

    /// log2 of the page's bytes (Linux `PAGE_SHIFT`).
    #[inline]
    pub const fn shift(self) -> u32 {
        self as u32
    }

    /// log2 of the page's size in kB.
    #[inline]
    pub const fn kb_shift(self) -> u32 {
        self.shift() - 10
    }

    /// Bytes in a page (Linux `PAGE_SIZE`).
    #[inline]
    pub const fn bytes(self) -> u64 {
        1 << self.shift()
    }

    /// The size with this many bytes, if it exists.
    pub fn from_bytes(bytes: u64) -> Option<PageSize> {
        Self::ALL.into_iter().find(|size| size.bytes() == bytes)
    }

    /// Pages that hold `bytes`, rounded up.
    #[inline]
    pub const fn pages_for(self, bytes: u64) -> u64 {
        bytes.div_ceil(self.bytes())
    }

    /// Whole pages in `bytes`, rounded down.
    #[inline]
    pub const fn pages_in(self, bytes: u64) -> u64 {
        bytes >> self.shift()
    }

    /// Bytes of this many pages; saturates.
    #[inline]
    pub const fn bytes_of(self, pages: u64) -> u64 {
        pages.saturating_mul(self.bytes())
    }

    /// Size in kB of this many pages.
    #[inline]
    pub const fn kbytes_of(self, pages: u64) -> u64 {
        pages << self.kb_shift()
    }

    /// Whole pages in this many kB, rounded down.
    #[inline]
    pub const fn pages_in_kbytes(self, kbytes: u64) -> u64 {
        kbytes >> self.kb_shift()
    }

    /// The page of a file that contains the byte at `pos`.
    #[inline]
    pub const fn index_of(self, pos: u64) -> u32 {
        (pos >> self.shift()) as u32
    }

    /// Number of entries in a page table, of 8 bytes each (Linux `PTRS_PER_PTE`).
    #[inline]
    pub const fn ptrs_per_pte(self) -> u64 {
        1 << (self.shift() - 3)
    }

    /// Number of the page table, in a mapping, that contains the entry of page `page`.
    #[inline]
    pub const fn table_of(self, page: u64) -> usize {
        (page >> (self.shift() - 3)) as usize
    }

    /// Largest limit of a group in pages: 2^63 bytes minus one page (Linux `PAGE_COUNTER_MAX`).
    #[inline]
    pub const fn counter_max(self) -> u64 {
        i64::MAX as u64 >> self.shift()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_become_bytes_and_bytes_pages() {
        for (size, kib) in PageSize::ALL.into_iter().zip([4, 16, 64]) {
            let bytes = kib << 10;
            assert_eq!((size.bytes(), size.kbytes_of(1)), (bytes, kib));
            assert_eq!(PageSize::from_bytes(bytes), Some(size));
            assert_eq!([0, 1, bytes, bytes + 1].map(|b| size.pages_for(b)), [0, 1, 1, 2]);
            assert_eq!([0, bytes - 1, bytes, 3 * bytes].map(|b| size.pages_in(b)), [0, 0, 1, 3]);
            assert_eq!([0, kib - 1, kib, 5 * kib].map(|k| size.pages_in_kbytes(k)), [0, 0, 1, 5]);
            assert_eq!((size.index_of(2 * bytes - 1), size.bytes_of(7)), (1, 7 * bytes));
            assert_eq!(size.ptrs_per_pte(), bytes / 8);
            assert_eq!([bytes / 8 - 1, bytes / 8].map(|page| size.table_of(page)), [0, 1]);
            assert_eq!(size.pages_for(u64::MAX), 1 << (64 - size.shift()));
        }
        assert_eq!([0, 1, 8192, 1 << 20].map(PageSize::from_bytes), [None; 4]);
        assert_eq!(PageSize::Kib64.bytes_of(u64::MAX), u64::MAX);
        assert_eq!(PageSize::default(), PageSize::Kib4);
    }
}
