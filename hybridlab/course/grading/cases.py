"""Seeds of hidden cases. The cases are drawn when work is graded, from a secret that only the grader has."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from hybridlab.errors import HybridLabError

VARIABLE = "HYBRIDLAB_SECRET"
SHORTEST = 16  # characters of a secret


@dataclass(frozen=True)
class Secret:
    """The secret of a course.

    Parameters
    ----------
    text : str
        The secret. It is never printed or written, and it is no argument of any program.

    Examples
    --------
    >>> secret = Secret("a secret of a doctest")
    >>> secret
    Secret(fingerprint='5c1039c9')
    >>> secret.seed("lab02.t5", "ana", "final") == secret.seed("lab02.t5", "ana", "practice")
    False
    """

    text: str

    def __repr__(self) -> str:  # without the text: a traceback or a log can show it
        return f"Secret(fingerprint={self.fingerprint!r})"

    @property
    def fingerprint(self) -> str:
        """Eight digits by which two runs with the same secret are known. They do not tell the secret."""
        return self._digest("fingerprint")[:8]

    def seed(self, task: str, student: str, run: str) -> int:
        """Return the seed of the hidden cases of a task, for one student and one run: a whole number from 1 on, below 2**64."""
        return int(self._digest("cases", task, student, run)[:16], 16) or 1  # 0 is the seed of the public cases

    def _digest(self, *parts: str) -> str:
        # with the length of each part, ("ab", "c") and ("a", "bc") are two messages
        message = "".join(f"{len(part)}:{part}" for part in parts)
        # a name can come from a file name that is no UTF-8; Python then has surrogates in it
        return hmac.new(self.text.encode("utf-8", "surrogatepass"), message.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def secret_in(environment: Mapping[str, str]) -> Secret:
    """Return the secret in the variable HYBRIDLAB_SECRET.

    Raises
    ------
    HybridLabError
        It is missing or too short.
    """
    text = environment.get(VARIABLE, "")
    if len(text) >= SHORTEST:
        return Secret(text)
    fault = f"{VARIABLE} is not set" if not text else f"{VARIABLE} has {len(text)} characters"
    how = "python -c 'import secrets; print(secrets.token_hex())' prints a good one; keep it for the whole course"
    raise HybridLabError(f"{fault}: put a secret of at least {SHORTEST} characters into this environment variable; {how}", "no-secret")
