"""How well a text was foreseen: per token, and per byte, by which all vocabularies can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

from regard.config.checking import counted


@dataclass(frozen=True, kw_only=True, slots=True)
class Perplexity:
    """The likelihood of a held-out text."""

    nll: float
    """Negative log-likelihood of the whole text, and of the end of each document, in nats."""
    n_tokens: int
    n_bytes: int
    """Of the text in UTF-8."""
    held_out: str = "test"
    """Which set it was measured on."""

    @property
    def per_token(self) -> float:
        """Between how many tokens the model wavers, about."""
        return exp(self.nll / self.n_tokens)

    @property
    def per_byte(self) -> float:
        """The same of bytes."""
        return exp(self.nll / self.n_bytes)

    @property
    def bits_per_byte(self) -> float:
        """To how many bits a byte could be packed."""
        return self.nll / log(2) / self.n_bytes

    def measures(self) -> dict[str, float]:
        """As they are kept."""
        return {
            "perplexity_per_token": self.per_token,
            "perplexity_per_byte": self.per_byte,
            "bits_per_byte": self.bits_per_byte,
        }

    def __str__(self) -> str:
        of = f"{counted(self.n_tokens, 'token')}, {counted(self.n_bytes, 'byte')}"
        return (
            f"perplexity {self.per_token:,.2f} a token, {self.per_byte:.3f} a byte\n"
            f"{self.bits_per_byte:.3f} bits a byte\n"
            f"measured on the {self.held_out} set: {of}"
        )
