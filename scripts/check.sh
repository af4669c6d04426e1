#!/usr/bin/env bash
# Format, lint and types, as CI wants them. `--fix` repairs what can be repaired.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" = "--fix" ]; then
    ruff format .
    ruff check --fix .
fi
ruff format --check .
ruff check .
mypy
