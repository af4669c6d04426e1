"""`acpo-trl train` for a launcher: accelerate launch scripts/train.py --config FILE.yaml [--key value ...]"""

import sys

from acpo_trl.cli.train import run

if __name__ == "__main__":
    run(sys.argv[1:], "scripts/train.py")
