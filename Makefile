# Everything needs cargo and nothing else; cargo fetches the crates of Cargo.lock.

CARGO ?= cargo

.PHONY: demo test bench

# Two experiments and their comparisons: the watermark patch of 2011, and a compiler's page trace
# on machines too small for it.
demo:
	$(CARGO) build --release --locked -p pagetide
	target/release/pagetide run experiments/tunable-watermarks.toml
	@echo
	target/release/pagetide run experiments/compiler-trace.toml

# Benches are checked but not run: building them for real would cost more than all tests.
test:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) test --locked
	find experiments -name '*.toml' -exec target/debug/pagetide check {} +
	$(CARGO) build --locked -p pagetide-core --no-default-features

# Ours and the peers' in one run.
bench:
	$(CARGO) bench --locked -p pagetide-bench
