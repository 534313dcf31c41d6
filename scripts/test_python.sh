#!/usr/bin/env bash
# The Python package as a user has it: a wheel, a fresh virtual environment, the tests of python/tests.
#
# test_python.sh TARGET [PYTEST ARGUMENT]... PYTHON names the interpreter (python3). Without one of 3.10 or newer that
# has venv, says so and passes. PAGETIDE_EXTRAS names the extras that are installed (test). The wheel has the profile of
# development: a release would take minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=$(mkdir -p "$1" && cd "$1" && pwd)/python
shift
python=${PYTHON:-python3}

if ! "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    echo "make: no Python of 3.10 or newer with venv, so the tests of the package are skipped" >&2
    exit 0
fi
if ! "$target/tools/bin/maturin" --version >/dev/null 2>&1; then
    rm -rf "$target/tools"
    "$python" -m venv "$target/tools"
    "$target/tools/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.9,<2' || {
        echo "make: maturin cannot be fetched, so the tests of the package are skipped" >&2
        exit 0
    }
fi
rm -rf "$target/wheels" "$target/test"
export CARGO_PROFILE_DEV_DEBUG=0
"$target/tools/bin/maturin" build --quiet --locked --profile dev --interpreter "$python" --out "$target/wheels"
"$python" -m venv "$target/test"
wheels=("$target"/wheels/*.whl)
"$target/test/bin/pip" install --quiet --disable-pip-version-check "${wheels[0]}"
"$target/test/bin/pip" install --quiet --disable-pip-version-check "${wheels[0]}[${PAGETIDE_EXTRAS:-test}]" || {
    echo "make: what the tests of the package need cannot be fetched, so they are skipped" >&2
    exit 0
}
exec "$target/test/bin/pytest" "$@"
