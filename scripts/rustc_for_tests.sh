#!/usr/bin/env bash
# The compiler of `make test`: rustc with clippy's lints. It optimises tests less than the libraries that they
# run. The core's integration tests get a little, because they audit every step in generic code. All other tests
# get nothing.
case " $* " in
*" crates/pagetide-core/tests/suite/main.rs "*) level=(-C opt-level=1) ;;
*" --test "*) level=(-C opt-level=0) ;;
*) level=() ;;
esac
exec clippy-driver "$@" "${level[@]}"
