"""The one exception that means "your input", as opposed to "our fault"."""


class InputError(Exception):
    """Input or usage that cannot be worked with; the message names what was found and what was expected.

    The command line prints the message as one sentence and exits with code 2.
    """
