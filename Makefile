# Everything needs cargo and a C compiler, which Rust's linker wants as well; cargo fetches the
# crates of Cargo.lock.

CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)

.PHONY: demo test bench

# Two experiments and their comparisons: the watermark patch of 2011, and a real compiler's page
# trace on a machine too small for eight of it.
demo:
	$(CARGO) build --release --locked -p pagetide
	$(TARGET)/release/pagetide run experiments/tunable-watermarks.toml
	@echo
	$(TARGET)/release/pagetide run experiments/compiler-trace.toml

# The benches are compiled by clippy but neither built nor run: that would cost more than all tests.
test:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) test --locked
	find experiments -name '*.toml' -exec $(TARGET)/debug/pagetide check {} +
	$(CARGO) build --locked -p pagetide-core --no-default-features

# Ours and the peers' in one run.
bench:
	$(CARGO) bench --locked -p pagetide-bench
