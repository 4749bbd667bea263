"""The one exception that means "your input", as opposed to "our fault"."""

_LONGEST = 2000
"""characters of a message: a damaged file may hold a name of megabytes"""


class InputError(Exception):
    """Input or usage that cannot be worked with; the message names what was found and what was expected.

    The command line prints the message as one sentence and exits with code 2. A message repeats what strangers wrote into
    files: it is one line of printable characters, whatever they are.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(message))


def printable(text: str) -> str:
    """Text for a terminal or a line of a file: control characters escaped as in Python, and the middle of a long text left
    out."""
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def in_words(error: Exception) -> str:
    """What a library says of a file, on one line and in words that are no code's."""
    if isinstance(error, UnicodeDecodeError):
        return f"byte 0x{error.object[error.start]:02x} at {error.start} is no text in UTF-8"
    return " ".join(str(error).split())
