"""Parts of a package without its ``__init__``, each case in an interpreter of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import sys
from plumbline.core.light_import import without_init
{before}
with without_init("heavy"):
    from heavy.part import NAME
print(NAME, "heavy" in sys.modules, "heavy.rest" in sys.modules)
import heavy
print(heavy.NAME, heavy.rest.NAME)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "heavy"
    folder.mkdir()
    (folder / "__init__.py").write_text("from heavy import rest\nfrom heavy.part import NAME\n")
    (folder / "part.py").write_text("NAME = 'part'\n")
    (folder / "rest.py").write_text("NAME = 'rest'\n")
    return tmp_path


def run(folder: Path, before: str = "") -> list[str]:
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n{CODE.format(before=before)}"
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.splitlines()


def test_only_the_part_is_loaded_and_the_whole_can_be_later(package: Path) -> None:
    assert run(package) == ["part False False", "part rest"]


def test_a_package_that_is_loaded_stays_as_it_is(package: Path) -> None:
    assert run(package, "import heavy") == ["part True True", "part rest"]


def test_a_package_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as raised:
        run(tmp_path)
    assert "No module named 'heavy'" in raised.value.stderr
