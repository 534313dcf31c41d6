//! `workload = "names"` and `workload = "pipes"`: kernel objects that a task makes one by one.

use super::names::need;
use crate::load::decode::Percent;
use crate::load::raw;
use crate::load::span::{At, Sink};
use crate::model::{Names, Pipes, Workload};
use crate::names::NameKind;

pub(super) fn names(keys: &raw::Names, sink: &mut Sink) -> Option<Workload> {
    let place = (keys.at, keys.bad.as_slice());
    let make = need(&keys.make, "make", place, "workload names", "1000", sink)?;
    let missing = keys.kind.as_ref().is_some_and(|kind| kind.value == NameKind::Missing);
    if let (true, Some(keep)) = (missing, &keys.keep) {
        let hint = "remove it, or kind = \"missing\": there is nothing to be removed";
        sink.hinted(keep.span, "names that do not exist cannot be kept", hint);
        return None;
    }
    let make = make.value.0 as u32;
    Some(Workload::Names(Names { make, keep_percent: percent(&keys.keep), missing }))
}

pub(super) fn pipes(keys: &raw::Pipes, sink: &mut Sink) -> Option<Workload> {
    let place = (keys.at, keys.bad.as_slice());
    let make = need(&keys.make, "make", place, "workload pipes", "200", sink)?;
    let make = make.value.0 as u32;
    Some(Workload::Pipes(Pipes { make, keep_percent: percent(&keys.keep) }))
}

fn percent(share: &Option<At<Percent>>) -> u32 {
    share.as_ref().map_or(0, |share| share.value.0 as u32)
}
