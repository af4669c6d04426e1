"""The samples of an evaluation fall into the same batches with the same seeds, whoever draws them."""

from acpo_trl.evaluation.plan import make_batches, seed_of

PROMPTS = [("long", [1, 2, 3, 4]), ("b", [1, 2]), ("a", [1, 2]), ("short", [9])]


def keys(batches):
    return [[(request.problem_id, request.sample_index) for request in batch.requests] for batch in batches]


def test_prompts_of_like_length_share_a_batch_and_every_sample_is_there_once():
    batches = make_batches("gsm8k", PROMPTS, num_samples=2, batch_size=4, seed=0, first=0)
    assert keys(batches) == [
        [("short", 0), ("short", 1), ("a", 0), ("a", 1)],
        [("b", 0), ("b", 1), ("long", 0), ("long", 1)],
    ]
    assert [batch.number for batch in batches] == [0, 1]
    assert batches[1].requests[3].prompt_ids == (1, 2, 3, 4)


def test_the_last_batch_may_be_smaller_and_numbers_go_on_from_the_first():
    batches = make_batches("gsm8k", PROMPTS, num_samples=1, batch_size=3, seed=0, first=7)
    assert [(batch.number, len(batch.requests)) for batch in batches] == [(7, 3), (8, 1)]


def test_batches_do_not_depend_on_the_order_of_the_problems():
    assert make_batches("x", PROMPTS, 3, 2, 5, 0) == make_batches("x", PROMPTS[::-1], 3, 2, 5, 0)


def test_seeds_differ_between_batches_benchmarks_and_evaluations_and_stay_the_same_over_time():
    assert seed_of(0, "gsm8k", 0) == 8494340155687314776
    assert len({seed_of(s, name, start) for s in (0, 1) for name in ("a", "b") for start in (0, 16)}) == 8
    assert 0 <= seed_of(3, "a", 16) < 2**63
