"""Changes of one line: comparisons, operators, constants, conditions, arguments, slices, statements.

`mutants_of` lists every change of a file, and `draw` chooses lines, then one change of each. Not changed:
docstrings, annotations, imports, decorators, assertions, texts, what is raised, and `__repr__`.
"""

from __future__ import annotations

import ast
import copy
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

SYMMETRIC = {"array_equal", "clip", "max", "min", "maximum", "minimum", "promote_types"}  # in two arguments
SHOWN = 90  # characters of a node in the description of a change
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


class Spot(NamedTuple):
    """A node that may be changed, and where it hangs."""

    parent: ast.AST
    field: str
    index: int | None
    node: ast.AST
    statement: ast.stmt
    in_function: bool

    def put(self, new: ast.AST) -> None:
        """Replace the node in its tree."""
        if self.index is None:
            setattr(self.parent, self.field, new)
        else:
            getattr(self.parent, self.field)[self.index] = new


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    path: str
    line: int
    change: str
    """What it was and what it becomes, as `before → after`."""
    source: str
    """The line as it is in the file, without its indentation."""
    spot: int
    variant: int
    span: tuple[int, int]
    """First and last line of the statement; of a compound one, of its head."""
    in_function: bool

    def tree(self) -> ast.Module:
        """The changed module."""
        tree = ast.parse(Path(self.path).read_text(encoding="utf-8"), filename=self.path)
        spot = list(spots(tree))[self.spot]
        spot.put(changes(spot.node)[self.variant])
        return ast.fix_missing_locations(tree)

    def __str__(self) -> str:
        """File, line, the source and its change."""
        return f"{self.path}:{self.line}  {self.source}  [{self.change}]"


def spots(tree: ast.Module) -> Iterator[Spot]:
    """The nodes that may be changed, in the order of the source."""
    for i, statement in enumerate(tree.body):
        yield from _within(Spot(tree, "body", i, statement, statement, in_function=False))


def _within(spot: Spot) -> Iterator[Spot]:
    node = spot.node
    if _left_alone(node, spot.statement):
        return
    yield spot
    if isinstance(node, ast.Raise):
        return  # it may be removed, but its words are left alone
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_comment", "bases", "msg", "format_spec"):
            continue
        inside = spot.in_function or (isinstance(node, ast.FunctionDef | ast.Lambda) and name == "body")
        for index, child in enumerate(value) if isinstance(value, list) else ((None, value),):
            if isinstance(child, ast.AST):
                statement = child if isinstance(child, ast.stmt) else spot.statement
                yield from _within(Spot(node, name, index, child, statement, inside))


def _left_alone(node: ast.AST, statement: ast.stmt) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Pass():
            return True
        case ast.keyword(arg="strict"):
            return True  # of zip: an assertion
        case ast.Expr(value=ast.Constant()):
            return True  # a docstring, or an ellipsis
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.FunctionDef(name="__repr__") | ast.Call(func=ast.Name(id="TypeVar" | "NewType" | "cast")):
            return True
        case ast.Subscript(value=ast.Name(id="Literal" | "Callable" | "Annotated")):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__" | "__slots__")]):
            return True
        case ast.BinOp(op=ast.BitOr()):  # a union of types, in an alias or in isinstance
            return all(
                isinstance(side, ast.Name | ast.Attribute | ast.Subscript) for side in _sides(node)
            ) and (isinstance(statement, ast.Assign) or any(_is_type(side) for side in _sides(node)))
    return False


def _sides(node: ast.BinOp) -> Iterator[ast.expr]:
    for side in (node.left, node.right):
        if isinstance(side, ast.BinOp) and isinstance(side.op, ast.BitOr):
            yield from _sides(side)
        else:
            yield side


def _is_type(node: ast.expr) -> bool:
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name in ("int", "float", "str", "bytes", "bool", "list", "dict", "tuple", "set") or (
        name[:1].isupper() and not name.isupper()
    )


