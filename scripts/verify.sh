#!/usr/bin/env bash
# Runs `pagetide verify` over scenarios and sums up at the end. Fails if any could not be run; what
# differs from the kernel does not fail, it is in the tables.
#
#   scripts/verify.sh PAGETIDE [--kernel KERNEL] FILE...
set -uo pipefail

pagetide="$1"
shift
kernel=()
if [ "${1:-}" = --kernel ]; then
    kernel=("$1" "$2")
    shift 2
fi
output="$(mktemp)"
trap 'rm -f "$output"' EXIT
summary=()
failed=0
for file in "$@"; do
    begun=$SECONDS
    echo "== $file"
    if "$pagetide" verify "${kernel[@]}" "$file" | tee "$output"; then
        # The one line that every table ends with.
        line="$(grep -E '^[0-9]+ counters? that repeats?' "$output")"
        # What the scenario expects, of each variant.
        line+="$(sed -n 's/^expected  */; /p' "$output" | tr -d '\n')"
    else
        status=$?
        [ "$status" != 130 ] || exit 130
        line="could not be run, or not whole (exit code $status)"
        failed=$((failed + 1))
    fi
    summary+=("$(basename "$file" .toml), $((SECONDS - begun)) s: $line")
    echo
done
echo "== summary of $# scenarios, $failed not run"
printf '%s\n' "${summary[@]}"
[ "$failed" = 0 ]
