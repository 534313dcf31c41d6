//! Describes in words what a control file accepts, for docs/scenario.md and `pagetide explain`.
//!
//! Invariant: the words are derived only from the file's declaration in the core.

use pagetide_core::config::{ControlFile, ControlForm};
use pagetide_core::units::page_size::PageSize;

/// Unit and range of a file, such as `1/10000 of a zone: 1 to 3000`; bounds are for 4 KiB pages.
pub fn takes(file: &ControlFile) -> String {
    let least_is_wide = |min: i128| min == i32::MIN.into();
    let what = match (file.form, file.form.bounds(PageSize::default())) {
        (ControlForm::Bytes { min_pages }, _) => format!("{min_pages} pages or more"),
        (ControlForm::Debugfs, _) => "at most what one page table maps".to_owned(),
        (_, Some((min, max))) if min == max => format!("{min}"),
        (_, Some((min, max))) if least_is_wide(min) && max >= i32::MAX.into() => {
            "an integer".to_owned()
        }
        (_, Some((min, max))) if max >= i32::MAX.into() => format!("{min} or more"),
        (_, Some((min, max))) => format!("{min} to {max}"),
        (ControlForm::Zones, _) => "one integer per zone".to_owned(),
        (ControlForm::Policy(policy), _) => policy.variant_list(),
        (ControlForm::Size { unlimited }, _) => format!("300M, 2G, or `{unlimited}` for no limit"),
        (ControlForm::Reclaim, _) => {
            "64M, optionally followed by ` swappiness=N` (0 to 200)".to_owned()
        }
        (ControlForm::Bandwidth, _) => {
            "`max` or 1000 or more, optionally a period (1000 to 1000000): `50000 100000`"
                .to_owned()
        }
        _ => "any text".to_owned(),
    };
    match (file.unit, file.form) {
        ("", _) | (_, ControlForm::Size { .. } | ControlForm::Reclaim) => what,
        (unit, _) => format!("{unit}: {what}"),
    }
}
