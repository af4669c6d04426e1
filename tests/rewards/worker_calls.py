"""Calls that workers make in test_worker.py."""

import os
import time


def act(kind, value=None):
    if kind == "sleep":
        time.sleep(60)
    elif kind == "compute":
        return 10 ** (10**9)  # one C call: no signal handler and no other thread runs before it ends
    elif kind == "exit":
        os._exit(3)
    elif kind == "allocate":
        return len(bytearray(value))
    elif kind == "raise":
        raise KeyError(value)
    elif kind == "pid":
        return os.getpid()
    return value
