"""Answers that equal the gold answer. A comment names their report or kind."""

import pytest

from acpo_trl.rewards.equivalence.grade import grade

CASES = [
    # huggingface/Math-Verify#1
    ("2/3", r"\frac{2}{3}"),
    # huggingface/Math-Verify#2
    (r"\frac{x+2}{7}", r"\frac{x}{7}+\frac{2}{7}"),
    # huggingface/Math-Verify#3
    (
        r"(\begin{pmatrix}-\frac{7}{4}&-2\\4&\frac{1}{4}\\\end{pmatrix})",
        r"\begin{pmatrix}-\frac{7}{4}&-2\\4&\frac{1}{4}\end{pmatrix}",
    ),
    # huggingface/Math-Verify#10
    ("(0, 12.5)", "0 < x < 12.5"),
    # huggingface/Math-Verify#26
    ("2x+4y-3=0", r"y=-\frac{1}{2}x+\frac{3}{4}"),
    # huggingface/Math-Verify#34
    (r"\frac{5}{2}", r"2\frac{1}{2}"),
    ("5/4", r"1\frac{1}{4}"),
    # huggingface/Math-Verify#56
    (r"\left( 3, \frac{\pi}{2} \right)", r"\left(3, \dfrac{\pi}{2}\right)"),
    # huggingface/Math-Verify#61
    (r"28\%", "28 percent"),
    # huggingface/Math-Verify#64
    (r"\sqrt{1/n}", r"\frac{1}{\sqrt{n}}"),
    # huggingface/Math-Verify#70
    (r"\dfrac{9}{7}", r"\frac{9}{7}"),
    # huggingface/Math-Verify#71
    ("x<3", r"(-\infty, 3)"),
    # EleutherAI/lm-evaluation-harness#3652
    (r"1 \pm \sqrt{19}", r"1 + \sqrt{19}, 1 - \sqrt{19}"),
    (r"10,\!080", "10080"),
    (r"\text{(C)}", "C"),
    (r"864 \mbox{ inches}^2", "864"),
    (r"x \in [-2,7]", "[-2, 7]"),
    (r"15\mbox{ cm}^2", "15"),
    # EleutherAI/lm-evaluation-harness#3785
    ("4210_{5}", "4210"),
    # huggingface/open-r1#566
    (r"\frac{63}{400}", r"\frac{126}{800}"),
    # areal-project/AReaL#805
    ("n(n+1)/2", r"\frac{n(n+1)}{2}"),
    # NVIDIA-NeMo/Gym#1790
    ("E", r"\text{E}"),
    # scitix/sieval#18
    ("5", "x=5"),
    # base; own
    ("1101_2", "1101_{2}"),
    ("1101_2", r"1101_{\text{two}}"),
    ("1101_2", "(1101)_2"),
    ("1101_2", "1101"),
    # boxed etc; own
    ("7", r"\textcolor{red}{7}"),
    ("7", r"\color{blue}7"),
    ("7", r"{\bf 7}"),
    ("7", r"\boldsymbol{7}"),
    # choice; own
    ("C", r"\text{C}"),
    ("C", "(C)"),
    ("C", "C."),
    ("C", r"\mathrm{C}"),
    # combinatorics; own
    (r"\binom{10}{3}", "120"),
    ("120", r"\dbinom{10}{3}"),
    ("120", r"\binom{10}{7}"),
    ("120", "5!"),
    # complex; own
    ("3+4i", "4i+3"),
    ("3+4i", r"3+4\mathrm{i}"),
    ("5", "|3+4i|"),
    ("2i", r"\sqrt{-4}"),
    # constants; own
    (r"\frac{\pi}{4}", r"\pi/4"),
    (r"\frac{\pi}{4}", r"0.25\pi"),
    (r"\pi e", r"e\pi"),
    (r"\frac{1}{e}", "e^{-1}"),
    # decimals; own
    ("0.5", "1/2"),
    ("0.5", ".5"),
    ("0.5", r"\frac{5}{10}"),
    ("0.5", "0.50"),
    # degrees; own
    ("60", "60°"),
    (r"60^\circ", "60"),
    (r"60^\circ", r"60\text{ degrees}"),
    (r"60^\circ", "60 degrees"),
    # equations; own
    (r"S_n=\sum_{k=1}^{n}k", r"\frac{n(n+1)}{2}"),
    ("x=3", "x = 3"),
    ("3", "x=3"),
    ("x=3", "3=x"),
    ("y=2x+1", "2x+1"),
    # expression; own
    ("x^2-1", "(x-1)(x+1)"),
    (r"\frac{1}{x}+\frac{1}{y}", r"\frac{x+y}{xy}"),
    (r"\sqrt{x^2}", "|x|"),
    ("2^n", "2^{n}"),
    # hack; own
    ("7", r"\approx 7"),
    ("7", "07"),
    ("7", r"7\%"),
    ("0.07", r"7\%"),
    ("7", r"700\%"),
    ("7", r"7 \cdot x / x"),
    ("7", r"\sqrt{49}"),
    ("7", "[7]"),
    ("7", r"\{7\}"),
    ("7", r"\min(7,8)"),
    ("7", "y=7=x"),
    # tall; own
    ("-2", r"\det\begin{pmatrix}1&2\\3&4\end{pmatrix}"),
    # inequality; own
    ("x>3", "3<x"),
    ("x>3", r"(3,\infty)"),
    (r"x \ge 3", r"[3,\infty)"),
    ("-1<x<1", "(-1,1)"),
    # interval; own
    ("[0,1]", r"0\le x\le 1"),
    (r"[0,\infty)", r"x\ge0"),
    (r"(-\infty,0)\cup(0,\infty)", r"\mathbb{R}\setminus\{0\}"),
    (r"\mathbb{R}", r"\text{all real numbers}"),
    # latex; own
    (r"\frac{3}{4}", r"\frac 34"),
    (r"\frac{3}{4}", r"\frac 3 4"),
    (r"\frac{3}{4}", r"{3 \over 4}"),
    (r"\frac{3}{4}", "3/4"),
    # list; own
    ("1,2,3", "3,2,1"),
    ("1,2", r"1\text{ or }2"),
    ("1,2", "1; 2"),
    ("1,2", r"\{1,2\}"),
    # logs; own
    (r"\ln 8", r"3\ln 2"),
    (r"\log_2 3", r"\frac{\ln 3}{\ln 2}"),
    (r"\log_{10} 100", "2"),
    (r"\log 100", "2"),
    # malformed; own
    ("12", "12."),
    ("12", "12;"),
    ("12", "= 12"),
    ("12", ": 12"),
    # matrix; own
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{bmatrix} 1 & 2 \\ 3 & 4 \end{bmatrix}"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\left(\begin{array}{cc}1&2\\3&4\end{array}\right)"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\left[\begin{matrix}1&2\\3&4\end{matrix}\right]"),
    (r"\begin{pmatrix}0.5\end{pmatrix}", r"\begin{pmatrix}\frac12\end{pmatrix}"),
    # mixed; own
    (r"2\frac{1}{2}", "2.5"),
    (r"2\frac{1}{2}", r"\frac{5}{2}"),
    (r"2\frac{1}{2}", "2 1/2"),
    (r"2\frac{1}{2}", r"2\dfrac12"),
    # ordinal; own
    ("3^{rd}", "3"),
    (r"21^{\text{st}}", "21"),
    ("13", "13th"),
    ("4", r"4^{\mathrm{th}}"),
    # percent; own
    (r"25\%", "25"),
    (r"25\%", "0.25"),
    (r"25\%", "1/4"),
    ("25", r"25\%"),
    # pm; own
    (r"\pm 3", "3,-3"),
    (r"\pm 3", "-3, 3"),
    (r"\pm3", r"\mp 3"),
    (r"1\pm\sqrt2", r"1-\sqrt2, 1+\sqrt2"),
    # power; own
    ("2^{10}", "1024"),
    ("2^{10}", "4^5"),
    ("3^{100}", "9^{50}"),
    ("2^{1000}", r"2^{999}\cdot 2"),
    # radical; own
    (r"\sqrt{8}", r"2\sqrt{2}"),
    (r"\frac{1}{\sqrt{2}}", r"\frac{\sqrt{2}}{2}"),
    (r"\sqrt[3]{8}", "2"),
    (r"\sqrt[3]{-8}", "-2"),
    # scientific; own
    (r"3\times10^8", "3e8"),
    (r"3\times10^8", "300,000,000"),
    (r"1.5\times10^{-3}", "0.0015"),
    (r"6.02\times10^{23}", r"6.02 \cdot 10^{23}"),
    # set; own
    (r"\{1,2\}", r"\{2,1\}"),
    (r"\{1,2\}", "1,2"),
    (r"\{1,2\}", "{1,2}"),
    (r"\emptyset", r"\{\}"),
    # text; own
    ("Yes", r"\text{Yes}"),
    ("yes", "YES"),
    (r"\text{Monday}", "monday"),
    ("Evelyn", r"\text{Evelyn}"),
    # thousands; own
    ("1,000", "1000"),
    ("1000", "1,000"),
    ("1000", "1{,}000"),
    ("1000", r"1\,000"),
    # time ratio; own
    ("2:3", "4:6"),
    ("2:3", r"\frac{2}{3}"),
    ("2:3", "2 : 3"),
    # tiny; own
    ("10^{-10}", "0.0000000001"),
    (r"\frac{1}{10^{50}}", "10^{-50}"),
    # trig; own
    (r"\sin 30^\circ", r"\frac12"),
    (r"\sin\frac{\pi}{6}", "0.5"),
    (r"\cos 60^\circ", r"\sin 30^\circ"),
    (r"\tan 45^\circ", "1"),
    # tuple; own
    ("(1,2)", "(1, 2)"),
    ("(1,2)", r"\left(1,2\right)"),
    ("(1,2)", "1,2"),
    ("(1,2)", r"\langle 1,2\rangle"),
    # undefined; own
    (r"\infty", r"+\infty"),
    (r"\infty", "infinity"),
    # unicode; own
    ("√2", r"\sqrt{2}"),
    ("√12", "2√3"),
    ("½", "0.5"),
    ("x²+1", "x^2+1"),
    # units; own
    ("5 cm", "5"),
    ("5", "5 cm"),
    (r"5\text{ cm}", r"5\text{ centimeters}"),
    (r"5\text{ cm}", "5 cm"),
]


@pytest.mark.parametrize(("gold", "answer"), CASES)
def test_answer_equals_gold(gold, answer):
    assert grade(gold, answer).score == 1.0


@pytest.mark.parametrize("gold", sorted({gold for gold, _ in CASES}))
def test_gold_equals_itself(gold):
    assert grade(gold, gold).score == 1.0
