#!/usr/bin/env bash
# Sets up and runs every check. Arguments go to pytest: ./test.sh tests/unit -k presets
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
./meshwright.sh --set-up test || exit 1

failed=()
check() {
    printf '\n== %s\n' "$*"
    "$@" || failed+=("$1")
}

check .venv/bin/ruff format --check .
check .venv/bin/ruff check .
check .venv/bin/mypy
check .venv/bin/lint-imports
QT_QPA_PLATFORM=offscreen check .venv/bin/pytest -n "${TEST_WORKERS:-2}" -m "not benchmark" "$@"

if [ "${#failed[@]}" -gt 0 ]; then
    printf '\nfailed: %s\n' "${failed[*]##*/}"
    exit 1
fi
