"""What goes wrong."""


class WindtunnelError(Exception):
    """Base of what this module raises.

    ``problems`` has every problem found: dicts with ``pointer`` (JSON pointer of the value), ``message`` (what is wrong),
    ``suggestion`` (what to write instead), ``file``, ``line`` and ``column`` (0: unknown).
    """

    def __init__(self, text, problems=()):
        super().__init__(text)
        self.problems = list(problems)


class InputError(WindtunnelError, ValueError):
    """A scenario, a value or an option is wrong."""


class UnsupportedError(InputError):
    """Correct, but not simulated by this version."""


class EnvironmentError(WindtunnelError, OSError):  # noqa: A001 - the name in C++
    """A file that cannot be read, or not enough memory."""


class InternalError(WindtunnelError, RuntimeError):
    """A bug of windtunnel: please report it together with the scenario."""
