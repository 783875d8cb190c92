# SPDX-License-Identifier: Apache-2.0
"""Completion: what a shell offers are the commands, options and choices that there are, and no others."""

from __future__ import annotations

import functools
import shlex
import subprocess
from collections.abc import Sequence

import click
from tests.needs import need_programs

import output
from commlens.cli import commands

FOLDER = output.ROOT / "generated" / "completion"
COMMANDS = commands()


def shell(name: str, *arguments: str) -> str:
    """Run a shell and return what it prints; it may not complain."""
    need_programs(name, package=name)
    done = subprocess.run(
        [name, *arguments], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def bash(*lines: Sequence[str]) -> list[list[str]]:
    """Return what bash offers for the last word of each command line."""
    script = f"source {shlex.quote(str(FOLDER / 'commlens.bash'))}\n"
    for words in lines:
        script += f"COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; COMPREPLY=()\n"
        script += '_commlens; echo "${COMPREPLY[*]}"\n'
    return [line.split() for line in shell("bash", "--norc", "-c", script).splitlines()]


def spellings(command: click.Command) -> set[str]:
    """Return all options of a command."""
    options = [param for param in command.params if isinstance(param, click.Option)]
    return {"-h", "--help"}.union(*((*param.opts, *param.secondary_opts) for param in options))


@functools.cache
def choices() -> dict[tuple[str, str], set[str]]:
    """Return the values of each option that has only some."""
    return {
        (name, spelling): set(map(str, param.type.choices))
        for name, command in COMMANDS.items()
        for param in command.params
        if isinstance(param, click.Option) and isinstance(param.type, click.Choice)
        for spelling in param.opts
    }


def test_bash_offers_all_commands_and_options() -> None:
    (every, some, *options) = bash(
        ["commlens", ""], ["commlens", "re"], *(["commlens", name, "-"] for name in COMMANDS)
    )
    assert set(every) == {*COMMANDS, "help", "-h", "--help", "--version"}
    assert set(some) == {name for name in COMMANDS if name.startswith("re")}
    for offered, command in zip(options, COMMANDS.values(), strict=True):
        assert set(offered) == spellings(command)


def test_bash_offers_the_values_of_an_option_and_otherwise_files() -> None:
    assert choices()
    found = bash(*(["commlens", name, spelling, ""] for name, spelling in choices()))
    assert [set(offered) for offered in found] == list(choices().values())
    assert bash(["commlens", "report", "x"], ["commlens", "report", "--top", "1"]) == [[], []]


def test_bash_offers_programs_after_commlens_run() -> None:
    script = f"source {FOLDER}/commlens.bash; COMP_WORDS=(commlens-run %s); COMP_CWORD=1; _commlens_run; "
    script += 'printf "%%s\\n" "${COMPREPLY[@]}"'
    assert shell("bash", "--norc", "-c", script % "--").split() == ["--help", "--version"]
    assert "true" in shell("bash", "--norc", "-c", script % "tru").split()


def test_fish_offers_all_commands_options_and_values() -> None:
    lines = ["commlens ", *(f"commlens {name} --" for name in COMMANDS)]
    lines += [f"commlens {name} {spelling} " for name, spelling in choices()]
    script = f"source {FOLDER}/commlens.fish\n"
    script += "".join(f"complete -C {shlex.quote(line)}; echo ==\n" for line in lines)
    blocks = shell("fish", "--no-config", "-c", script).split("==\n")
    offered = [{line.split("\t")[0] for line in block.splitlines()} for block in blocks]
    assert offered[0] == {*COMMANDS, "help"}
    for found, command in zip(offered[1:], COMMANDS.values()):
        assert {name for name in spellings(command) if name.startswith("--")} <= found
    assert offered[1 + len(COMMANDS) : -1] == list(choices().values())


def test_zsh_offers_all_commands_options_and_values() -> None:
    stubs = "compdef() { :; }; _describe() { print -l -- $known; }; _arguments() { print -l -- $@; }\n"
    lines = [["commlens", ""], *(["commlens", name, "-"] for name in COMMANDS)]
    script = stubs
    for words in lines:
        script += f"words=({shlex.join(words)}); CURRENT={len(words)}; service=commlens\n"
        script += f'source {FOLDER}/_commlens; print -r -- "=="\n'
    blocks = shell("zsh", "-f", "-c", script).split("==\n")
    assert {line.split(":")[0] for line in blocks[0].split("\n") if line} == {*COMMANDS, "help"}
    for block, (name, command) in zip(blocks[1:], COMMANDS.items()):
        specs = [line.split(")", 1)[-1] if line.startswith("(") else line for line in block.splitlines()]
        offered = {spec.split("[")[0]: spec for spec in specs if spec.startswith("-") and "[" in spec}
        assert set(offered) == spellings(command)
        for spelling, spec in offered.items():
            values = choices().get((name, spelling))
            assert values is None or spec.endswith(
                f":value:({' '.join(spec.rpartition('(')[2][:-1].split())})"
            )
            assert values is None or set(spec.rpartition("(")[2][:-1].split()) == values
