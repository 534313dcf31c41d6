#!/usr/bin/env bash
# Runs `pagetide verify` for scenarios and prints a summary. Fails if a run fails; differences from
# the kernel are not failures, they are in the tables.
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
        # The last line of every table.
        line="$(grep -E '^[0-9]+ stable counters?' "$output")"
        # The scenario's expectations for each variant.
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
