"""The embedded task: additions of three digits, worked digit by digit."""

import random

SMALLEST, LARGEST = 100, 999


def problems(n: int, seed: int) -> list[dict[str, str]]:
    """Give `n` different additions as rows with `prompt` (a plain question) and `solution` (the sum in digits)."""
    width = LARGEST - SMALLEST + 1
    pairs = [divmod(pair, width) for pair in random.Random(seed).sample(range(width**2), n)]
    terms = [(SMALLEST + a, SMALLEST + b) for a, b in pairs]
    return [{"prompt": f"What is {a} + {b}?", "solution": str(a + b)} for a, b in terms]


def worked_solution(prompt: str, rng: random.Random, forget_carry: float = 0.0) -> str:
    r"""Give the addition of `prompt`, one line for each digit from the right, then the answer in `\boxed{}`.

    Args:
        prompt: a prompt of `problems`.
        rng: decides which carries are forgotten.
        forget_carry: the probability that one is. The lines and the answer then go on from the mistake.
    """
    terms = prompt.removeprefix("What is ").removesuffix("?").split(" + ")
    lines, digits, carry = [], "", 0
    for a, b in zip(*map(reversed, terms), strict=True):
        total = int(a) + int(b) + carry
        lines.append(f"{a}+{b}+1={total}" if carry else f"{a}+{b}={total}")
        digits = f"{total % 10}{digits}"
        carry = int(total >= 10 and rng.random() >= forget_carry)
    answer = f"{total // 10 or ''}{digits}"  # the last line is read off whole: no carry to forget
    return "\n".join([*lines, rf"\boxed{{{answer}}}"])
