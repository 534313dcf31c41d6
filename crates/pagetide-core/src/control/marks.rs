//! The three watermarks of the tunable-watermarks patch, written one by one or together.
//!
//! The patch does not say what happens if the watermarks are in the wrong order; here such a write
//! is refused. Until one of the watermarks is written, they read as the values that follow from
//! `vm.min_free_kbytes`.

use super::error::ControlError;
use crate::config::{Sysctl, INT_MAX};
use crate::frames::watermark::{WatermarkInputs, WatermarkPolicy, WmarkKbytes};
use crate::units::errno::Errno;
use alloc::format;
use alloc::string::String;

/// The watermarks that a list of writes sets.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct MarksWrite {
    min: Option<u64>,
    low: Option<u64>,
    high: Option<u64>,
}

impl MarksWrite {
    /// The field for a control file; `None` if the file is not one of the three watermarks.
    pub(super) fn field(&mut self, control: Sysctl) -> Option<&mut Option<u64>> {
        match control {
            Sysctl::WmarkMinKbytes => Some(&mut self.min),
            Sysctl::WmarkLowKbytes => Some(&mut self.low),
            Sysctl::WmarkHighKbytes => Some(&mut self.high),
            _ => None,
        }
    }

    /// All three values after the write; `old` has the values before the write.
    fn over(self, old: WmarkKbytes) -> WmarkKbytes {
        WmarkKbytes {
            min: self.min.unwrap_or(old.min),
            low: self.low.unwrap_or(old.low),
            high: self.high.unwrap_or(old.high),
        }
    }

    pub(super) fn apply(self, inputs: &mut WatermarkInputs) -> Result<(), ControlError> {
        let marks = self.over(inputs.wmark_kbytes());
        if !inputs.write_wmark_kbytes(marks) {
            return Err(self.refuse(marks));
        }
        inputs.policy = WatermarkPolicy::Apart;
        Ok(())
    }

    fn refuse(self, marks: WmarkKbytes) -> ControlError {
        let WmarkKbytes { min, low, high } = marks;
        let out_of_range = |control: Sysctl, value: u64, range: String| {
            let name = control.name();
            let message = format!(
                "`{value}` is out of range for {name}; it takes {range}, unless the marks are written \
                 together"
            );
            ControlError::new(Errno::Einval, name, message)
        };
        match (self.min, self.low, self.high) {
            (Some(min), None, None) => {
                let range = format!("0 to {low} (vm.wmark_low_kbytes)");
                out_of_range(Sysctl::WmarkMinKbytes, min, range)
            }
            (None, Some(low), None) => {
                let range = format!("{min} (vm.wmark_min_kbytes) to {high} (vm.wmark_high_kbytes)");
                out_of_range(Sysctl::WmarkLowKbytes, low, range)
            }
            (None, None, Some(high)) => {
                let range = format!("{low} (vm.wmark_low_kbytes) to {INT_MAX}");
                out_of_range(Sysctl::WmarkHighKbytes, high, range)
            }
            _ => {
                let control =
                    if min > low { Sysctl::WmarkMinKbytes } else { Sysctl::WmarkLowKbytes };
                let message = format!(
                    "vm.wmark_min_kbytes, vm.wmark_low_kbytes and vm.wmark_high_kbytes would be \
                     {min}, {low} and {high} kB; they must not decrease in this order"
                );
                ControlError::new(Errno::Einval, control.name(), message)
            }
        }
    }
}
