//! Recorded and derived histories: the readings of a program at each instant, and its decisions.

mod earlyoom;
mod history;
mod kubelet;
mod lmkd;
mod senpai;
mod systemd_oomd;
