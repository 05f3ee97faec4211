"""`robust-jax report`: the figures of finished runs once more, whatever protocol made them."""

from importlib import import_module
from typing import Any

from robust_jax.errors import InputError


def report(options: Any) -> None:
    from robust_jax.runs import read_config

    commands = [str(read_config(directory)["fingerprint"].get("command")) for directory in options.runs]
    protocols = {command.partition(" ")[0] for command in commands}
    if not protocols & {"rrb", "systematicity", "finetune"}:
        from robust_jax.lpds.commands import report

        report(options)
    elif len(protocols) == 1 and not options.changes:
        import_module(f"robust_jax.{protocols.pop()}.commands").report(options.runs, options.out)
    else:
        raise InputError("runs of rrb, systematicity or finetune are reported by themselves, with no option but --out")
