//! Mappings. Linux: mmap(2), madvise(2), mincore(2), mlock(2).
//!
//! Invariant: a [`MemoryMapping`] is unmapped once, on drop. Accesses outside of it are rejected.

use pagetide_scenario::model::Advice;
use pagetide_scenario::names::{LockKind, MadviseKind};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicU8, Ordering};

pub const PAGE_SIZE: u64 = 4096;
/// A flag of mlock2(): lock pages when they are faulted in.
const MLOCK_ONFAULT: libc::c_long = 1;
const HUGE_PAGES: u64 = 512;
/// Words of 8 bytes in a page.
pub const WORDS_OF_PAGE: usize = 512;

#[derive(Debug)]
pub struct MemoryMapping {
    base: *mut u8,
    pages: u64,
    writable: bool,
}

fn map(pages: u64, prot: i32, flags: i32, fd: i32) -> io::Result<*mut u8> {
    let len = pages.checked_mul(PAGE_SIZE).and_then(|len| usize::try_from(len).ok());
    let len = len.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), len, prot, flags, fd, 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(base.cast())
}

/// Maps present anonymous memory, locked if this process may lock so much. A guest may; on a live
/// machine the memory is rarely reclaimed within a second.
fn map_locked(pages: u64, shared: i32) -> io::Result<*mut u8> {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    let flags = shared | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
    map(pages, prot, flags | libc::MAP_LOCKED, -1).or_else(|error| match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EPERM) => map(pages, prot, flags, -1),
        _ => Err(error),
    })
}

