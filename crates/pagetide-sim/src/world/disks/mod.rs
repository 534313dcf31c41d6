//! Disks: which requests are in flight, and which threads wait.

mod requests;
