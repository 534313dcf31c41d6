//! How large the machine's pages are: what the unit `pages` stands for, and what bytes become pages of.
//!
//! Linux: `PAGE_SIZE`. A closed set: the sizes that Linux has on x86-64, arm64 and ppc64.
//!
//! Invariant: all sizes are powers of two, none smaller than a page of a trace
//! ([`pagetide_trace::format::PAGE_SIZE`]).

use pagetide_trace::format;

/// The size of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PageSize {
    /// 4 KiB: x86-64, and what a scenario has that does not say.
    #[default]
    Kib4,
    /// 16 KiB: arm64.
    Kib16,
    /// 64 KiB: arm64, ppc64.
    Kib64,
}

impl PageSize {
    /// All of them, smallest first.
    pub const ALL: [PageSize; 3] = [PageSize::Kib4, PageSize::Kib16, PageSize::Kib64];

    /// log2 of the page's bytes.
    pub const fn shift(self) -> u32 {
        match self {
            PageSize::Kib4 => 12,
            PageSize::Kib16 => 14,
            PageSize::Kib64 => 16,
        }
    }

    /// Bytes in a page.
    pub const fn bytes(self) -> u64 {
        1 << self.shift()
    }

    /// The size with so many bytes, if there is one.
    pub fn from_bytes(bytes: u64) -> Option<PageSize> {
        Self::ALL.into_iter().find(|size| size.bytes() == bytes)
    }

    /// Pages that hold so many bytes.
    pub const fn pages_for(self, bytes: u64) -> u64 {
        bytes.div_ceil(self.bytes())
    }

    /// Bytes of so many pages; all there are, if that is more than 64 bits say.
    pub const fn bytes_of(self, pages: u64) -> u64 {
        pages.saturating_mul(self.bytes())
    }

    /// log2 of the trace pages that lie in a page.
    pub const fn trace_shift(self) -> u32 {
        self.shift() - format::PAGE_SIZE.trailing_zeros()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_what_they_are_called() {
        let bytes = PageSize::ALL.map(PageSize::bytes);
        assert_eq!(bytes, [4 << 10, 16 << 10, 64 << 10]);
        assert_eq!(PageSize::ALL.map(PageSize::trace_shift), [0, 2, 4]);
        assert_eq!(bytes.map(PageSize::from_bytes), PageSize::ALL.map(Some));
        assert_eq!(PageSize::from_bytes(8192), None);
        assert_eq!(PageSize::Kib64.pages_for((64 << 10) + 1), 2);
        assert_eq!(PageSize::Kib64.bytes_of(u64::MAX), u64::MAX);
    }
}
