"""`acpo-trl evaluate` for a launcher: accelerate launch scripts/evaluate.py --model MODEL --benchmarks NAME ..."""

import sys

from acpo_trl.cli.evaluate import run

if __name__ == "__main__":
    run(sys.argv[1:], "scripts/evaluate.py")
