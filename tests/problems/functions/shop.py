"""Template functions with one kind of draw each."""

import random

from words import ITEMS, NAMES


def template_randint():
    n, m = random.randint(2, 40), random.randint(2, 40)
    return f"What is {n} plus {m}?", f"{n} + {m} = {n + m}"


def template_randrange():
    n = random.randrange(10, 200, 10)
    k = random.randrange(9)
    return f"From {n} take {k}.", f"{n} - {k} = {n - k}"


def template_wide_range():
    n = random.randint(1, 1_000_000)
    return f"Double {n}.", f"2 * {n} = {2 * n}"


def template_uniform_rounded():
    price = round(random.uniform(1.5, 90), 2)
    count = random.randint(2, 9)
    return f"{count} at ${price} each?", f"{count} * {price} = {count * price:.2f}"


def template_uniform_printed():
    weight = random.uniform(0.5, 4)
    return f"A stone weighs {weight:.1f} kg. And ten?", f"**Answer:** {10 * weight:.1f} kg, all in all"


def template_uniform():
    share = random.uniform(0, 1)
    return f"How much of 100 is a share of {share}?", f"It is {100 * share}"


def template_random():
    share = random.random()
    return f"Share {share:.3f} of 50?", f"#### {50 * share:.3f}"


def template_choice():
    name, (item, price) = random.choice(NAMES), random.choice([("tea", 3), ("soup", 5), ("rice", 4)])
    rate = random.choice([0.05, 0.1, 0.25])
    return f"{name} buys {item} at {price} plus {rate:.0%}.", f"{price} * {1 + rate} = {price * (1 + rate)}"


def template_choices():
    first, second, third = random.choices(ITEMS, k=3)
    weighted = random.choices([1, 2, 3], weights=[5, 0, 5])[0]
    return f"{weighted} each of {first}, {second} and {third}?", f"3 * {weighted} = {3 * weighted}"


def template_sample():
    buyer, seller = random.sample(NAMES, 2)
    numbers = random.sample(range(10, 60), 3)
    return f"{buyer} pays {seller} {numbers}. In all?", f"The sum is {sum(numbers)}"


def template_shuffle():
    numbers = [3, 5, 8, 13]
    random.shuffle(numbers)
    first, second = numbers[:2]
    return f"Take {second} from {first}.", f"{first} - {second} = {first - second}"


def template_gauss():
    height = round(random.gauss(170, 10), 1)
    drop = random.normalvariate(3, 0.5)
    return f"{height} cm less {drop:.2f} cm?", f"{height - drop:.2f}"


def template_other_distributions():
    wait = round(random.expovariate(0.2), 1)
    mood = random.triangular(0, 10, 5)
    return f"Wait {wait} and {mood:.2f}.", f"{wait + mood:.2f}"
