//! The flags of a request, from their names or from the bits of an old kernel.
//!
//! Linux: include/linux/gfp.h. Since 4.7 reports name the flags; the bits have moved several times,
//! so numbers are read only of kernels that print nothing else.

/// Rights of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestFlags {
    /// May sleep and reclaim.
    pub direct: bool,
    /// May use the reserve (`__GFP_HIGH`).
    pub high: bool,
    /// A user page.
    pub movable: bool,
    pub reclaimable: bool,
    /// May start I/O, and enter file systems.
    pub io: bool,
    pub fs: bool,
    /// `__GFP_NORETRY`.
    pub no_retry: bool,
    /// Only from zone DMA or DMA32.
    pub low_zone: bool,
    /// `__GFP_MEMALLOC`.
    pub memalloc: bool,
}

/// Reads `0x14200ca(GFP_HIGHUSER_MOVABLE|__GFP_COMP)`.
pub(super) fn parse(text: &str) -> Option<RequestFlags> {
    let (number, names) = match text.split_once('(') {
        Some((number, names)) => (number, names.split_once(')').map_or(names, |(names, _)| names)),
        None => (text, ""),
    };
    let bits = u64::from_str_radix(number.trim().strip_prefix("0x")?, 16).ok()?;
    Some(if names.is_empty() { of_bits(bits) } else { of_names(names) })
}

fn of_names(names: &str) -> RequestFlags {
    let mut flags = RequestFlags::default();
    for name in names.split('|').map(str::trim) {
        let (direct, io, fs) = match name {
            "GFP_KERNEL"
            | "GFP_KERNEL_ACCOUNT"
            | "GFP_USER"
            | "GFP_HIGHUSER"
            | "GFP_TEMPORARY"
            | "GFP_HIGHUSER_MOVABLE"
            | "GFP_TRANSHUGE" => (true, true, true),
            "GFP_NOFS" => (true, true, false),
            "GFP_NOIO" | "__GFP_DIRECT_RECLAIM" | "__GFP_RECLAIM" | "__GFP_WAIT" => {
                (true, false, false)
            }
            "__GFP_IO" => (false, true, false),
            "__GFP_FS" => (false, false, true),
            _ => (false, false, false),
        };
        flags.direct |= direct;
        flags.io |= io;
        flags.fs |= fs;
        flags.high |= matches!(name, "GFP_ATOMIC" | "__GFP_HIGH");
        flags.movable |= name.ends_with("_MOVABLE") || name.starts_with("GFP_TRANSHUGE");
        flags.reclaimable |= name == "__GFP_RECLAIMABLE";
        flags.no_retry |= name == "__GFP_NORETRY";
        flags.memalloc |= name == "__GFP_MEMALLOC";
        flags.low_zone |= matches!(name, "GFP_DMA" | "GFP_DMA32" | "__GFP_DMA" | "__GFP_DMA32");
    }
    flags
}

fn of_bits(bits: u64) -> RequestFlags {
    let has = |mask: u64| bits & mask != 0;
    // Since 4.4 waiting (0x400000) and waking kswapd have bits of their own. From 2.6.38 to 4.3 the
    // first is __GFP_NO_KSWAPD.
    let is_split = has(0x200_0000);
    RequestFlags {
        direct: if is_split { has(0x40_0000) } else { has(0x10) },
        high: has(0x20),
        movable: has(0x8),
        reclaimable: if is_split { has(0x10) } else { has(0x8_0000) },
        io: has(0x40),
        fs: has(0x80),
        no_retry: has(0x1000),
        low_zone: has(0x1 | 0x4),
        memalloc: has(0x2000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_bits_are_read() {
        let kernel = RequestFlags { direct: true, io: true, fs: true, ..RequestFlags::default() };
        for text in
            ["0xcc0(GFP_KERNEL)", "0xd0", "0x24000c0", "0x40dc0(GFP_KERNEL|__GFP_COMP|__GFP_ZERO)"]
        {
            assert_eq!(parse(text), Some(kernel), "{text}");
        }
        for text in ["0x20", "0x2080020(GFP_ATOMIC)", "0x2000020"] {
            let atomic = RequestFlags { high: true, ..RequestFlags::default() };
            assert_eq!(parse(text), Some(atomic), "{text}");
        }
        // __GFP_NO_KSWAPD of Linux 3.2, in a request that may not sleep.
        let atomic = RequestFlags { high: true, ..RequestFlags::default() };
        assert_eq!((parse("0x400020"), parse("0x4000d0")), (Some(atomic), Some(kernel)));
        let user = RequestFlags { movable: true, ..kernel };
        assert_eq!(parse("0x100cca(GFP_HIGHUSER_MOVABLE)"), Some(user));
        assert_eq!(parse("0x280da"), Some(user));
        let noio = RequestFlags { direct: true, no_retry: true, ..RequestFlags::default() };
        assert_eq!(parse("0x91c00(GFP_NOIO|__GFP_NORETRY|__GFP_NOMEMALLOC)"), Some(noio));
        assert_eq!((parse(""), parse("0xzz"), parse("12")), (None, None, None));
    }
}
