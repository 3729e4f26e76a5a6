"""No memory grows or fills up by what a client sends: each container of the rooms that see requests is listed here.

A new one fails this test until somebody has looked at what its keys are and what bounds them.
"""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[3] / "exporter" / "plumbline"
ROOMS = ("web", "metrics", "pages", "status")
CONTAINERS = {"dict", "set", "list", "deque", "Counter", "defaultdict", "OrderedDict", "WeakValueDictionary"}
BOUNDED = {
    # of requests and connections
    "web/access.py _users": "names of the web file",
    "web/access.py _known": "one digest for each user of the web file",
    "web/connections.py _connections": "at most the pool's limit",
    "web/connections.py _taken": "addresses with a request in progress, at most the number of slots",
    "web/guard.py of": "lru_cache of 1",
    "web/routes.py _routes": "Route",
    "web/server.py _failing": "Route",
    "web/server.py _refused": "Refusal",
    "web/turns.py _waiting": "addresses with a check that waits, removed with its connection",
    "metrics/negotiation.py choose_format": "lru_cache of 64",
    "metrics/negotiation.py accepts_gzip": "lru_cache of 64",
    "pages/runbooks.py names": "no argument",
    "pages/templates.py environment": "no argument",
    "pages/templates.py style": "names in our templates",
    "pages/htmltext.py _attribute": "names in our code",
    # of collectors and metrics, which the code declares
    "metrics/exposition.py _retired": "collectors",
    "metrics/guard.py _seen": "metrics",
    "metrics/guard.py _skipped": "at most _MAX_REASONS",
    "metrics/guard.py _skipped_items": "of the last collection",
    "metrics/rendering.py _cache": "metrics of the last page",
    "metrics/rendering.py _heads": "Format",
    "metrics/rendering.py _parts": "lines of one metric",
    "metrics/scrape.py _collected": "collectors",
    "metrics/scrape.py _hung": "collectors",
    "metrics/default_page.py _plans": "metrics",
}


def containers(tree: ast.AST) -> set[str]:
    """Attributes of objects and names of modules that are containers, and functions that remember their results."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            said = ast.unparse(node.annotation) if isinstance(node, ast.AnnAssign) else ""
            holds = said.partition("[")[0] in CONTAINERS or is_container(node.value)
            names = [
                each for target in targets for each in (target.elts if isinstance(target, ast.Tuple) else [target])
            ]
            found |= {each.attr for each in names if isinstance(each, ast.Attribute) and holds}
        elif isinstance(node, ast.FunctionDef):
            decorators = " ".join(map(ast.unparse, node.decorator_list))
            found |= {node.name} if "cache" in decorators else set()
    for node in ast.iter_child_nodes(tree):  # constants stand in capitals, and in a MappingProxyType or a tuple
        if isinstance(node, ast.Assign) and is_container(node.value):
            found |= {
                each.id
                for each in node.targets
                if isinstance(each, ast.Name) and not each.id.strip("_").isupper() and each.id != "__all__"
            }
    return found


def is_container(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Tuple):
        return any(map(is_container, value.elts))
    if isinstance(value, ast.Dict | ast.Set | ast.List | ast.DictComp | ast.SetComp | ast.ListComp):
        return True
    if isinstance(value, ast.BinOp):
        return is_container(value.left) or is_container(value.right)
    return isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in CONTAINERS


def test_each_is_bounded() -> None:
    found = {
        f"{file.relative_to(PACKAGE)} {name}"
        for room in ROOMS
        for file in sorted((PACKAGE / room).rglob("*.py"))
        for name in containers(ast.parse(file.read_text()))
    }
    assert found == set(BOUNDED), "say what bounds it, or remove its line"


def test_what_was_logged_is_remembered_by_kind() -> None:
    """Of the whole package: a memory of log lines is keyed by an Enum, or belongs to one thing that we made."""
    keyed_by_text = {
        f"{file.relative_to(PACKAGE)} {ast.unparse(node)}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Attribute)
        and any(word in node.target.attr for word in ("logged", "failing", "warned", "refused"))
        and ast.unparse(node.annotation).startswith(("set[str", "dict[str", "Counter[str", "list["))
    }
    assert keyed_by_text == set()
