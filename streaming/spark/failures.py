"""What stopped the job, in one line: Spark wraps the reason into hundreds."""

from __future__ import annotations

import re
from typing import Final

_CAUSE: Final = re.compile(r"^(?:\s*Caused by)?: (?:[\w.$]+: )*(.+)$", re.MULTILINE)
_CLASSES: Final = re.compile(r"^(?:[a-z][\w$]*\.)+[\w$]+: ")
_FILE: Final = re.compile(r"(?:reading|read|open|parse)\b[^\n:]* file:? (\S+[^\s.])")
_LONGEST: Final = 500


def reason_of(error: BaseException) -> str:
    """The innermost cause that says something, of a Python error or of one that Spark's JVM raised.

    Of ``Caused by:`` lines, and the one that py4j begins with a colon, the last one counts, without the names of its
    classes; else the first line of the text; else the name of the error's class. Where an outer cause names the file
    that could not be read, it goes before.
    """
    text = str(error)
    causes = [cause.strip() for cause in _CAUSE.findall(text)]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = _CLASSES.sub("", next(iter([*reversed(causes), *lines]), type(error).__name__))
    file = _FILE.search(text)
    if file is not None and file[1] not in found:
        found = f"{file[1]}: {found}"
    return found[:_LONGEST].rstrip(".")
