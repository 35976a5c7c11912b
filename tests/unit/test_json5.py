"""JSON5 files as the host reads them: includes, variables, and faults that say where they are."""

import json
from pathlib import Path

import pytest

from cenotaph.errors import ConfigError
from cenotaph.json5 import read_json5

ENV = {"HOME": "/home/user", "EMPTY": "", "home": "x"}


def write(folder: Path, content: object, name: str = "openclaw.json") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def read(folder: Path, content: object) -> object:
    return read_json5(write(folder, content), ENV)


def fault(path: Path) -> str:
    """The problem that the error names, without the file."""
    with pytest.raises(ConfigError) as caught:
        read_json5(path, ENV)
    first, problem = str(caught.value).split("\n")
    assert first == f"Invalid config at {path}:"
    assert problem.startswith("- ")
    return problem[2:]


def test_what_json5_allows(tmp_path: Path) -> None:
    text = "\ufeff// a comment\n{a: {b: 'x\\\ny',},}"
    assert read(tmp_path, text) == {"a": {"b": "xy"}}
    assert read(tmp_path, "[+.5, 0xF, /* more */ -1e3,]") == [0.5, 15, -1000]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{\n  a: 1\n  b: 2}", "line 3, column 3: Expected comma or '}', found 'b'"),
        ("{a:1,,}", "line 1, column 6: Stray comma"),
        ("", "line 1, column 1: No JSON data found"),
        ("{'emoji \U0001f600': bad}", "line 1, column 13: Expected JSON5Value, found 'b'"),
    ],
)
def test_syntax_errors_name_line_and_column(text: str, problem: str, tmp_path: Path) -> None:
    assert fault(write(tmp_path, text)) == problem


def test_nesting_without_end_is_an_error(tmp_path: Path) -> None:
    assert "nesting" in fault(write(tmp_path, "[" * 100_000))


def test_bytes_that_are_not_text_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "openclaw.json"
    path.write_bytes(b'{"a": "\xff"}')
    assert fault(path) == "byte 7: not UTF-8"


def test_a_file_that_cannot_be_read_is_an_oserror(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read_json5(tmp_path, ENV)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${HOME}/a", "/home/user/a"),
        ("${HOME}${HOME}", "/home/user/home/user"),
        ("$${HOME}/a", "${HOME}/a"),
        ("${UNSET}/a", "${UNSET}/a"),
        ("${EMPTY}/a", "${EMPTY}/a"),
        ("${home}/a", "${home}/a"),
        ("${HOME:-x}", "${HOME:-x}"),
        ("$HOME", "$HOME"),
    ],
)
def test_variables_are_replaced_in_values(text: str, expected: str, tmp_path: Path) -> None:
    assert read(tmp_path, {"${HOME}": [text, {"a": text}, 5, None]}) == {
        "${HOME}": [expected, {"a": expected}, 5, None]
    }


def test_files_are_included(tmp_path: Path) -> None:
    write(tmp_path, "{a: {x: 1, y: 1, list: [1]}}", "one.json5")
    write(tmp_path, "{$include: './three.json5', a: {list: [2]}}", "sub/two.json5")
    write(tmp_path, "{a: {y: 3, list: [3]}, b: '${HOME}'}", "sub/three.json5")
    text = "{$include: ['./one.json5', './sub/two.json5'], a: {z: 4, list: [4]}, b: {c: 5}}"
    assert read(tmp_path, text) == {"a": {"x": 1, "y": 3, "z": 4, "list": [1, 3, 2, 4]}, "b": {"c": 5}}


def test_included_values_stand_where_they_are_included(tmp_path: Path) -> None:
    write(tmp_path, "'${HOME}'", "one.json5")
    assert read(tmp_path, {"a": {"$include": "one.json5"}, "b": [{"$include": ["one.json5"]}]}) == {
        "a": "/home/user",
        "b": ["/home/user"],
    }


def test_one_file_may_be_included_twice(tmp_path: Path) -> None:
    write(tmp_path, "[1]", "one.json5")
    assert read(tmp_path, [{"$include": "one.json5"}, {"$include": ["one.json5", "one.json5"]}]) == [
        [1],
        [1, 1],
    ]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("openclaw.json", "includes itself"),
        ("sub/../openclaw.json", "includes itself"),
        ("absent.json5", "cannot read"),
        ("../outside.json5", "lies outside"),
        ("link.json5", "lies outside"),
        (5, "must be a file name"),
        (["a.json5", 5], "must be a file name"),
    ],
)
def test_includes_that_cannot_be(name: object, problem: str, tmp_path: Path) -> None:
    write(tmp_path, "{}", "outside.json5")
    path = write(tmp_path, {"a": [{"$include": name}]}, "state/openclaw.json")
    (tmp_path / "state/link.json5").symlink_to(tmp_path / "outside.json5")
    found = fault(path)
    assert found.startswith("$include: ")
    assert problem in found


def test_a_loop_over_two_files_ends(tmp_path: Path) -> None:
    write(tmp_path, {"$include": "../openclaw.json"}, "sub/one.json5")
    write(tmp_path, {"$include": "sub/one.json5"})
    with pytest.raises(ConfigError, match=r"sub/one\.json5:\n- \$include: \.\./openclaw\.json includes itself"):
        read_json5(tmp_path / "openclaw.json", ENV)


def test_errors_in_an_included_file_name_that_file(tmp_path: Path) -> None:
    write(tmp_path, "{", "one.json5")
    path = write(tmp_path, {"$include": "one.json5"})
    with pytest.raises(ConfigError, match=r"^Invalid config at .*/one\.json5:\n- line 1, column 1: "):
        read_json5(path, ENV)
