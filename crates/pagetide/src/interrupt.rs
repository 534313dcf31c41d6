//! Handles ^C (SIGINT) and SIGTERM: the first signal asks the work to end, the second ends the
//! process. A session that started QEMU ends QEMU when its work ends.

use crate::temporary;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Installs the handler. The flag becomes true at the first signal.
pub fn flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let handler = Arc::clone(&flag);
    // If the handler cannot be installed, ^C ends the process at once, which is acceptable.
    let _ = ctrlc::set_handler(move || {
        if handler.swap(true, Ordering::Relaxed) {
            let _none_is_made = temporary::remove_all();
            std::process::exit(130);
        }
    });
    flag
}
