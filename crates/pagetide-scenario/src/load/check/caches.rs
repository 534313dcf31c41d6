//! Checks `[[machine.cache]]` and the caches in writes to `slab.CACHE.FILE`. Each must be one of
//! the kernel's own caches, a cache of file names or pipes if a task makes these, or a cache of an
//! object mix that the scenario uses.

use super::names::NameIndex;
use super::objects::Mixes;
use crate::load::raw;
use crate::load::span::{clip, ProblemSink, SourceSpan};
use crate::model::kernel_objects::OBJECTS;
use crate::model::CacheSetup;
use crate::names::kernel_caches;
use crate::workload::WorkloadKeys;
use pagetide_core::control::cache_and_file;

/// Names of caches that the machine may have.
struct CacheNames<'m> {
    own: Vec<String>,
    mixes: &'m Mixes,
}

impl CacheNames<'_> {
    /// Reports a cache that the machine cannot have.
    fn check(&self, name: &str, span: SourceSpan, sink: &mut ProblemSink) {
        // If a mix records another object size than the kernel's, its cache is called `NAME:SIZE`.
        let plain = match name.rsplit_once(':') {
            Some((plain, size)) if size.bytes().all(|byte| byte.is_ascii_digit()) => plain,
            _ => name,
        };
        let names = || self.own.iter().map(String::as_str).chain(self.mixes.names());
        if self.mixes.is_incomplete() || names().any(|known| known == plain) {
            return;
        }
        let hint = match sink.suggest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if OBJECTS.contains(&name) => {
                "it needs a task with workload names or pipes, or an object mix that uses it"
                    .to_owned()
            }
            None => {
                "write a cache of the kernel, such as `kmalloc-64`, or one of an object mix of \
                     workload kernel-objects"
                    .to_owned()
            }
        };
        sink.hinted(span, format!("there is no cache `{}`", clip(name)), hint);
    }
}

/// Returns the tuned caches, and checks every cache name in the scenario.
pub(super) fn check(
    raw: &raw::ScenarioTable,
    mixes: &Mixes,
    sink: &mut ProblemSink,
) -> Vec<CacheSetup> {
    let makes_things =
        |keys: &WorkloadKeys| matches!(keys, WorkloadKeys::Names(_) | WorkloadKeys::Pipes(_));
    let of_things = if raw.workloads().any(makes_things) { &OBJECTS[..] } else { &[] };
    let own = kernel_caches().chain(of_things.iter().map(|&name| name.to_owned())).collect();
    let known = CacheNames { own, mixes };
    let list = raw.machine.as_ref().and_then(|machine| machine.cache.as_deref());
    let mut names = NameIndex::new("cache");
    let mut tuned = Vec::new();
    for cache in list.unwrap_or_default() {
        let Some(name) = cache.name(sink) else { continue };
        names.insert(&name.value, name.span, tuned.len(), sink);
        known.check(&name.value, name.span, sink);
        let tuning = CacheSetup {
            name: name.value.clone(),
            order: cache.order.as_ref().map(|order| order.value.0 as u8),
            min_partial: cache.min_partial.as_ref().map(|slabs| slabs.value.0 as u32),
            cpu_partial: cache.cpu_partial.as_ref().map(|objects| objects.value.0 as u32),
        };
        let is_empty = tuning == CacheSetup { name: name.value.clone(), ..Default::default() };
        if is_empty && cache.bad.is_empty() {
            let message = format!("the cache `{}` has no setting", clip(&name.value));
            sink.hinted(name.span, message, "add order, min_partial or cpu_partial");
        }
        tuned.push(tuning);
    }
    let writes = raw.sysctl.as_ref().map_or(&[][..], |sysctl| sysctl.writes.as_slice());
    for write in writes {
        check_write(&write.name.value, write.name.span, &known, sink);
    }
    for workload in raw.workloads() {
        if let WorkloadKeys::WriteControl(keys) = workload {
            let Some(control) = &keys.control else { continue };
            check_write(&control.value.0, control.span, &known, sink);
        }
    }
    tuned
}

fn check_write(name: &str, span: SourceSpan, known: &CacheNames<'_>, sink: &mut ProblemSink) {
    if let Some((cache, _)) = cache_and_file(name) {
        known.check(cache, span, sink);
    }
}
