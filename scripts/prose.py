"""The linter of words: `make lint` runs it on what users read.

    python -m scripts.prose  # print what docs/style.md does not allow; status 1 if any

It reads README.md, CONTRIBUTING.md, SECURITY.md, the pages of docs/ and of examples/, the READMEs
of generated packages and projects, and, in the package, the help of verbs and options and the
messages of errors. It finds phrases that have a
plainer form, sentences of more than 30 words, and lines of code that wrapping a page has joined.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "generator" / "microtir"
MOST_WORDS = 30

BANNED: Mapping[str, str] = MappingProxyType(
    {
        r"before and behind a model": "pre- and post-processing",
        r"(kernels|library|libraries) of others": "third-party",
        r"in the words of their own": "as their documentation describes them",
        r"what gets the (rest|others)": "how to install what is missing",
        r"no integers? of one scale": "not quantised with a single scale",
        r"no form in integers": "no integer version",
        r"\bless (128|32,768|its zero)\b": "after subtracting 128",
        r"\blegal:": "expected:",
        r"the least of all that": "name the plan that is shown",
        r"(^|[.:] )Who (has|does|wants|made|uses)\b": "If you have",
        r"\bwhoever\b": "name the caller, the user or the application",
        r"(^|[.:] )Tried are\b": "subject and verb: These are tried",
        r"times of the instructions": "the instruction count divided by",
        r"\ball the same[,:]": "anyway",
        r"CompilationConfig field": "option",
        r"\bgot b'": "show bytes as hexadecimal numbers",
        r"\bis for one\b": "name the noun",
        r"\bthat one (looks|wants|needs)\b": "that you look at",
        r"\bso many (bytes|iterations|billions)\b": "this many, or name the number",
        r"\bno place for\b": "cannot have, or cannot pass",
        r"\boracles? of others\b": "third-party oracle",
        r"\b(as|where) (PyTorch|onnxruntime|TFLite|LiteRT|ONNX) has (it|them)\b": "as in PyTorch",
        r"\b(as it (lies|stands)|where it stands)\b": "in place",
        r"\b(is|are) called so\b": "has that name",
        r"\bgoes on so\b": "begins with it",
        r"\bis told (what|how|which)\b": "name the argument: the caller passes",
        r"\bhand(s|ed)? on\b": "pass on",
        r"\bin the place of\b": "instead of",
        r"\bgives? what\b": "gives the outputs of",
        r"\bkeeps? something\b": "has a state",
        r"\bwhat (would change our mind|its users missed)\b": "subject and verb",
        r"\b(is|are) (no|none) of (C89|any)\b": "is not",
        r"\bturns? (by|to|from) turn\b|\bof turns\b|\bin turns?\b": "iterations, one by one",
        r"\b(rounds?|rounded|decided) otherwise\b": "differently",
        r"\b(goes|go) on (to|from)\b|\bcomes? on top\b": "continues, or adds to",
        r"\bof no (sense|use)\b": "has no effect, or is damaged",
        r"\b(allowed|declared) are\b": "subject and verb: the limit is",
        r"\bone name\b": "the same name",
        r"\b(a form in integers|makes? integers of)\b": "an integer version, quantises",
        r"\bis (told|said) (in|of)\b": "is explained in",
        r"\bwhat (it costs?|keeps|was tried|was cut)\b": "the cost, the trials",
        r"\b(has gone|not here any more)\b": "was closed, is no longer stored",
        r"\bon (their|its) road\b": "at certain points",
        r"\bknows? nothing of\b": "does not depend on",
        r"\bspeaks? of\b": "names",
        r"\b(over and over|the other way round|anew)\b": "again, too often, and back",
        r"\bthese lines come\b": "subject and verb: it prints these lines",
        r"\bsays what takes\b": "prints the memory that each part takes",
        r"\bwhich tvmc has\b": "microtir does not have tvmc's …",
        r"\bif all is well\b": "if all outputs are as expected",
        r"\bdata decide\b": "depends on the data",
        r"\b(has|have) a say in\b": "cannot change",
        r"\bchooses otherwise\b": "selects another",
        r"\bthere twice\b": "is listed twice, contains it twice",
        r"\bends so\b": "ends with the same status",
        r"\b(few|so many|\d+) turns\b": "iterations",
        r"pip install [\"']?microtir(\[|[\"' ]|$)": "no index has it: pip install . in a clone",
    }
)
"""Patterns, in any case, and what to write instead."""

MESSAGE = re.compile(
    r"(Error|Fix|malformed|unsupported|problem|require|refused|wrong|damaged|broken|refuse)$"
)
_SPEAKS = re.compile(
    r"(Error|Fix|Option|malformed|unsupported|problem|require|refuse\w*|wrong)\(|help="
)
_TOLD = ("legal", "fix", "what", "help")
_FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$|<!--.*?-->|^(?: {4}.*\n)+", re.DOTALL | re.MULTILINE)
_COMMENTS = re.compile(r"^.*\S +# .* #(?: .*)?$", re.MULTILINE)
_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*#|]|\d+\.) )|\n(?=\|)")
_CODE = "CODE"  # stands for code in a line
_END = re.compile(r"(?<=[.!?:])\s+")


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of text that users read, with its file and line."""

    file: str
    line: int
    words: str

    @property
    def sentences(self) -> list[str]:
        """Return its sentences; a colon ends one, too."""
        return _END.split(self.words)

    def faults(self) -> Iterator[str]:
        """Yield the banned phrases in it, with what to write instead."""
        for pattern, instead in _PATTERNS:
            if found := pattern.search(self.words):
                yield f"{self.file}:{self.line}: '{found[0].strip()}': {instead}"

    def long_sentences(self) -> Iterator[str]:
        """Yield its sentences of too many words, with their number; a list of code is none."""
        for sentence in self.sentences:
            words = [word for word in sentence.split() if any(map(str.isalnum, word))]
            if len(words) > MOST_WORDS and {word.strip(",") for word in words} != {_CODE}:
                yield f"{self.file}:{self.line}: {len(words)} words: {sentence}"


