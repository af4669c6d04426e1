"""The end of a script that runs in several processes."""

import os
import sys

import torch


def leave():
    """End this process at once: torch's Gloo threads now and then abort it on leaving after so short a run."""
    if torch.distributed.is_initialized():
        torch.distributed.barrier()  # what a process wrote is there for the others
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
