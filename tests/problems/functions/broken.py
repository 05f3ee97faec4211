"""Cannot be imported."""

import random

import a_module_that_is_not_there


def template_unreachable():
    return str(random.random()), str(a_module_that_is_not_there)
