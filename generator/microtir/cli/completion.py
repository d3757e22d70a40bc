"""`microtir completion` prints what makes a shell complete its command lines.

Each script asks this verb again, with what was typed so far: a shell knows nothing of microtir.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

import typer

from microtir.cli.candidates import candidates
from microtir.cli.choice import check_choice
from microtir.cli.output import write
from microtir.errors import ExitCode

# bash and zsh take a word apart at its colons and signs of equality, and put what is found behind
# the last of them.  Without an answer a shell offers files; behind a folder comes no space.
_BASH = """\
_microtir() {
    local typed=${COMP_LINE:0:COMP_POINT} found word sign
    COMPREPLY=()
    while IFS= read -r found; do
        COMPREPLY+=("$found")
    done < <("$1" completion bash --of "$typed" 2>/dev/null)
    word=${typed##* }
    for sign in : =; do
        if [[ $COMP_WORDBREAKS == *"$sign"* && $word == *"$sign"* ]]; then
            COMPREPLY=("${COMPREPLY[@]#"${word%"$sign"*}$sign"}")
        fi
    done
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]]; then
        compopt -o nospace
    fi
}
complete -o default -F _microtir microtir
"""
_ZSH = """\
#compdef microtir
_microtir() {
    local typed="${(j: :)words[1,CURRENT-1]} $PREFIX"
    local -a found folders
    found=("${(@f)$("$words[1]" completion zsh --of "$typed" 2>/dev/null)}")
    found=("${(@)found:#}")
    if (( ! $#found )); then
        _files
        return
    fi
    folders=("${(@M)found:#*/}")
    (( $#folders )) && compadd -S '' -- "${folders[@]}"
    found=("${(@)found:#*/}")
    (( $#found )) && compadd -- "${found[@]}"
}
if [[ $funcstack[1] == _microtir ]]; then
    _microtir "$@"
else
    compdef _microtir microtir
fi
"""
_FISH = """\
function __microtir_candidates
    set --local typed (commandline --cut-at-cursor --current-process | string collect)
    set --local found (microtir completion fish --of "$typed" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline --current-token)
    end
end
complete --command microtir --no-files --arguments '(__microtir_candidates)'
"""
_POWERSHELL = """\
Register-ArgumentCompleter -Native -CommandName microtir -ScriptBlock {
    param($word, $tree, $position)
    $typed = $tree.ToString().PadRight($position)
    microtir completion powershell --of $typed | ForEach-Object {
        [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
    }
}
"""
SCRIPTS: Mapping[str, str] = MappingProxyType(
    {"bash": _BASH, "zsh": _ZSH, "fish": _FISH, "powershell": _POWERSHELL}
)


def completion(
    context: typer.Context,
    shell: Annotated[
        str,
        typer.Argument(
            metavar="|".join(SCRIPTS), help="The shell that reads the script.", show_default=False
        ),
    ],
    of: Annotated[
        str | None, typer.Option("--of", metavar="LINE", help="What was typed.", hidden=True)
    ] = None,
) -> ExitCode:
    """Prints a script that lets a shell complete verbs, options, boards and models.

    For bash, add this line at the end of ~/.bashrc: eval "$(microtir completion bash)"
    """
    check_choice("shell", shell, SCRIPTS, "SHELL")
    if of is None:
        write(SCRIPTS[shell].rstrip("\n"))
        return ExitCode.DONE
    for word in candidates(context.find_root().command, of):
        write(word)
    return ExitCode.DONE
