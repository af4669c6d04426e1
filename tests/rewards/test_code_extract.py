import time

import pytest

from acpo_trl.rewards.code_extract import defined_names, program_of, root_name

SOLUTION = "def f(x):\n    return x\n"
FENCED = f"```python\n{SOLUTION}```"


@pytest.mark.parametrize(
    "response",
    [
        FENCED,
        f"Sure.\n\n{FENCED}\n\nDone.",
        f"```\n{SOLUTION}```",
        f"``` py\n{SOLUTION}```",
        f"```Python3 title=x\n{SOLUTION}```",
        f"~~~python\n{SOLUTION}~~~",
        f"````python\n{SOLUTION}````",
        f"```python\n{SOLUTION}",
        f"Here it is: {FENCED}",
        f"<think>```python\ndef f(x): pass\n```</think>\n{FENCED}",
        f"```python\ndef f(x):\n    pass\n```\nBetter:\n{FENCED}",
        f"{FENCED}\nUse:\n```python\nprint(f(1))\n```",
        f"{FENCED}\nOutput:\n```\n1\n```",
        f"```bash\ndef f\n```\n{FENCED}",
        f"```json\n[1]\n```\n{FENCED}",
        f"{SOLUTION}```\nThat is all.",
        SOLUTION,
        FENCED.replace("\n", "\r\n"),
        "1. So:\n   ```python\n   def f(x):\n       return x\n   ```",
        "- ```python\n  def f(x):\n      return x\n  ```",
    ],
)
def test_the_solution_is_found(response):
    assert program_of(response, "f").rstrip() == SOLUTION.rstrip()


@pytest.mark.parametrize(
    "response",
    [
        "",
        "Use a loop.",
        "```bash\nls\n```",
        "```python\n```",
        f"<think>{FENCED}</think>",
        f"<think>{FENCED}",
        "``` ```",
    ],
)
def test_a_response_without_code_has_no_program(response):
    assert program_of(response, "f") is None


def test_a_fence_in_a_docstring_does_not_end_the_block():
    code = 'def f(x):\n    """\n    ```\n    f(1)\n    ```\n    """\n    return x\n'
    assert program_of(f"```python\n{code}```", "f") == code


def test_a_shorter_fence_does_not_end_the_block():
    code = "x = '''\n```\n'''\ndef f(): return x\n"
    assert program_of(f"````python\n{code}````", "f") == code


def test_earlier_blocks_are_taken_if_their_names_are_used():
    response = (
        "```python\nimport math\n```\n```python\ndef unused(): return 1\n```\n"
        "```python\ndef g(x): return math.sqrt(x)\n```\n```python\ndef f(x):\n    unused = 2\n    return g(x)\n```"
    )
    program = program_of(response, "f")
    assert "import math" in program and "def g" in program
    assert "def unused" not in program


def test_a_parameter_is_no_name_of_an_earlier_block():
    response = f"```python\nx = boom()\n```\n{FENCED}"
    assert program_of(response, "f") == SOLUTION


def test_a_block_that_does_not_compile_can_still_define_the_entry_point():
    response = "```python\ndef f(x):\n    return x +\n```\n```python\nprint(1)\n```"
    assert program_of(response, "f") == "def f(x):\n    return x +\n"


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("```python\nprint(1)\n```\n```python\nprint(2)\n```", "print(2)\n"),
        ("```python\nprint(1)\n```\n```\n1\n```", "print(1)\n"),
        ("```\nprint(1)\n```", "print(1)\n"),
        ("print(int(input()))", "print(int(input()))"),
    ],
)
def test_a_whole_program_is_the_last_tagged_block(response, expected):
    assert program_of(response) == expected


def test_a_body_continues_the_starter():
    starter = "def f(x):\n    '''Give x.'''\n"
    assert program_of("    return x", "f", starter) == "    return x"
    assert program_of("    return x", "f") is None


def test_a_class_is_the_root_of_its_method():
    assert root_name("Solution().solve") == "Solution"
    assert program_of("```python\nclass Solution:\n    pass\n```\n```python\nprint(1)\n```", "Solution().solve") == (
        "class Solution:\n    pass\n"
    )


def test_defined_names_are_those_of_the_top_level():
    code = (
        "import a.b, c as d\nif x:\n    def f(): y = 1\nelse:\n    z = w = 2\nfor i in j: pass\nclass C:\n    k = 1\n"
    )
    assert defined_names(code) == {"a", "d", "f", "z", "w", "i", "C"}


@pytest.mark.parametrize("tail", ["(" * 5000, "-" * 50_000 + "1", "x" + ".y" * 20_000, "`" * 50_000, "\0"])
def test_code_that_hurts_parsers_is_only_wrong(tail):
    assert program_of(f"{FENCED}\n{tail}", "f") == SOLUTION
    assert isinstance(program_of(f"```python\nx = {tail}\n```", "f"), str)


def test_a_remark_before_many_empty_lines_is_read_in_linear_time():
    start = time.process_time()
    assert program_of("# nothing" + "\n" * 190_000) is None
    assert time.process_time() - start < 2
