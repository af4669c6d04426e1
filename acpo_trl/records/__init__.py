"""Records of credit: sampled completions with what each token and turn was given, on disk."""

from .schema import FOLDER, SCHEMA, Record, RewardEntry, TurnRewardEntry
from .store import read_records, write_records

__all__ = [
    "FOLDER",
    "SCHEMA",
    "Record",
    "RewardEntry",
    "TurnRewardEntry",
    "read_records",
    "write_records",
]