impl MemoryMapping {
    /// Maps `pages` pages of private anonymous memory, untouched.
    pub fn anonymous(pages: u64) -> io::Result<MemoryMapping> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let base = map(pages, libc::PROT_READ | libc::PROT_WRITE, flags, -1)?;
        Ok(MemoryMapping { base, pages, writable: true })
    }

    /// The same, aligned to 2 MiB for huge pages: maps more, then unmaps the ends.
    pub fn anonymous_aligned(pages: u64) -> io::Result<MemoryMapping> {
        let wide = MemoryMapping::anonymous(pages.saturating_add(HUGE_PAGES - 1))?;
        let huge = (HUGE_PAGES * PAGE_SIZE) as usize;
        let before = wide.base.align_offset(huge);
        let mapping =
            MemoryMapping { base: wide.base.wrapping_add(before), pages, writable: wide.writable };
        let (end, len) = (wide.pages * PAGE_SIZE, pages * PAGE_SIZE);
        let after = end - before as u64 - len;
        let rest = mapping.base.wrapping_add(len as usize);
        std::mem::forget(wide);
        for (base, len) in [(mapping.base.wrapping_sub(before), before), (rest, after as usize)] {
            if len > 0 {
                // SAFETY: the part of our own mapping before or after the kept range.
                super::check(unsafe { libc::munmap(base.cast(), len) }.into())?;
            }
        }
        Ok(mapping)
    }

    /// Maps private anonymous memory, present and locked.
    pub fn locked(pages: u64) -> io::Result<MemoryMapping> {
        let base = map_locked(pages, libc::MAP_PRIVATE)?;
        Ok(MemoryMapping { base, pages, writable: true })
    }

    /// Maps the first `pages` pages of `file`, shared and read-only.
    pub fn file(file: &File, pages: u64, executable: bool) -> io::Result<MemoryMapping> {
        let prot = libc::PROT_READ | if executable { libc::PROT_EXEC } else { 0 };
        let base = map(pages, prot, libc::MAP_SHARED, file.as_raw_fd())?;
        Ok(MemoryMapping { base, pages, writable: false })
    }

    /// Calls madvise() for the whole mapping.
    pub fn advise(&self, advice: Advice) -> io::Result<()> {
        let advice = match advice {
            Advice::Normal => libc::MADV_NORMAL,
            Advice::Random => libc::MADV_RANDOM,
            Advice::Sequential => libc::MADV_SEQUENTIAL,
            Advice::Huge => libc::MADV_HUGEPAGE,
            Advice::NoHuge => libc::MADV_NOHUGEPAGE,
        };
        // SAFETY: the range is this mapping; this advice does not change its contents.
        let result =
            unsafe { libc::madvise(self.base.cast(), (self.pages * PAGE_SIZE) as usize, advice) };
        super::check(result.into()).map(drop)
    }

    /// Locks or unlocks a range of pages.
    /// EINVAL for pages outside the mapping.
    pub fn lock(&self, first: u64, pages: u64, how: LockKind) -> io::Result<()> {
        let (base, len) = self.part(first, pages)?;
        // SAFETY: within the mapping; locking does not change its contents.
        let result = unsafe {
            match how {
                LockKind::Lock => libc::mlock(base, len).into(),
                LockKind::OnFault => libc::syscall(libc::SYS_mlock2, base, len, MLOCK_ONFAULT),
                LockKind::Unlock => libc::munlock(base, len).into(),
            }
        };
        super::check(result).map(drop)
    }

    /// Calls madvise() for a range of pages.
    /// EINVAL for pages outside the mapping.
    pub fn advise_part(&self, first: u64, pages: u64, advice: MadviseKind) -> io::Result<()> {
        let (base, len) = self.part(first, pages)?;
        let advice = match advice {
            MadviseKind::Normal => libc::MADV_NORMAL,
            MadviseKind::Random => libc::MADV_RANDOM,
            MadviseKind::Sequential => libc::MADV_SEQUENTIAL,
            MadviseKind::Huge => libc::MADV_HUGEPAGE,
            MadviseKind::NoHuge => libc::MADV_NOHUGEPAGE,
            MadviseKind::PopulateRead => libc::MADV_POPULATE_READ,
            MadviseKind::PopulateWrite => libc::MADV_POPULATE_WRITE,
            MadviseKind::WillNeed => libc::MADV_WILLNEED,
            MadviseKind::Cold => libc::MADV_COLD,
            MadviseKind::PageOut => libc::MADV_PAGEOUT,
            MadviseKind::Collapse => libc::MADV_COLLAPSE,
        };
        // SAFETY: within the mapping; this advice does not change its contents.
        super::check(unsafe { libc::madvise(base, len, advice) }.into()).map(drop)
    }

    /// Address and length of a part of the mapping.
    fn part(&self, first: u64, pages: u64) -> io::Result<(*mut libc::c_void, usize)> {
        if first.checked_add(pages).is_none_or(|end| end > self.pages) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let base = self.base.wrapping_add((first * PAGE_SIZE) as usize);
        Ok((base.cast(), (pages * PAGE_SIZE) as usize))
    }

    /// Discards a range of pages. Linux: MADV_DONTNEED.
    /// EINVAL for pages outside the mapping.
    pub fn discard(&self, first: u64, pages: u64) -> io::Result<()> {
        if first.checked_add(pages).is_none_or(|end| end > self.pages) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        // SAFETY: within the mapping. Its contents are not borrowed, because it was not created by
        // `locked`.
        let result = unsafe {
            let base = self.base.add((first * PAGE_SIZE) as usize);
            libc::madvise(base.cast(), (pages * PAGE_SIZE) as usize, libc::MADV_DONTNEED)
        };
        super::check(result.into()).map(drop)
    }

    /// Reads or writes a byte of `page`; returns false if the page is outside the mapping, or not
    /// writable.
    #[inline(always)]
    pub fn access(&self, page: u64, write: bool) -> bool {
        if page >= self.pages || (write && !self.writable) {
            return false;
        }
        // SAFETY: within the mapping, which is readable, and writable if written.
        unsafe {
            let byte = self.base.add((page * PAGE_SIZE) as usize);
            if write {
                byte.write_volatile(1);
            } else {
                byte.read_volatile();
            }
        }
        true
    }

    /// The words of `page`, if the mapping has it and is writable. A reference may be shared with
    /// other threads.
    #[inline]
    pub fn words(&self, page: u64) -> Option<&[AtomicU64]> {
        if page >= self.pages || !self.writable {
            return None;
        }
        // SAFETY: within the mapping, page-aligned, and accessed as atomics only: memory from
        // `locked` is not touched by page.
        unsafe {
            let words = self.base.add((page * PAGE_SIZE) as usize).cast::<AtomicU64>();
            Some(std::slice::from_raw_parts(words, WORDS_OF_PAGE))
        }
    }

    /// Calls `each` for all pages in order, with their presence in memory; `buffer` has one byte
    /// for each page of a batch.
    /// The kernel's.
    pub fn in_core(&self, buffer: &mut [u8], mut each: impl FnMut(u64, bool)) -> io::Result<()> {
        let mut page = 0;
        while page < self.pages {
            let count = (self.pages - page).min(buffer.len() as u64);
            // SAFETY: the range is within the mapping, and `buffer` has a byte for each page.
            let result = unsafe {
                libc::mincore(
                    self.base.add((page * PAGE_SIZE) as usize).cast(),
                    (count * PAGE_SIZE) as usize,
                    buffer.as_mut_ptr(),
                )
            };
            super::check(result.into())?;
            for &byte in &buffer[..count as usize] {
                each(page, byte & 1 == 1);
                page += 1;
            }
        }
        Ok(())
    }

    /// The contents of memory from [`MemoryMapping::locked`].
    pub fn bytes(&mut self) -> &mut [u8] {
        assert!(self.writable, "a mapping of a file is read-only");
        // SAFETY: private writable memory of this length, borrowed together with `self`.
        unsafe { std::slice::from_raw_parts_mut(self.base, (self.pages * PAGE_SIZE) as usize) }
    }
}

