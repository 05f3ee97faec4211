"""The moving goalpost: when the references of the difficulty are fitted again (paper Appendix C.4)."""

from collections.abc import Iterable

from robust_jax.errors import InputError


class Goalpost:
    """Gathers what a model newly answers correctly and says when the reference distributions are to be refitted.

    A refit is due at the end of an iteration in which `every` variations have gathered since the last fit; the paper
    refits after every 50. All that have gathered join the references together.

    Raises:
        InputError: `every` is less than 1.
    """

    def __init__(self, every: int = 50) -> None:
        if every < 1:
            raise InputError(f"the goalpost moves every {every} correct responses: give at least 1, or turn it off")
        self.every = every
        self._known: set[str] = set()
        self._gathered: list[str] = []

    def end_iteration(self, correct: Iterable[str]) -> tuple[str, ...]:
        """Ends an iteration in which the variations of these keys were answered correctly.

        A key that was told before counts once.

        Returns:
            The keys to add to the references now, in the order they were told; none where no refit is due.
        """
        for key in correct:
            if key not in self._known:
                self._known.add(key)
                self._gathered.append(key)
        if len(self._gathered) < self.every:
            return ()
        due, self._gathered = tuple(self._gathered), []
        return due
