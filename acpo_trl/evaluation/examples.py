"""Worked examples for prompts with examples; no benchmark contains them."""

GSM8K_EXAMPLES = (
    {
        "problem": "Tom has 3 bags with 4 apples each and eats 2. How many are left?",
        "response": "Tom has 3 * 4 = 12 apples. Then 12 - 2 = 10 are left. The answer is \\boxed{10}.",
    },
    {
        "problem": "Ann earns $12 an hour for 5 hours a day. How much is that in 3 days?",
        "response": "Ann earns 12 * 5 = 60 dollars a day, so 60 * 3 = 180 dollars. The answer is \\boxed{180}.",
    },
    {
        "problem": "A tank of 90 litres is one third full. Each bucket adds 12 litres. How many buckets fill it?",
        "response": "There are 90 / 3 = 30 litres in it, so 90 - 30 = 60 are missing, which is 60 / 12 = 5 buckets. "
        "The answer is \\boxed{5}.",
    },
    {
        "problem": "A shirt of $40 is reduced by 25%. What do two such shirts cost now?",
        "response": "The reduction is 40 * 0.25 = 10 dollars, so a shirt costs 40 - 10 = 30, and two cost 2 * 30 = 60. "
        "The answer is \\boxed{60}.",
    },
)

MATH_EXAMPLES = (
    {
        "problem": "How many positive divisors does $72$ have?",
        "response": "Since $72 = 2^3 \\cdot 3^2$, it has $(3+1)(2+1) = 12$ divisors. The answer is \\boxed{12}.",
    },
    {
        "problem": "Two fair dice are rolled. What is the probability that the sum is $9$?",
        "response": "Of $36$ outcomes, $(3,6), (4,5), (5,4), (6,3)$ have the sum $9$, so the probability is "
        "$\\frac{4}{36} = \\frac{1}{9}$. The answer is \\boxed{\\frac{1}{9}}.",
    },
    {
        "problem": "Find all real $x$ with $x^2 - 5x + 6 = 0$.",
        "response": "The left side is $(x-2)(x-3)$, so $x = 2$ or $x = 3$. The answer is \\boxed{2, 3}.",
    },
    {
        "problem": "The sides of a triangle are $5$, $5$ and $6$. What is its area?",
        "response": "The height on the side $6$ is $\\sqrt{5^2 - 3^2} = 4$, so the area is "
        "$\\frac{1}{2} \\cdot 6 \\cdot 4 = 12$. The answer is \\boxed{12}.",
    },
)
