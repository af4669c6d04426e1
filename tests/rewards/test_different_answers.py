"""Answers that differ from a readable gold answer. A comment names their report or kind."""

import pytest

from acpo_trl.rewards.equivalence.grade import grade

CASES = [
    # huggingface/Math-Verify#14
    (r"\frac{1}{2^{99}}", r"\frac{1}{2^{98}}"),
    ("n=2, 3, 4", "n=1, 2, 3"),
    (r"F_n = \sum_{k=0}^{n-1} F_k F_{n-k-1}", r"F_n = \sum_{k=0}^{n-2} F_k F_{n-k-2}"),
    (r"1 - \frac{1}{\mathrm{e}}", r"1 + \frac{1}{\mathrm{e}}"),
    ("12:00", "1:00"),
    (r"1, 2, \ldots, n", r"1, 3, 5, \ldots, 2n-1"),
    # huggingface/Math-Verify#41
    ("4", r"4\sqrt(2)"),
    # huggingface/Math-Verify#56
    (r"\left( 3, \frac{\pi}{2} \right)", r"(3, \frac{2\pi}{3})"),
    # huggingface/Math-Verify#59
    ("5", r"10^{(5^{5^{5^{5^{5}}} \cdot \log_{10}(5)} - 4)}"),
    # sympy/sympy#28112
    ("10^{5}", r"10^{\left(5^{5^{5^{5^{5}}} \cdot \log_{10}(5)} - 4\right)}"),
    # sympy/sympy#24187
    ("6", "3^{20^{6}}"),
    # sympy/sympy#21762
    ("2", r"4^{\frac{111111111111111111111111111111111}{2222222222222}}"),
    # pytorch/torchtitan#4442
    ("241", "009"),
    # huggingface/Math-Verify#70
    (r"\dfrac{9}{7}", r"\frac{7}{9}"),
    # EleutherAI/lm-evaluation-harness#3652
    ("12", r"13^{\text{th}}"),
    (r"15\mbox{ cm}^2", "225"),
    # EleutherAI/lm-evaluation-harness#2212
    (r"(-5,\sqrt{26}]", r"(-5,\sqrt{26})"),
    # EleutherAI/lm-evaluation-harness#3643
    ("2", "3"),
    # huggingface/open-r1#566
    (r"\frac{63}{400}", r"\frac{64}{400}"),
    # huggingface/open-r1#503
    (r"10 - 2\sqrt{5}", "10 + 2√5"),
    # RLHFlow/Online-DPO-R1#9
    ("1", "2^3"),
    ("1000000001", "1000000000"),
    # NVIDIA-NeMo/Gym#1790
    ("C", r"\text{E: a polygenic risk score}"),
    # base; own
    ("1101_2", "13"),
    ("A3_{16}", "A4_{16}"),
    ("13_8", "13_9"),
    ("13", "1101_2"),
    # boxed etc; own
    ("7", r"\phantom{1}7"),
    # choice; own
    ("C", "D"),
    ("C", r"\text{C and D}"),
    ("C", "C, D"),
    ("C", r"\text{Not C}"),
    # combinatorics; own
    ("120", r"\frac{10!}{3!\,8!}"),
    # complex; own
    ("3+4i", "3+4j"),
    ("3+4i", "3+4"),
    ("1+2i", "(1,2)"),
    ("-2i", "2i"),
    # constants; own
    (r"\pi", "3.14"),
    (r"\pi", "3.14159265358979"),
    ("e", "2.718"),
    (r"\pi", r"\frac{22}{7}"),
    # decimals; own
    ("0.333", "1/3"),
    ("1/3", "0.33333333"),
    ("3/4", "4/3"),
    ("1.25", "1,25"),
    # degrees; own
    (r"60^\circ", r"60\text{ rad}"),
    (r"60^\circ", r"61^\circ"),
    # equations; own
    ("x=3", "y=3"),
    ("y=2x+1", "y=2x"),
    ("x^2+y^2=4", "x^2+y^2=2"),
    ("7", "2+5=8"),
    # expression; own
    ("x^2-1", "(x-1)^2"),
    (r"\frac{1}{x}+\frac{1}{y}", r"\frac{1}{x+y}"),
    (r"\sqrt{x^2}", "x"),
    ("2^n", "n^2"),
    # hack; own
    ("x+1", "x = x-1 = x+1"),
    ("7", r"7 \text{ hundredths}"),
    ("7", r"7 \text{ is wrong}"),
    ("12", "1 2"),
    ("[1,2]", "1, 2"),
    ("7", r"7 \text{ or } 8"),
    ("7", "7, 8"),
    ("7", r"\{7, 8\}"),
    ("7", "(7,8)"),
    ("7", "[7,8]"),
    ("7", r"7 \le x \le 7"),
    ("7", "x > 6"),
    ("7", r"7 \pm 1"),
    ("7", r"6.5 \text{ to } 7.5"),
    ("7", "7/8"),
    ("7", "7-8"),
    ("7", r"7 + \epsilon"),
    ("7", "7x"),
    ("7", "7 = 8"),
    ("7", "8 = 7"),
    ("7", "1=2=7"),
    ("7", "x = 5 = 7"),
    ("7", r"7 \to 8"),
    ("7", "7; 8; 9"),
    ("7", r"\text{the answer is 7 or 8}"),
    ("7", r"\text{seven}"),
    ("7", r"\text{any number}"),
    ("7", r"\mathbb{Z}"),
    ("7", r"\mathbb{N}"),
    ("7", "n"),
    ("7", "77"),
    ("7", "7.7"),
    ("7", "0.7"),
    ("7", "-7"),
    ("7", "7!"),
    ("7", r"7 \times 10^1"),
    ("7", r"\{x : x > 0\}"),
    ("7", r"\pm 7"),
    ("7", r"x \in \{6, 7, 8\}"),
    ("7", r"6 \text{ and } 7"),
    ("7", r"7 \text{ (or 8)}"),
    ("7", "7 (8)"),
    ("7", r"\text{7 or 8}"),
    ("7", r"\frac{7}{0}"),
    ("7", r"\infty"),
    # tall; own
    ("5", r"\det\begin{pmatrix}1&2\\3&4\end{pmatrix}"),
    # inequality; own
    ("x>3", r"x \geq 3"),
    ("x<3", "x<4"),
    ("-1<x<1", r"-1<x\le 1"),
    ("x>3", "-x>-3"),
    # interval; own
    ("(0,1)", "[0,1]"),
    ("(0,1]", "(0,1)"),
    (r"(1,2)\cup(3,4)", r"(1,2)\cup(3,5)"),
    (r"(1,2)\cup(3,4)", r"(1,2)\cap(3,4)"),
    # latex; own
    ("5", r"\mathop{5}"),
    # list; own
    ("1,2,3", "1,2"),
    ("1,2", "1,2,2"),
    ("1,3,5", "1,3,5,7"),
    ("(1,2),(3,4)", "(2,1),(3,4)"),
    # logs; own
    (r"\ln 8", r"\log 8"),
    (r"\log_2 3", r"\log_3 2"),
    # malformed; own
    ("4", r"\frac{4"),
    (r"\frac{1}{2}", r"\frac{1}{2}}"),
    ("4", "4("),
    ("x+1", "x+"),
    # matrix; own
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{pmatrix}1&3\\2&4\end{pmatrix}"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}1&2\end{pmatrix}"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}1\\2\\0\end{pmatrix}"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "(1,2,3,4)"),
    # mixed; own
    (r"2\frac{1}{2}", "1"),
    (r"-2\frac{1}{2}", "-1.5"),
    ("1", r"2\frac{1}{2}"),
    # ordinal; own
    ("4th", "5th"),
    ("n^{th}", "n"),
    # percent; own
    ("0.25", r"0.25\%"),
    (r"25\%", r"2.5\%"),
    (r"25\%", r"0.25\%"),
    (r"33\frac{1}{3}\%", r"33.3\%"),
    # pm; own
    (r"\pm 3", "3"),
    (r"1\pm\sqrt2", r"1+\sqrt2"),
    ("5", r"\pm 5"),
    (r"x = 1 \pm \sqrt{2}", r"x = 1 \pm \sqrt{3}"),
    # power; own
    ("2^{10}", "2^{11}"),
    ("3^{100}", "3^{101}"),
    ("2^{2^3}", "64"),
    # radical; own
    (r"\sqrt{2}", "1.414"),
    (r"\sqrt{2}+\sqrt{3}", r"\sqrt{5}"),
    (r"3\sqrt{2}", r"2\sqrt{3}"),
    (r"\sqrt[3]{2}", r"\sqrt{2}"),
    # scientific; own
    (r"3\times10^8", r"3\times10^9"),
    # self equal; own
    (r"3 \pmod 7", r"3\pmod{5}"),
    # set; own
    (r"\{1,2\}", "(1,2)"),
    (r"\{1,2\}", "[1,2]"),
    (r"\emptyset", r"\{0\}"),
    (r"\{1,2,3\}", r"\{1,2,4\}"),
    # text; own
    ("No", "Yes"),
    (r"\text{no}", "on"),
    (r"\text{Monday}", "Tuesday"),
    (r"\text{increasing}", r"\text{decreasing}"),
    # thousands; own
    ("12,345", "12.345"),
    ("1000", "10,00"),
    ("1000", "1,00"),
    ("32349", "32, 349"),
    # time ratio; own
    ("12:30", "12:31"),
    ("2:3", "3:2"),
    ("1:2:3", "1:2:4"),
    ("3:45 p.m.", "3:45 a.m."),
    # tiny; own
    ("10^{-10}", "10^{-11}"),
    ("0.000001", "0.000002"),
    ("10^{-10}", "0"),
    (r"\frac{1}{100!}", r"\frac{1}{99!}"),
    # trig; own
    (r"\sin 30", "0.5"),
    # tuple; own
    ("(1,2)", "(2,1)"),
    ("(1,2)", "(1,2,3)"),
    ("(1,2)", "[1,2]"),
    ("(1,2)", r"\{1,2\}"),
    # undefined; own
    (r"\infty", r"-\infty"),
    (r"\text{undefined}", r"\frac{1}{0}"),
    ("0", r"\frac{0}{0}"),
    ("1", r"\frac{\infty}{\infty}"),
    # unicode; own
    ("2π", "6.28"),
    # units; own
    (r"5\text{ cm}", r"5\text{ m}"),
    (r"5\text{ cm}^2", r"5\text{ cm}"),
    (r"\$5", r"5\text{ euros}"),
    (r"10\text{ m/s}", r"10\text{ km/h}"),
]


@pytest.mark.parametrize(("gold", "answer"), CASES)
def test_answer_differs_from_gold(gold, answer):
    assert grade(gold, answer).score == 0.0
