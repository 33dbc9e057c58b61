"""Seeds of hidden test cases. The grader draws these cases from a secret that only the grader knows."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from hybridlab.errors import HybridLabError

VARIABLE = "HYBRIDLAB_SECRET"
SHORTEST = 16  # the least number of characters of a secret


@dataclass(frozen=True)
class Secret:
    """The secret of a course.

    Parameters
    ----------
    text : str
        The secret itself. The grader never prints it, never writes it to a file, and never passes it to a program as an argument.

    Examples
    --------
    >>> secret = Secret("a secret of a doctest")
    >>> secret
    Secret(fingerprint='5c1039c9')
    >>> secret.seed("lab02.t5", "ana", "final") == secret.seed("lab02.t5", "ana", "practice")
    False
    """

    text: str

    def __repr__(self) -> str:  # leave the secret out, because tracebacks and logs show this text
        return f"Secret(fingerprint={self.fingerprint!r})"

    @property
    def fingerprint(self) -> str:
        """Eight hexadecimal digits. They are equal for equal secrets, and nobody can compute the secret from them."""
        return self._digest("fingerprint")[:8]

    def seed(self, task: str, student: str, run: str) -> int:
        """Return the seed of the hidden cases of a task for one student and one run: a whole number from 1 to 2**64 - 1."""
        return int(self._digest("cases", task, student, run)[:16], 16) or 1  # never 0, which is the seed of the public cases

    def _digest(self, *parts: str) -> str:
        # with the lengths, ("ab", "c") and ("a", "bc") become different messages
        message = "".join(f"{len(part)}:{part}" for part in parts)
        # a name can come from a file name that is not valid UTF-8; Python puts surrogates into such a name
        return hmac.new(self.text.encode("utf-8", "surrogatepass"), message.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def secret_in(environment: Mapping[str, str]) -> Secret:
    """Return the secret from the environment variable HYBRIDLAB_SECRET.

    Raises
    ------
    HybridLabError
        ``no-secret``: the variable is missing, or the secret is too short.
    """
    text = environment.get(VARIABLE, "")
    if len(text) >= SHORTEST:
        return Secret(text)
    fault = f"{VARIABLE} is not set" if not text else f"{VARIABLE} has {len(text)} characters"
    how = "python -c 'import secrets; print(secrets.token_hex())' prints such a secret; use the same secret for the whole course"
    raise HybridLabError(f"{fault}: put a secret of at least {SHORTEST} characters into this environment variable; {how}", "no-secret")
