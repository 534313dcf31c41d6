#!/usr/bin/env bash
# The Python package as a user has it: a wheel in a virtual environment, the tests of python/tests.
#
# test_python.sh TARGET [PYTEST ARGUMENT]...
# PYTHON names the interpreter (python3). Without Python 3.10 or newer with venv the script says so
# and passes. PAGETIDE_EXTRAS names the extras to install (test). The environment is kept until
# pyproject.toml, the interpreter or the extras change. The wheel has the dev profile: a release
# would take minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=$(mkdir -p "$1" && cd "$1" && pwd)/python
shift
python=${PYTHON:-python3}
extras=${PAGETIDE_EXTRAS:-test}

if ! "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    echo "make: no Python 3.10 or newer with venv, so the tests of the package are skipped" >&2
    exit 0
fi
key=$({ cat pyproject.toml; "$python" -VV; echo "$extras"; } | sha256sum)
env=$target/${extras//,/-}
install() {
    "$env/bin/python" -m pip install --quiet --disable-pip-version-check "$@" || {
        echo "make: the packages that the tests need cannot be fetched, so the tests are skipped" >&2
        exit 0
    }
}
if [ "$(cat "$env/key" 2>/dev/null)" != "$key" ]; then
    rm -rf "$env"
    "$python" -m venv "$env"
    install 'maturin>=1.9,<2'
fi
rm -rf "$target/wheels"
"$env/bin/maturin" build --quiet --locked --profile dev --interpreter "$env/bin/python" --out "$target/wheels"
wheels=("$target"/wheels/*.whl)
if [ -e "$env/key" ]; then
    "$env/bin/python" -m pip install --quiet --force-reinstall --no-deps "${wheels[0]}"
else
    "$env/bin/python" -m pip install --quiet --no-deps "${wheels[0]}"
    install "${wheels[0]}[$extras]"
    echo "$key" >"$env/key"
fi
exec "$env/bin/python" -m pytest -n 2 --dist worksteal "$@"