/// Mappings that several threads touch. Their contents have no meaning.
#[derive(Clone, Copy, Debug)]
pub struct MappedRegions<'a>(&'a [Option<MemoryMapping>]);

// SAFETY: bytes are only accessed as atomics, and pages only discarded. Both are thread-safe.
unsafe impl Send for MappedRegions<'_> {}

impl<'a> MappedRegions<'a> {
    pub fn of(mappings: &'a [Option<MemoryMapping>]) -> MappedRegions<'a> {
        MappedRegions(mappings)
    }

    fn find(&self, region: u32) -> Option<&'a MemoryMapping> {
        self.0.get(region as usize)?.as_ref()
    }

    /// As [`MemoryMapping::access`].
    #[inline]
    pub fn access(&self, region: u32, page: u64, write: bool) -> bool {
        let Some(mapping) = self.find(region) else { return false };
        if page >= mapping.pages || (write && !mapping.writable) {
            return false;
        }
        // SAFETY: within the mapping, which is readable, and writable if written; all threads use
        // atomics.
        let byte = unsafe { AtomicU8::from_ptr(mapping.base.add((page * PAGE_SIZE) as usize)) };
        if write {
            byte.store(1, Ordering::Relaxed);
        } else {
            std::hint::black_box(byte.load(Ordering::Relaxed));
        }
        true
    }

    /// As [`MemoryMapping::words`].
    #[inline]
    pub fn words(&self, region: u32, page: u64) -> Option<&'a [AtomicU64]> {
        self.find(region)?.words(page)
    }

    /// As [`MemoryMapping::discard`]; returns false if it failed.
    pub fn discard(&self, region: u32, first: u64, pages: u64) -> bool {
        self.find(region).is_some_and(|mapping| mapping.discard(first, pages).is_ok())
    }
}

impl Drop for MemoryMapping {
    fn drop(&mut self) {
        // SAFETY: our own mapping, without remaining pointers into it.
        unsafe {
            libc::munmap(self.base.cast(), (self.pages * PAGE_SIZE) as usize);
        }
    }
}

/// Creates zeroed, locked words, shared with processes that are forked later.
pub fn shared_words(count: usize) -> io::Result<&'static [AtomicU32]> {
    let bytes = count.saturating_mul(size_of::<AtomicU32>()) as u64;
    let base = map_locked(bytes.div_ceil(PAGE_SIZE).max(1), libc::MAP_SHARED)?;
    // SAFETY: page-aligned, zeroed, never unmapped; any bit pattern is an AtomicU32.
    Ok(unsafe { std::slice::from_raw_parts(base.cast(), count) })
}

/// Drops the clean cached pages of `file`. Linux: posix_fadvise(2).
pub fn drop_cached_pages(file: &File) -> io::Result<()> {
    Ok(rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?)
}

/// Locks all present memory of this process, which prevents its reclaim.
pub fn lock_all() -> io::Result<()> {
    Ok(rustix::mm::mlockall(rustix::mm::MlockAllFlags::CURRENT)?)
}

/// Keeps freed heap memory, so that reusing it needs no system call.
pub fn keep_heap() {
    // SAFETY: sets two parameters of the allocator.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
        libc::mallopt(libc::M_MMAP_MAX, 0);
        libc::mallopt(libc::M_TOP_PAD, 256 * 1024);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_memory_is_mapped_exactly() {
        let resident = |mapping: &MemoryMapping| {
            let mut pages = Vec::new();
            mapping.in_core(&mut [0; 16], |page, present| pages.extend(present.then_some(page)))?;
            Ok::<_, io::Error>(pages)
        };
        for pages in [1, 511, 512, 513] {
            let mapping = MemoryMapping::anonymous_aligned(pages).unwrap();
            assert!(mapping.base.addr().is_multiple_of(2 << 20));
            mapping.advise(Advice::NoHuge).unwrap();
            assert!(mapping.access(0, true) && mapping.access(pages - 1, true));
            assert!(!mapping.access(pages, true));
            let mut touched = vec![0, pages - 1];
            touched.dedup();
            assert_eq!(resident(&mapping).unwrap(), touched);
            mapping.discard(0, 1).unwrap();
            assert_eq!(resident(&mapping).unwrap(), touched[1..]);
            assert!(mapping.discard(pages, 1).is_err());
            assert!(mapping.discard(1, pages).is_err());
        }
    }
}