def changes(node: ast.AST) -> list[ast.AST]:
    """What may stand instead of a node."""
    match node:
        case ast.Compare(ops=ops):
            return [
                _copy(node, ops=[*ops[:i], COMPARISONS[type(op)](), *ops[i + 1 :]])
                for i, op in enumerate(ops)
            ]
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in OPERATORS:
            removed = [ast.Pass()] if isinstance(node, ast.AugAssign) else []
            return [_copy(node, op=OPERATORS[type(op)]()), *removed]
        case ast.BoolOp(op=op):
            return [_copy(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())]
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            return [copy.deepcopy(node.operand)]
        case ast.Constant(value=bool(value)):
            return [ast.Constant(not value)]
        case ast.Constant(value=int(value) | float(value)):
            return [ast.Constant(value + 1), ast.Constant(value - 1)]
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            if isinstance(test, ast.UnaryOp) or (isinstance(test, ast.Compare) and len(test.ops) == 1):
                return []  # changed on its own
            return [_copy(node, test=ast.UnaryOp(ast.Not(), copy.deepcopy(test)))]
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            return [_copy(node, value=ast.Constant(None))]
        case ast.Call(func=called, args=[first, second, *others]) if not _same_swapped(called, first, second):
            return [_copy(node, args=[second, first, *others])]
        case ast.Slice(lower=lower, upper=upper, step=step):
            bounds = {"lower": lower, "upper": upper, "step": step}
            return [_copy(node, **{name: None}) for name, bound in bounds.items() if bound is not None]
        case ast.Expr() | ast.Raise() | ast.Break() | ast.Continue():
            return [ast.Pass()]
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            return [ast.Pass()]
    return []


def _copy(node: ast.AST, **other: Any) -> ast.AST:
    new = copy.copy(node)
    for name, value in other.items():
        setattr(new, name, value)
    return new


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _same_swapped(called: ast.expr, *nodes: ast.expr) -> bool:
    name = (
        called.id
        if isinstance(called, ast.Name)
        else called.attr
        if isinstance(called, ast.Attribute)
        else ""
    )
    if name in SYMMETRIC or any(isinstance(node, ast.Starred) for node in nodes):
        return True
    return ast.dump(nodes[0]) == ast.dump(nodes[1])


def mutants_of(path: Path) -> list[Mutant]:
    """Every mutant of a file."""
    text = path.read_text(encoding="utf-8")
    lines, found = text.splitlines(), []
    for number, spot in enumerate(spots(ast.parse(text))):
        node, statement = spot.node, spot.statement
        if not hasattr(node, "lineno"):
            line = getattr(spot.parent, "lineno", statement.lineno)
        else:
            line = node.lineno
        for variant, new in enumerate(changes(node)):
            head = getattr(statement, "body", None)
            last = max(line, head[0].lineno - 1) if head else statement.end_lineno or line
            change = f"{_shown(node)} → {_shown(new)}"
            span = (min(statement.lineno, line), last)
            source = lines[line - 1].strip()
            found.append(Mutant(str(path), line, change, source, number, variant, span, spot.in_function))
    return found


def _shown(node: ast.AST) -> str:
    if isinstance(node, ast.If | ast.While):
        return f"if {ast.unparse(node.test)}"
    return " ".join(ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))).split())[:SHOWN]


def draw(mutants: Iterable[Mutant], count: int, seed: int) -> list[Mutant]:
    """Lines drawn with equal probability, and one mutant of each."""
    by_line: dict[tuple[str, int], list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_line[mutant.path, mutant.line].append(mutant)
    chance = random.Random(seed)
    lines = chance.sample(sorted(by_line), min(count, len(by_line)))
    return [chance.choice(by_line[line]) for line in lines]


def reporting_tree(path: str) -> ast.Module:
    """A module in which every statement of a function first calls `_hit(path, line)`."""
    tree, done = ast.parse(Path(path).read_text(encoding="utf-8"), filename=path), set[int]()
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = [node for function in functions for node in ast.walk(function)]
    for node in inside:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and id(block) not in done:
                done.add(id(block))
                block[:] = [each for statement in block for each in (*_report(path, statement), statement)]
    return ast.fix_missing_locations(tree)


def _report(path: str, statement: ast.stmt) -> list[ast.stmt]:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return []  # a docstring stays the first
    where = [ast.Constant(path), ast.Constant(statement.lineno)]
    return [ast.copy_location(ast.Expr(ast.Call(ast.Name("_hit", ast.Load()), where, [])), statement)]
