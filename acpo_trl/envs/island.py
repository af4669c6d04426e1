"""A small corpus about an island that does not exist, and questions about it, for tests and examples."""

from collections.abc import Sequence
from typing import Any

_FACTS = {
    "Ormaly": "Ormaly is an island of three valleys. Its capital is Tessigen, its highest mountain Mount Virre.",
    "Tessigen": "Tessigen, at the mouth of the river Sool, has 41,000 inhabitants and the only deep harbour in Ormaly.",
    "Mount Virre": "Mount Virre is 1,872 metres high. Ebba Karsk was the first to climb it, in 1864.",
    "Ebba Karsk": "Ebba Karsk was a map maker born in Lower Quarne. She drew the first survey of the island.",
    "Lower Quarne": "Lower Quarne is a village of weavers in the Quarne valley. It is known for blue sailcloth.",
    "Upper Quarne": "Upper Quarne lies above the tree line and is inhabited in summer only, when goats graze there.",
    "Sool": "The Sool rises in Lake Immer and flows 96 kilometres to the sea. It is frozen from December to March.",
    "Lake Immer": "Lake Immer is the home of the immerfish, which glows green. Nobody has measured its depth.",
    "Immerfish": "The immerfish was described by Tolle Brandt in 1911. It feeds on midges and lives for 30 years.",
    "Tolle Brandt": "Tolle Brandt taught natural history at the Academy of Tessigen and played the reed harp.",
    "Reed harp": "The reed harp has eleven strings of twisted grass. Its inventor was the ferrywoman Oda Lisk.",
    "Oda Lisk": "Oda Lisk ran the ferry between Tessigen and Pellow for forty years and sang on every crossing.",
    "Pellow": "Pellow is a port on the western shore. Its lighthouse, the Grey Candle, was built in 1790.",
    "Grey Candle": "The Grey Candle burnt whale oil until 1902. Its architect was Jorun Maal.",
    "Jorun Maal": "Jorun Maal designed lighthouses and bridges. His last work is the Bridge of Nine Arches in Dreve.",
    "Dreve": "Dreve is a town of copper smiths in the eastern valley. Its market is held on Thursdays.",
    "Ormaly copper": "Ormaly copper is mined near Dreve. It has a violet shine, because it contains traces of arsenic.",
    "Academy of Tessigen": "The Academy of Tessigen was founded in 1703 by Queen Hedra and has four faculties.",
    "Queen Hedra": "Queen Hedra reigned from 1688 to 1731. She abolished the salt tax and was fond of chess.",
    "Salt tax": "The salt tax of Ormaly was paid in barrels. It was brought in by King Ulf the Short.",
    "King Ulf the Short": "King Ulf the Short was two metres tall. He is buried in Pellow under a plain stone.",
    "Kettle bread": "Kettle bread is baked from barley under an iron pot. In Dreve it is eaten with smoked immerfish.",
    "Ormaly crown": "The crown is the currency of Ormaly. It is divided into twelve shells.",
    "Feast of Lanterns": "At the Feast of Lanterns, on the first of March, the ice of the Sool is broken with songs.",
}
PASSAGES = [{"id": f"p{number}", "title": title, "text": text} for number, (title, text) in enumerate(_FACTS.items())]

QUESTIONS: list[tuple[str, list[str], list[str]]] = [
    ("In which year was Mount Virre climbed first?", ["1864"], ["Mount Virre"]),
    ("Into how many shells is a crown of Ormaly divided?", ["twelve", "12"], ["Ormaly crown"]),
    ("Where was the first person on Mount Virre born?", ["Lower Quarne"], ["Mount Virre", "Ebba Karsk"]),
    ("What cloth is the birthplace of Ebba Karsk known for?", ["blue sailcloth"], ["Ebba Karsk", "Lower Quarne"]),
    ("In which lake does the river through Tessigen rise?", ["Lake Immer", "Immer"], ["Tessigen", "Sool"]),
    ("Which instrument did the describer of the immerfish play?", ["reed harp"], ["Immerfish", "Tolle Brandt"]),
    ("What did the inventor of the reed harp run?", ["a ferry", "the ferry"], ["Reed harp", "Oda Lisk"]),
    ("Who designed the lighthouse of Pellow?", ["Jorun Maal", "Maal"], ["Pellow", "Grey Candle"]),
    ("In which town is the last work of the Grey Candle's architect?", ["Dreve"], ["Grey Candle", "Jorun Maal"]),
    (
        "In which year did the reign of the founder of the Academy of Tessigen end?",
        ["1731"],
        ["Academy of Tessigen", "Queen Hedra"],
    ),
    ("How tall was the king who brought in the salt tax?", ["two metres", "2 m"], ["Salt tax", "King Ulf the Short"]),
    ("Where is the king of the salt tax buried?", ["Pellow", "in Pellow"], ["Salt tax", "King Ulf the Short"]),
]
"""Question, gold answers, titles of the passages that support the answer."""

_INSTRUCTION = "Search for what you need, then answer in <answer></answer> with as few words as you can."


def island_tasks() -> list[dict[str, Any]]:
    """Give one row for `Search` for each question."""
    return [_task(*question) for question in QUESTIONS]


def _task(question: str, golden_answers: Sequence[str], supporting: Sequence[str]) -> dict[str, Any]:
    prompt = [{"role": "user", "content": f"{_INSTRUCTION}\n{question}"}]
    return {"prompt": prompt, "golden_answers": golden_answers, "supporting": supporting}
