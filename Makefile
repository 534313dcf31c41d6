# Everything needs cargo and a C compiler, which Rust's linker wants as well; cargo fetches the
# crates of Cargo.lock. Targets that use QEMU get it, and a kernel, from `make kernel`.

CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
# One pass lints and compiles; CLIPPY_ARGS is how `cargo clippy` itself says `-D warnings`. Incremental builds cost time
# when nothing is built yet.
LINTED := RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/scripts/rustc_for_tests.sh CARGO_INCREMENTAL=0 \
	CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
# With the Python extension, which has no test in Rust: cargo then chooses the same features of all libraries here and
# for the wheel, and `make test-py` compiles none of them again.
TESTED := --workspace --exclude pagetide-bench
QEMU_TESTS := $(CARGO) test --locked $(TESTED) --test qemu -- --nocapture

PYTHON ?= python3
MDBOOK := $(TARGET)/tools/bin/mdbook
MATURIN := $(TARGET)/tools/maturin/bin/maturin

.PHONY: demo kernel proposals test-proposals guest verify selftests test lint test-all test-docs test-py test-ray test-qemu book bench bench-guard wheel

# Two experiments and their comparisons: the watermark patch of 2011, and a real compiler's page
# trace on a machine too small for eight of it.
demo:
	$(CARGO) build --release --locked -p pagetide
	$(TARGET)/release/pagetide run experiments/tunable-watermarks.toml
	@echo
	$(TARGET)/release/pagetide run experiments/compiler-trace.toml

# QEMU, and a kernel to boot in it. Does nothing when both are there.
kernel:
	scripts/kernel.sh

# A kernel with the patches of kernels/linux-6.1, for `pagetide verify --kernel proposals`. Does nothing when it is
# there and nothing has changed; else it takes some minutes.
proposals: kernel
	scripts/proposals.sh

# The cases of the proposals on that kernel and in the simulator, both sides of each.
test-proposals: proposals guest
	$(CARGO) build --release --locked -p pagetide
	scripts/verify.sh $(TARGET)/release/pagetide --kernel proposals experiments/verify/proposals/*.toml

# The program that runs in QEMU: alone in its machine, hence without libraries.
guest:
	$(CARGO) rustc --locked --profile guest -p pagetide-guest -- -C target-feature=+crt-static

# Every scenario of experiments/verify on the real kernel and in the simulator.
verify: kernel guest
	$(CARGO) build --release --locked -p pagetide
	scripts/verify.sh $(TARGET)/release/pagetide experiments/verify/*.toml

# The kernel's own selftests, as scenarios, on the real kernel and in the simulator; the simulator's also on 1, 2 and 8
# CPUs with 5 seeds each.
selftests: kernel guest
	PAGETIDE_SELFTESTS=long $(CARGO) test --locked -p pagetide-verify --test suite -- selftests
	$(CARGO) build --release --locked -p pagetide
	scripts/verify.sh $(TARGET)/release/pagetide experiments/selftests/*.toml

# All that a change must pass, except the benches, what boots a kernel and the slow tests of the Python package.
test:
	$(CARGO) fmt --all --check
	$(LINTED) $(CARGO) test --locked $(TESTED)
	find experiments -name '*.toml' -not -path '*/objects/*' -exec $(TARGET)/debug/pagetide check {} +
	$(CARGO) check --locked -p pagetide-core --no-default-features
	$(LINTED) $(MAKE) test-py EXTRAS=$(EXTRAS) PYTEST='$(PYTEST)'

# The lints of every target, with the benches' peers, whose C code takes minutes to build.
lint:
	$(CARGO) clippy --locked --workspace --all-targets --all-features -- -D warnings

# The same, with the benches' lints, the slow tests of the Python package and the tests that boot a kernel. Without
# QEMU, a kernel or a static guest the latter say so and pass.
test-all: PYTEST := -m "not ray"
test-all: EXTRAS := test-all
test-all: test
	@$(MAKE) guest || echo "make: no static guest, so the tests of QEMU are skipped" >&2
	$(LINTED) $(QEMU_TESTS)
	$(CARGO) clippy --locked -p pagetide-bench --all-targets -- -D warnings

# The Python package in a virtual environment. Without Python 3.10 or newer says so and passes.
test-py:
	PAGETIDE_EXTRAS=$(or $(EXTRAS),test) PYTHON=$(PYTHON) scripts/test_python.sh $(TARGET) $(PYTEST)

# The tests that start a Ray on this machine; it is large, so they are not part of `make test`.
test-ray:
	PAGETIDE_EXTRAS=test,ray PYTHON=$(PYTHON) scripts/test_python.sh $(TARGET) -m ray

# The wheel to install elsewhere: $(TARGET)/wheels. It needs Python with venv, once, for maturin.
wheel: $(MATURIN)
	$(MATURIN) build --release --locked --out $(TARGET)/wheels

$(MATURIN):
	$(PYTHON) -m venv $(TARGET)/tools/maturin
	$(TARGET)/tools/maturin/bin/pip install --quiet 'maturin>=1.9,<2'

# The commands that documents show, those that take minutes included: `make test` runs only quick ones.
# PAGETIDE_ACCEPT=1 writes what they print into the documents, PAGETIDE_ONLY=WORD runs those with a word.
test-docs:
	$(CARGO) test --release --locked -p pagetide --test cli -- documents

# The pages as a site, with reports of experiments: $(TARGET)/book/index.html.
book: $(MDBOOK)
	$(CARGO) build --release --locked -p pagetide
	scripts/book.py $(TARGET)/release/pagetide $(MDBOOK) $(TARGET)

# mdBook from its registry, once; that takes two minutes.
$(MDBOOK):
	$(CARGO) install mdbook --version 0.5.4 --locked --no-default-features --features search --root $(TARGET)/tools

# Only those that boot a kernel.
test-qemu: kernel guest
	$(QEMU_TESTS)

# Ours and the peers' in one run.
bench:
	$(CARGO) bench --locked -p pagetide-bench --features peers

# Instructions of a few fixed loads against those recorded; fails at 5 % more. It needs valgrind.
bench-guard:
	scripts/bench_guard.py
