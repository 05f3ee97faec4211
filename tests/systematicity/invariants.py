"""What holds of every task and variation; as a script it checks the first so many tasks of a setting."""

import sys

from robust_jax.systematicity.generation import generate_task, original, variations
from robust_jax.systematicity.task import Kind, Task, Variation
from tests.systematicity.tasks import SETTINGS, family_of


def check_task(task: Task) -> None:
    assert task.is_sound
    assert [example.y for example in task.support] == [task.rule(example.x) for example in task.support]
    assert list(task.answers) == [task.rule(x) for x in task.queries]


def check_variations(found: list[Variation], task: Task, kind: Kind) -> None:
    """Distinct, sound, true to the changed rule, and what undoes them gives the task back."""
    assert found[0] == original(task)
    assert found[0].task == task
    assert [variation.number for variation in found] == list(range(len(found)))
    assert len({variation.task.surface for variation in found}) == len(found)
    for variation in found[1:]:
        assert variation.kind == kind
        check_task(variation.task)
        assert variation.transformation.undo(variation.task) == task
        assert variation.transformation.apply(task) == variation.task


if __name__ == "__main__":
    setting, count = sys.argv[1], int(sys.argv[2])
    family = family_of(setting)
    parameters = family.parameters(**SETTINGS[setting])
    for number in range(count):
        made = generate_task(family, parameters, 1, number)
        check_task(made)
        for kind in family.kinds(parameters):
            check_variations(variations(family, made, kind, 5), made, kind)
    print(f"{count} tasks")
