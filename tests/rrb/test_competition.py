"""Every bundled competition problem, solved again by a short program that knows only its text."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import pytest

from robust_jax.rrb.problem_set import BUNDLED, load_problems

SOLUTIONS: dict[str, Callable[[], int]] = {}


def solves(name: str) -> Callable[[Callable[[], int]], Callable[[], int]]:
    def register(solution: Callable[[], int]) -> Callable[[], int]:
        SOLUTIONS[name] = solution
        return solution

    return register


def terms(fraction: Fraction) -> int:
    return fraction.numerator + fraction.denominator


@solves("quadratic_multiple_of_seven")
def _() -> int:
    return sum((n * n + n + 1) % 7 == 0 for n in range(1, 501))


@solves("digit_sum_multiple_of_four")
def _() -> int:
    return sum(sum(map(int, str(n))) == 11 for n in range(4, 1000, 4))


@solves("subsets_without_difference_three")
def _() -> int:
    subsets = itertools.product([False, True], repeat=12)
    return sum(not any(chosen[i] and chosen[i + 3] for i in range(9)) for chosen in subsets)


@solves("no_three_equal_flips")
def _() -> int:
    flips = list(itertools.product("HT", repeat=10))
    good = sum(all(len(set(f[i : i + 3])) > 1 for i in range(8)) for f in flips)
    return terms(Fraction(good, len(flips)))


@solves("two_black_cells_a_line")
def _() -> int:
    rows = [[set(pair) for pair in itertools.combinations(range(5), 2) if i not in pair] for i in range(5)]
    return sum(
        all(sum(column in row for row in board) == 2 for column in range(5)) for board in itertools.product(*rows)
    )


@solves("self_powers")
def _() -> int:
    return sum(n**n for n in range(1, 51)) % 1000


@solves("scalene_triangles")
def _() -> int:
    return sum(a < b < 60 - a - b < a + b for a in range(1, 60) for b in range(1, 60))


@solves("thirty_seven_zeros")
def _() -> int:
    def zeros(n: int) -> int:
        text = str(math.factorial(n))
        return len(text) - len(text.rstrip("0"))

    return sum(n for n in range(1, 300) if zeros(n) == 37)


@solves("triangle_of_feet")
def _() -> int:
    # B = (0, 0), C = (21, 0), A from the lengths AB = 13, AC = 20.
    x = Fraction(13**2 - 20**2 + 21**2, 42)
    y = Fraction(12)
    assert x * x + y * y == 169 and (x - 21) ** 2 + y * y == 400
    points = [(x, y), (Fraction(0), Fraction(0)), (Fraction(21), Fraction(0))]
    feet = []
    for i, (px, py) in enumerate(points):
        (ax, ay), (bx, by) = points[i - 1], points[i - 2]
        t = ((px - ax) * (bx - ax) + (py - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2)
        feet.append((ax + t * (bx - ax), ay + t * (by - ay)))
    (ax, ay), (bx, by), (cx, cy) = feet
    return terms(abs((bx - ax) * (cy - ay) - (cx - ax) * (by - ay)) / 2) % 1000


@solves("fourth_powers_of_roots")
def _() -> int:
    # Trace of the fourth power of the companion matrix of x^3 - 5x^2 + 3x - 7.
    companion = [[0, 0, 7], [1, 0, -3], [0, 1, 5]]
    power = [[int(i == j) for j in range(3)] for i in range(3)]
    for _ in range(4):
        power = [[sum(row[k] * companion[k][j] for k in range(3)) for j in range(3)] for row in power]
    return sum(power[i][i] for i in range(3))


@solves("squares_minus_themselves")
def _() -> int:
    term = 2
    for _ in range(2024):
        term = (term * term - term + 1) % 1000
    return term


@solves("paths_round_two_points")
def _() -> int:
    paths = itertools.combinations(range(12), 5)
    good = 0
    for ups in paths:
        visited = {(n - sum(u < n for u in ups), sum(u < n for u in ups)) for n in range(13)}
        good += not visited & {(3, 2), (5, 4)}
    return good


@solves("dominoes_and_coloured_squares")
def _() -> int:
    @cache
    def ways(width: int) -> int:
        if width < 0:
            return 0
        return 1 if width == 0 else ways(width - 1) + ways(width - 2) * (1 + 2)

    return ways(10) % 1000


@solves("quadratic_that_is_a_square")
def _() -> int:
    # (n + 10)^2 < n^2 + 21n + 40 < (n + 11)^2 for n > 60, so that larger n cannot do.
    return sum(n for n in range(1, 10_000) if math.isqrt(value := n * n + 21 * n + 40) ** 2 == value)


@solves("differences_of_squares")
def _() -> int:
    ways = [0] * 501
    for b in range(1, 501):
        for a in range(b + 1, 600):
            if a * a - b * b > 500:
                break
            ways[a * a - b * b] += 1
    return sum(count == 2 for count in ways)


@solves("largest_of_three_dice")
def _() -> int:
    rolls = list(itertools.product(range(1, 7), repeat=3))
    return terms(Fraction(sum(2 * max(roll) == sum(roll) for roll in rolls), len(rolls)))


@solves("nearly_in_place")
def _() -> int:
    return sum(all(abs(p - i) <= 2 for i, p in enumerate(order)) for order in itertools.permutations(range(7)))


@solves("three_descents")
def _() -> int:
    orders = (order for order in itertools.permutations(range(1, 8)) if order[0] == 4)
    return sum(sum(a > b for a, b in itertools.pairwise(order)) == 3 for order in orders)


@solves("reversed_in_another_base")
def _() -> int:
    def digits(n: int, base: int) -> list[int]:
        return [*digits(n // base, base), n % base] if n else []

    return sum(n for n in range(1, 1000) if digits(n, 7) == digits(n, 9)[::-1] and len(digits(n, 7)) == 3)


@solves("distinct_floors")
def _() -> int:
    return len({n * n // 500 for n in range(1, 501)})


@solves("sum_of_common_divisors")
def _() -> int:
    return sum(math.gcd(k, 360) for k in range(1, 361)) % 1000


@solves("roots_with_a_real_power")
def _() -> int:
    # z = exp(2πik/60); its 25th power is real where 50k is a multiple of 60.
    return sum(50 * k % 60 == 0 for k in range(60))


@solves("squares_of_sines")
def _() -> int:
    total = 4 * math.fsum(math.sin(math.radians(k)) ** 2 for k in range(1, 90))
    assert abs(total - round(total)) < 1e-9
    return round(total)


@solves("two_logarithms")
def _() -> int:
    # With a = log2 x and b = log2 y: a + b/2 = 5 and a/3 + b = 7, by Cramer's rule.
    determinant = Fraction(1) - Fraction(1, 6)
    a, b = (5 - Fraction(7, 2)) / determinant, (7 - Fraction(5, 3)) / determinant
    assert a + b / 2 == 5 and a / 3 + b == 7
    return terms(a + b)


@solves("bug_on_a_nonagon")
def _() -> int:
    # The expected number of steps to 0 on a cycle, by repeated averaging until it settles.
    steps = [0.0] * 9
    for _ in range(20_000):
        steps = [0.0, *(1 + (steps[i - 1] + steps[(i + 1) % 9]) / 2 for i in range(1, 9))]
    assert abs(steps[4] - round(steps[4])) < 1e-6
    return round(steps[4])


@solves("lattice_points_of_even_sum")
def _() -> int:
    reach = range(-15, 16)
    return sum(x * x + y * y <= 200 and (x + y) % 2 == 0 for x in reach for y in reach)


@solves("rooks_off_the_diagonal")
def _() -> int:
    cells = [(r, c) for r in range(5) for c in range(5) if r != c]
    return sum(
        len({r for r, _ in rooks}) == len({c for _, c in rooks}) == 3 for rooks in itertools.combinations(cells, 3)
    )


@solves("words_of_three_letters")
def _() -> int:
    words = itertools.product("ABC", repeat=7)
    return sum(set(word) == set("ABC") and all(a != b for a, b in itertools.pairwise(word)) for word in words)


@solves("difference_of_reciprocals")
def _() -> int:
    # 1/y = 1/x - 1/72 = (72 - x) / 72x.
    return sum(72 * x % (72 - x) == 0 for x in range(1, 72))


@solves("largest_postage")
def _() -> int:
    reachable = {11 * a + 15 * b + 19 * c for a in range(60) for b in range(60) for c in range(60)}
    return max(n for n in range(500) if n not in reachable)


@solves("palindromes_divisible_by_three")
def _() -> int:
    return sum(n for n in range(100, 1000) if str(n) == str(n)[::-1] and n % 3 == 0) % 1000


@solves("strings_with_and_without")
def _() -> int:
    strings = ("".join(bits) for bits in itertools.product("01", repeat=10))
    return sum("101" in bits and "010" not in bits for bits in strings)


@solves("first_fibonacci_multiple")
def _() -> int:
    a, b, n = 1, 1, 1
    while a % 2024:
        a, b, n = b, a + b, n + 1
    return n


@solves("rectangles_round_a_cell")
def _() -> int:
    def spans(length: int, cell: int) -> int:
        return sum(start <= cell < end for start in range(length) for end in range(start + 1, length + 1))

    return spans(8, 2) * spans(5, 1)


@solves("acute_triangles")
def _() -> int:
    # An inscribed angle is acute where its arc is less than half the circle.
    return sum(max(b - a, c - b, 14 - c + a) < 7 for a, b, c in itertools.combinations(range(14), 3))


@solves("square_or_cube_divisors")
def _() -> int:
    number = math.factorial(12)
    squares = {n * n for n in range(1, math.isqrt(number) + 1) if number % (n * n) == 0}
    cubes = {n**3 for n in range(1, 800) if number % n**3 == 0}
    assert number < 800**3
    return len(squares | cubes)


@solves("trapezoid_of_tangent_circles")
def _() -> int:
    tangent = math.isqrt((9 + 4) ** 2 - (9 - 4) ** 2)
    assert tangent**2 == 13**2 - 5**2
    return (9 + 4) * tangent // 2


@solves("weighted_distances")
def _() -> int:
    # Convex and linear between whole numbers, so that a whole number attains the minimum.
    return min(sum(k * abs(x - k) for k in range(1, 21)) for x in range(-5, 30))


@solves("factored_pairs")
def _() -> int:
    reach = range(-1000, 1001)
    return sum(100 - x * y + 7 * x + 5 * y == 0 for x in reach for y in reach)


@pytest.mark.parametrize("problem", load_problems(BUNDLED).problems, ids=lambda problem: problem.id)
def test_answer(problem) -> None:
    assert SOLUTIONS[problem.id]() == problem.answer


def test_every_program_has_its_problem() -> None:
    problems = load_problems(BUNDLED).problems
    assert SOLUTIONS.keys() == {problem.id for problem in problems}
    assert len(problems) >= 30
    assert all(isinstance(problem.answer, int) and 0 <= problem.answer <= 999 for problem in problems)