_PATTERNS = [(re.compile(pattern, re.IGNORECASE), text) for pattern, text in BANNED.items()]


def pages() -> list[Path]:
    """Return the pages that are read; the history of decisions stays as it was written."""
    tops = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    folders = (ROOT / "docs", ROOT / "examples")
    found = [page for folder in folders for page in folder.rglob("*.md")]
    left_out = {"history", "style.md"}  # its examples are wrong on purpose
    return [*tops, *sorted(page for page in found if not left_out & {*page.parts})]


def readmes() -> list[Path]:
    """Return the templates of READMEs and of the parts that they share."""
    return sorted((ROOT / "templates").rglob("*.md.j2"))


def without_jinja(content: str) -> str:
    """Return a template without its statements and comments, with code for each value."""
    bare = re.sub(r"\{[%#].*?[%#]\}", lambda match: "\n" * match[0].count("\n"), content)
    return re.sub(r"\{\{.*?\}\}", "`value`", bare)


def of_page(file: str, content: str) -> Iterator[Text]:
    """Yield the paragraphs, items and cells of a page, without code; code in a line is a word."""
    bare = _FENCE.sub(lambda match: "\n" * (match[0].count("\n") + 1), content)
    line = 1
    for block, gap in zip(_BLOCK.split(bare), [*_BLOCK.findall(bare), ""], strict=True):
        for cell in block.split(" | ") if block.startswith("|") else [block]:
            plain = re.sub(r"`[^`]*`", _CODE, cell)
            plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", plain)
            if words := " ".join(plain.split()):
                yield Text(file, line, words)
        line += block.count("\n") + gap.count("\n")


def joined_lines(file: str, content: str) -> Iterator[str]:
    """Yield lines of code blocks with two comments: commands that wrapping put on one line."""
    for block in _FENCE.finditer(content):
        for match in _COMMENTS.finditer(block[0]):
            line = content.count("\n", 0, block.start() + match.start()) + 1
            yield f"{file}:{line}: commands are joined: {match[0].strip()}"


def joined_in_pages() -> list[str]:
    """Return such lines of all pages."""
    contents = {page.relative_to(ROOT).as_posix(): page.read_text("utf-8") for page in pages()}
    return [fault for item in contents.items() for fault in joined_lines(*item)]


def of_module(file: str, content: str) -> Iterator[Text]:
    """Yield the help texts and messages of a module."""
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Call):
            for told in _told(node):
                yield from (Text(file, text.line, text.words) for text in strings(file, told))
        elif isinstance(node, ast.FunctionDef) and _is_verb(file, node):
            yield Text(file, node.lineno, " ".join((ast.get_docstring(node) or "").split()))


def _is_verb(file: str, node: ast.FunctionDef) -> bool:
    is_public = "/cli/" in file and not node.name.startswith("_")
    return is_public and isinstance(node.returns, ast.Name) and node.returns.id == "ExitCode"


def _told(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the arguments of a call that a user reads."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if MESSAGE.search(name) or name == "Option":
        yield from call.args
    yield from (keyword.value for keyword in call.keywords if keyword.arg in _TOLD)


def strings(file: str, node: ast.expr, blank: str = "X") -> Iterator[Text]:
    """Yield the texts in an expression, with `blank` for each value that is put in."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str) and " " in node.value:
            yield Text(file, node.lineno, " ".join(node.value.split()))
    elif isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else blank for part in node.values]
        yield Text(file, node.lineno, " ".join("".join(map(str, parts)).split()))
    elif not isinstance(node, ast.Call):  # whose own arguments are looked at anyway
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from strings(file, child, blank)


def texts() -> Iterator[Text]:
    """Yield everything that is read."""
    for page in pages():
        yield from of_page(page.relative_to(ROOT).as_posix(), page.read_text("utf-8"))
    for page in readmes():
        bare = without_jinja(page.read_text("utf-8"))
        yield from of_page(page.relative_to(ROOT).as_posix(), bare)
    for module in sorted(PACKAGE.rglob("*.py")):
        content = module.read_text("utf-8")
        if _SPEAKS.search(content):
            yield from of_module(module.relative_to(ROOT).as_posix(), content)


def faults_of(read: Iterable[Text]) -> list[str]:
    """Return what docs/style.md does not allow."""
    return [fault for text in read for fault in (*text.faults(), *text.long_sentences())]


def main() -> int:
    """Print the faults; status 1 if there are some."""
    faults = [*faults_of(texts()), *joined_in_pages()]
    print(*faults, sep="\n", end="\n" if faults else "")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
