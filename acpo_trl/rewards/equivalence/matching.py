"""Pair off the items of two collections whose order does not matter."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def can_pair_off(gold: Sequence[Item], answer: Sequence[Item], is_same: Callable[[Item, Item], bool]) -> bool:
    """Can each item be given a partner of its own that is the same?

    To take the first free partner is not enough: forgiveness is not transitive. `5` may be `5 cm` and `5 m`, so with
    `5 cm` still to come it has to take `5 m`.

    Source: augmenting paths; C. Berge, Two theorems in graph theory (1957).
    """
    if len(gold) != len(answer):
        return False
    partner: dict[int, int] = {}  # of each answer that is taken: the index of its gold item

    def place(index: int, tried: set[int]) -> bool:
        for other in sorted(range(len(answer)), key=partner.__contains__):  # the free ones first
            if other not in tried and is_same(gold[index], answer[other]):
                tried.add(other)
                if other not in partner or place(partner[other], tried):
                    partner[other] = index
                    return True
        return False

    return all(place(index, set()) for index in range(len(gold)))
