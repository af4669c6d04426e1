"""Train in FOLDER and die by SIGKILL after STEP: `python killed_run.py FOLDER STEP`."""

import os
import signal
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

from test_resume import WINDOWS, run  # noqa: E402
from tiny import build_trainer  # noqa: E402
from transformers import TrainerCallback  # noqa: E402


class Kill(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)


settings = {"save_steps": 3, "credit_log": {"every": 1, "groups": 9}, "callbacks": [Kill()]}
run(build_trainer, Path(sys.argv[1]), WINDOWS["several steps a generation"], **settings)
