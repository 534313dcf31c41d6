//! Whether a trace file can be replayed, as far as its header tells.

use std::path::Path;

/// What is wrong with it, and perhaps what to do.
pub(super) fn check(path: &Path) -> Result<(), (String, Option<String>)> {
    let metadata = std::fs::metadata(path).map_err(|error| {
        let shown = path.display();
        (error.to_string(), Some(format!("looked for {shown}: paths start at the scenario file")))
    })?;
    if !metadata.is_file() {
        return Err(("it is not a file".into(), None));
    }
    Ok(())
}
