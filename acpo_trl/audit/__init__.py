"""Audit: does the blame of a rule find the step that humans call the first wrong one?"""

from .blame import SIGNALS, Verdict, judge_solution
from .score import TokenScores, score_solutions
from .solutions import Solution, load_solutions
from .tables import AuditRow, markdown_table, summarize, text_table

__all__ = [
    "SIGNALS",
    "AuditRow",
    "Solution",
    "TokenScores",
    "Verdict",
    "judge_solution",
    "load_solutions",
    "markdown_table",
    "score_solutions",
    "summarize",
    "text_table",
]
