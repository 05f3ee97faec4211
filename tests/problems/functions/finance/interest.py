"""Template functions with branches, loops and nested calls."""

import random as rd
from random import choice, randint

from tools import money, rate
from words import NAMES


def template_nested_calls():
    name, principal, percent = choice(NAMES), randint(10, 90) * 100, rate()
    return (
        f"{name} lends {money(principal)} at {percent}%. Interest after a year?",
        f"{money(principal)} * {percent / 100} = {principal * percent / 100:.2f}",
    )


def template_branches():
    principal = randint(1, 50) * 100
    if rd.random() < 0.5:
        question = f"A loan of {principal} at 10%. Interest?"
        answer = principal * 0.1
    else:
        question = f"A loan of {principal} at 20% for {randint(2, 4)} years. Interest of one year?"
        answer = principal * 0.2
    return question, f"#### {answer}"


def template_loop():
    deposits = []
    for _ in range(randint(2, 5)):
        deposits.append(randint(1, 9) * 10)
    bonus = randint(1, 5)
    return f"Deposits of {deposits} and a bonus of {bonus}. In all?", f"#### {sum(deposits) + bonus}"


def template_rejection():
    while True:
        total, part = randint(10, 30), randint(2, 9)
        if total % part == 0:
            break
    return f"Divide {total} by {part}.", f"{total} / {part} = {total // part}"


def template_raises():
    return f"One divided by {randint(1, 9)}?", f"{1 / 0}"


def template_sometimes_raises():
    n = randint(0, 4)
    return f"60 divided by {n}?", f"60 / {n} = {60 / n}"


def template_none():
    randint(1, 9)


def template_without_number():
    return choice(NAMES), "There is no number here"


def template_without_draw():
    return "What is 1 + 1?", "1 + 1 = 2"


def main():
    raise SystemExit("this is no template")


def draws_and_returns_one():
    return randint(1, 9)
