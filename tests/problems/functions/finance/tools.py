"""Helpers of the finance functions; another folder has a module of the same name."""

import random


def rate():
    return round(random.uniform(1, 9), 1)


def money(amount):
    return f"${amount:,.2f}"
