"""For how many turns an estimator is meant."""

import math

SHORT, MIDDLE, LONG = (0, 5), (5, 15), (15, math.inf)

TIERS = {
    **dict.fromkeys(("outcome", "discounted", "mt_grpo", "kevin", "gtpo_turn"), SHORT),
    **dict.fromkeys(("milestone", "gigpo", "gigpo_similar", "hgpo", "salt"), MIDDLE),
    **dict.fromkeys(("process", "turn_rtg", "spa_rl"), LONG),
}
"""Fewest and most turns, on average, of estimators that a rule of thumb speaks of; the others have a critic, look at
single tokens, or need what only some tasks have."""


def hint_of(estimator: str, mean_turns: float) -> str | None:
    """What to say about an estimator at this mean number of turns; None if it is meant for it, or has no tier."""
    fewest, most = TIERS.get(estimator, (0, math.inf))
    if fewest <= mean_turns <= most:
        return None
    tier = next(tier for tier in (SHORT, MIDDLE, LONG) if mean_turns <= tier[1])
    others = [name for name, meant in TIERS.items() if meant == tier]
    bounds = f"up to {most}" if not fewest else f"{fewest} or more" if most == math.inf else f"{fewest} to {most}"
    return (
        f"turn_estimator {estimator!r} with {mean_turns:.1f} turns on average: by a rule of thumb it is meant for "
        f"{bounds}; for as many as here there are {', '.join(others)} (docs/concepts/turn_estimators.md)."
    )
