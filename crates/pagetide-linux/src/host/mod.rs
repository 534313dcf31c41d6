//! Reads a live system, or a saved copy of one, into a scenario.
