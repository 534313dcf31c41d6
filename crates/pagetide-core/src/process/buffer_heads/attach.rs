//! Attaching buffer heads to pages, and releasing them.
//!
//! Linux 6.1: `create_empty_buffers`, `try_to_free_buffers`, `filemap_release_folio`.

use super::BufferHeadRequest;
use crate::audit::{check, Violation};
use crate::frames::gfp::Gfp;
use crate::frames::page::PageFlags;
use crate::frames::page_request::{RetryTiming, SlowRequest};
use crate::interface::ctx::Ctx;
use crate::interface::effect::Step;
use crate::interface::outcome::Outcome;
use crate::process::Processes;
use crate::process::{Machine, MmId};
use crate::slab::call::KmemAlloc;
use crate::slab::object::Object;
use crate::units::{Cpu, FileId, Pfn};
use alloc::format;

impl Processes {
    fn kept_buffer_head(&mut self, ctx: &Ctx) -> Option<Object> {
        self.mms[ctx.asker].buffer_head.take()
    }
}

impl Machine {
    /// Gives a page its buffer head if an object is available at once. `false`: the task must
    /// allocate one ([`Machine::buffer_head_step`]).
    #[inline]
    pub(in crate::process) fn try_attach_buffer_head(
        &mut self,
        pfn: Pfn,
        wanted: &mut BufferHeadRequest,
        ctx: &Ctx,
    ) -> bool {
        let page = &self.mem.pages[pfn];
        if page.has(PageFlags::PRIVATE) || wanted.unavailable == Some(page.index) {
            return true;
        }
        let cache = self.slabs.buffer_head;
        let memcg = page.memcg;
        let kept = (memcg == ctx.memcg).then(|| self.owners.kept_buffer_head(ctx)).flatten();
        match kept.or_else(|| self.kmem_cache_alloc(cache, memcg, true, ctx.cpu)) {
            Some(object) => self.attach_buffer_head(pfn, object),
            None => wanted.asked = Some(KmemAlloc::new(cache, true, Gfp::NOFS)),
        }
        !wanted.is_asking()
    }

    /// A buffer head for a page that the task will create; `None` if none can be allocated.
    ///
    /// # Errors
    /// If the task must allocate one first ([`Machine::buffer_head_step`]).
    pub(in crate::process) fn take_buffer_head(
        &mut self,
        index: u32,
        wanted: &mut BufferHeadRequest,
        ctx: &Ctx,
    ) -> Result<Option<Object>, ()> {
        if wanted.unavailable == Some(index) {
            return Ok(None);
        }
        let cache = self.slabs.buffer_head;
        let kept = self.owners.kept_buffer_head(ctx);
        let object = kept.or_else(|| self.kmem_cache_alloc(cache, ctx.memcg, true, ctx.cpu));
        if object.is_none() {
            wanted.asked = Some(KmemAlloc::new(cache, true, Gfp::NOFS));
            return Err(());
        }
        Ok(object)
    }

    /// Saves a buffer head until its page exists. If the buffer head were freed here, the page
    /// could get its memory. The next buffer head could then get the memory meant for the page, and
    /// so on without end.
    pub(in crate::process) fn keep_buffer_head(&mut self, head: Object, ctx: &Ctx) {
        let more = self.owners.mms[ctx.asker].buffer_head.replace(head);
        if let Some(more) = more {
            self.free_known(more, ctx.cpu);
        }
    }
    pub(in crate::process) fn free_kept_buffer_head(&mut self, mm: MmId, cpu: Cpu) {
        if let Some(head) = self.owners.mms[mm].buffer_head.take() {
            self.free_known(head, cpu);
        }
    }

    /// One bounded step of allocating the buffer head of a file's page.
    ///
    /// # Errors
    /// The step to return if the allocation must continue.
    pub(in crate::process) fn buffer_head_step(
        &mut self,
        file: FileId,
        index: u32,
        wanted: &mut BufferHeadRequest,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Result<(), Step<Outcome>> {
        let Some(mut asked) = wanted.asked.take() else { return Ok(()) };
        let cached = |machine: &Machine| machine.owners.files[file].get(index);
        // The page's group pays. Pages can leave the cache during the allocation.
        let page = cached(self).map(|pfn| self.mem.pages[pfn].memcg);
        let memcg = page.filter(|memcg| memcg.is_some()).unwrap_or(ctx.memcg);
        let payer = &Ctx { memcg, ..*ctx };
        let step = self.request_step(ctx, slow, RetryTiming::NextStep, |machine, given| {
            machine.attempt_object(&mut asked, given, payer)
        });
        let object = match step {
            Step::Continue | Step::Wait(_) => {
                wanted.asked = Some(asked);
                return Err(match step {
                    Step::Wait(sleep) => Step::Wait(sleep),
                    Step::Continue | Step::Done(_) => Step::Continue,
                });
            }
            Step::Done(Ok(object)) => Some(object),
            Step::Done(Err(_)) => {
                let cache = self.slabs.buffer_head;
                self.kmem_alloc_beyond(cache, payer)
            }
        };
        let lacks = |pfn: &Pfn| !self.mem.pages[*pfn].has(PageFlags::PRIVATE);
        match (cached(self).filter(lacks), object) {
            (Some(pfn), Some(object)) => self.attach_buffer_head(pfn, object),
            (None, Some(object)) => self.keep_buffer_head(object, ctx),
            (_, None) => wanted.unavailable = Some(index),
        }
        Ok(())
    }

    pub(in crate::process) fn attach_buffer_head(&mut self, pfn: Pfn, object: Object) {
        let at = self.owners.buffer_heads.insert(object);
        let page = &mut self.mem.pages[pfn];
        debug_assert!(page.has(PageFlags::FILE) && !page.has(PageFlags::PRIVATE));
        page.set(PageFlags::PRIVATE);
        page.private = at;
    }

    /// Releases a page's buffer head (Linux `filemap_release_folio`).
    #[inline]
    pub(in crate::process) fn release_buffer_head(&mut self, pfn: Pfn, cpu: Cpu) {
        let page = &mut self.mem.pages[pfn];
        if page.test_clear(PageFlags::PRIVATE) {
            let at = core::mem::take(&mut page.private);
            let object = self.owners.buffer_heads.remove(at);
            self.free_known(object, cpu);
        }
    }
    pub(in crate::process) fn audit_buffer_heads(&self) -> Result<(), Violation> {
        let heads = &self.owners.buffer_heads;
        let mut found = alloc::vec![false; heads.table.len()];
        for (Pfn(at), page) in self.mem.pages.opened() {
            if page.has(PageFlags::PRIVATE) {
                check!(page.has(PageFlags::FILE), "pfn{at} has a buffer head, but no file");
                let seen =
                    found.get_mut(page.private as usize).map(|it| core::mem::replace(it, true));
                check!(
                    seen == Some(false),
                    "pfn{at}: buffer head {} is in use twice",
                    page.private
                );
                let object = heads.table[page.private as usize];
                self.slabs.audit_in_use(object, &format!("the buffer head of pfn{at}"))?;
            }
        }
        for (id, mm) in self.owners.mms.iter().enumerate() {
            check!(
                !mm.exited || mm.buffer_head.is_none(),
                "mm{id} has ended, but keeps a buffer head"
            );
            if let Some(object) = mm.buffer_head {
                self.slabs.audit_in_use(object, &format!("a buffer head that mm{id} keeps"))?;
            }
        }
        let used = found.iter().filter(|&&used| used).count();
        let known = heads.table.len() - heads.free.len();
        check!(used == known, "{known} buffer heads, {used} pages with one");
        Ok(())
    }
}
