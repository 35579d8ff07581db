"""Refuse words that readers stumbled over, in pages, docstrings, comments and messages, and
sentences of more than 35 words in the pages for new readers.

`make check` runs it over all files; a line that needs one of the words is an exception, named here.
"""

import io
import re
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 35  # words of a sentence
EACH = "round|row|cell|trial|panel|link|line|world|decision|policy|study|seed|run|stream|call"
REFUSED = {
    r"\b(is|are|was|were|be|being|not|they|when|if|sds?|deviations?) told\b": "given, known",
    r"\btold (every|n|the|one|of|what|with|all|apart)\b": "given, known",
    r"\bnobody tells\b": "unknown",
    r"\bloud(est|er)?\b": "high-variance, noisy",
    r"\bcrude\b": "simple, an upper bound",
    r"\bdoors?\b": "constructor, factory",
    r"\banew\b": "again, refit, recompute",
    rf"\b(one|two|costs?|points|trials|microseconds|[µum]s|d\^2|\d+) an? ({EACH})\b": "per",
    r"\bas things one can run\b": "as functions",
    r"\bno learner below\b": "lower bound for any method",
    r"\bbound of the (sd|mean|scale|score|norm)\b": "bound on",
    r"\bthose who decide\b": "decision-makers",
    r"\btells? (you |us )?as much\b": "has an effective sample size of",
    r"\basked at \d+ times\b": "computed at ... times",
    r"\bof one law\b": "from one distribution",
    r"\bcurved famil(y|ies)\b": "families other than gaussian",
    r"\bdecisions that (count|wait|are waiting)\b|\bawaited\b": "effective, pending",
    r"\b(keys|decisions) that wait\b|\bwaiting decisions\b": "pending",
    r"\bone that is made\b": "an instance",
    r"\bare no features\b": "are not features",
    r"\bof what it does had\b": "of its decisions had",
    r"\bat its best\b": "largest",
    r"\bbreaks? the promise\b": "is no longer valid",
    r"\bmade up its mind\b": "converged",
    r"\b\d+%": "a space before %, as in 95 %",
    r":\.\d%\}": "percent(...), which puts a space before %",
}
# file, and the words of it that are meant as they stand
ALLOWED: dict[str, tuple[str, ...]] = {"src/noisewise/service/web/charts.py": ('="100%"',)}


def main() -> int:
    """Print every line with a refused word; return how many there are."""
    found = 0
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        for number, text in prose(path):
            for pattern, better in REFUSED.items():
                for match in re.finditer(pattern, text, re.IGNORECASE):
                    if not any(each in text for each in ALLOWED.get(name, ())):
                        found += 1
                        print(f"{name}:{number}: {match[0]!r}; say {better}")
    return found


def long_sentences() -> int:
    """Print every sentence of the first pages that is too long; return how many there are."""
    found = 0
    for path in [ROOT / "README.md", ROOT / "docs/tour.md", *(ROOT / "docs/howto").glob("*.md")]:
        for sentence in sentences(path.read_text(encoding="utf-8")):
            count = len(re.findall(r"[\w'%×.,/-]+", sentence))
            if count > LONGEST:
                found += 1
                print(f"{path.relative_to(ROOT)}: {count} words: {sentence[:80]}...")
    return found


def sentences(text: str) -> list[str]:
    """Return the sentences of a page, without code, tables, formulas and headings."""
    text = re.sub(r"```.*?```|<!--.*?-->", "\n\n", text, flags=re.DOTALL)
    found = []
    for paragraph in re.split(r"\n\s*\n|\n(?=[-|#*] |\d+\. )", text):
        if not paragraph.lstrip().startswith(("|", "#", "![", "$$")):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
            words = " ".join(re.sub(r"`[^`]*`|\$[^$]*\$", "x", words).replace("**", "").split())
            found += re.split(r"(?<=[.!?:;])\s+(?=[A-Z*\"x(])", words)
    return found


def files() -> list[Path]:
    """Return pages and sources."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.rst")]
    code = [path for room in ("src", "examples", "docs") for path in (ROOT / room).rglob("*.py")]
    return sorted(pages) + sorted(code)


def prose(path: Path) -> list[tuple[int, str]]:
    """Return numbered lines of a page; of a source only its strings and comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return list(enumerate(text.splitlines(), 1))
    kinds = (tokenize.STRING, tokenize.COMMENT)
    return [
        (token.start[0] + i, line)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type in kinds
        for i, line in enumerate(token.string.splitlines())
    ]


if __name__ == "__main__":
    sys.exit(1 if main() + long_sentences() else 0)
