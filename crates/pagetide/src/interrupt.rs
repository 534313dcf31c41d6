//! ^C, or a request to terminate: the first asks the work to end, the second ends the process. The
//! session that has started QEMU ends QEMU when the work ends.

use crate::temporary;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Installs the handler; the flag becomes true at the first ^C.
pub fn flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let handler = Arc::clone(&flag);
    // Without a handler ^C ends the process at once: less polite, not wrong.
    let _ = ctrlc::set_handler(move || {
        if handler.swap(true, Ordering::Relaxed) {
            let _none_is_made = temporary::remove_all();
            std::process::exit(130);
        }
    });
    flag
}
