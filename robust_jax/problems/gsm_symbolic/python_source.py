"""Python expressions of GSM-Symbolic files, rewritten into the template language."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping

from robust_jax.errors import InputError
from robust_jax.problems.expressions import MAX_LENGTH


def read_python(source: str) -> ast.expr:
    """The syntax tree of an expression.

    Raises:
        InputError: it is none.
    """
    if len(source) > MAX_LENGTH:
        raise InputError(f"'{' '.join(source[:40].split())}…' is longer than {MAX_LENGTH} characters")
    try:
        # A dollar marks numeric variables where they are defined, and some files write it elsewhere too.
        return ast.parse(source.replace("$", "").strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"'{' '.join(source[:80].split())}' is not an expression") from None


def in_template_language(tree: ast.expr, names: Mapping[str, ast.expr], words: Collection[str]) -> str:
    """The source of a Python expression in the template language.

    Args:
        names: what stands in the place of a name.
        words: the names of slots that hold words; all others are numbers or pairs.
    """
    rewritten = _Rewriter(words).visit(_Substitution(names).visit(_copy(tree)))
    return ast.unparse(rewritten)


def substituted(tree: ast.expr, names: Mapping[str, ast.expr]) -> ast.expr:
    """The expression with other expressions in the place of names."""
    result: ast.expr = _Substitution(names).visit(_copy(tree))
    return result


def _copy(tree: ast.expr) -> ast.expr:
    return read_python(ast.unparse(tree))


class _Substitution(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.names.get(node.id, node)


class _Rewriter(ast.NodeTransformer):
    """Replaces what Python writes in another way than the template language, from the leaves up."""

    def __init__(self, words: Collection[str]) -> None:
        self.words = words

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id="int"), args=[argument], keywords=[]):
                return _call("trunc", argument)
            case ast.Call(func=ast.Name(id="Fraction"), args=[argument], keywords=[]):
                return argument
            case ast.Call(func=ast.Name(id="Fraction"), args=[top, bottom], keywords=[]):
                return ast.BinOp(top, ast.Div(), bottom)
            case ast.Call(func=ast.Name(id="format_frac"), args=[argument], keywords=[]):
                return _call("mixed", argument)
        return node

    def visit_Set(self, node: ast.Set) -> ast.expr:
        """Braces round an expression are left over from a format string."""
        self.generic_visit(node)
        return node.elts[0] if len(node.elts) == 1 else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if ast.unparse(node.slice) == "0" and _is_word(node.value, self.words):
            return _call("initial", node.value)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Compare(left=test, ops=[ast.Eq()], comparators=[ast.Constant(value=bool(wanted))]):
                return test if wanted else ast.UnaryOp(ast.Not(), test)
        is_equality = any(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops)
        if is_equality and not any(_is_word(side, self.words) for side in (node.left, *node.comparators)):
            # Two pairs are equal here if their numbers are, whatever their words.
            node.left = _as_number(node.left)
            node.comparators = [_as_number(side) for side in node.comparators]
        return node


def _call(name: str, argument: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [argument], [])


def _as_number(node: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.UAdd(), node) if isinstance(node, ast.Name) else node


def _is_word(node: ast.expr, words: Collection[str]) -> bool:
    match node:
        case ast.Constant(value=str()):
            return True
        case ast.Name(id=name):
            return name in words
        case ast.IfExp(body=body):
            return _is_word(body, words)
    return False
