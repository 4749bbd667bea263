"""The one exception that means "your input", as opposed to "our fault"."""


class InputError(Exception):
    """Input or usage that cannot be worked with; the message names what was found and what was expected.

    The command line prints the message as one sentence and exits with code 2.
    """


def in_words(error: Exception) -> str:
    """What a library says of a file, on one line and in words that are no code's."""
    if isinstance(error, UnicodeDecodeError):
        return f"byte 0x{error.object[error.start]:02x} at {error.start} is no text in UTF-8"
    return " ".join(str(error).split())
