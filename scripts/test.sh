#!/usr/bin/env bash
# Set up an environment and run the tests: all of them, or the fast set with --fast. Other arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/setup_env.sh test

export HF_HUB_OFFLINE=1 OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-PASSIVE}" TOKENIZERS_PARALLELISM=false
if [ "${1:-}" = "--fast" ]; then
    shift
    set -- -m "not slow" "$@"
fi
# Files stay together: what a module's tests share is made once. Each worker trains with one thread.
exec env OMP_NUM_THREADS=1 python -m pytest -n auto --maxprocesses 4 --dist loadfile "$@"
