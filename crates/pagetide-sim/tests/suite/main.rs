//! All integration tests of this crate in one program, so that what it uses is compiled into it once.

mod blocks;
mod catalogue;
mod compared;
mod dirty;
mod ended;
mod golden;
mod groups;
mod kernels;
mod linux;
mod liveness;
mod page_size;
mod preemption;
mod readings;
mod service;
mod slabs;
mod storm;
mod watchers;
mod watermarks;
mod zram;
mod zswap;
