//! Memory that a cache holds after churn: the order of using slabs decides.

#[path = "../../../pagetide-bench/src/churn.rs"]
mod churn;
#[path = "../../../pagetide-bench/src/no_bytes.rs"]
mod no_bytes;
#[allow(dead_code)] // benches use the rest
#[path = "../../../pagetide-bench/src/objects.rs"]
mod objects;

use churn::held;
use pagetide_core::config::SlubPolicy;

#[test]
fn the_best_policy_holds_a_tenth_more_than_is_live_at_most() {
    for size in [32, 192, 1024] {
        let by = |slub| held(64 << 20, size, 20_000, slub).churned;
        let best = by(SlubPolicy::Lowest).min(by(SlubPolicy::Fullest));
        assert!(best <= 1.10, "{size} bytes: {best}");
        let linux = by(SlubPolicy::Linux61);
        assert!(linux > best, "{size} bytes: a queue of slabs holds {linux}");
    }
}
