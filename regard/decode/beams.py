"""What a beam search holds: hypotheses that go on, candidates to follow them, and the best that have ended.

Letters: `B` sources, `W` hypotheses of each (the beam's width), `R` = B · W rows, `C` candidates of a source,
`N` ended hypotheses of a source that are kept, `T` tokens so far, `V` vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.decode.hypothesis import Hypothesis, length_penalty
from regard.decode.terms import NEVER, Terms


@dataclass(frozen=True, eq=False)
class Candidates:
    """Hypotheses one token longer, the first in line first."""

    scores_BC: Tensor
    """Log-probabilities; minus infinity for what is no candidate at all."""
    rows_BC: Tensor
    """Which row each one continues, …"""
    ids_BC: Tensor
    """… by which token, …"""
    log_probs_BC: Tensor
    """… and how likely that token was."""

    def take(self, places_BC: Tensor) -> Candidates:
        """Those in these places of each source."""
        fields = (self.scores_BC, self.rows_BC, self.ids_BC, self.log_probs_BC)
        return Candidates(*(field.gather(1, places_BC) for field in fields))

    def only(self, which_BC: Tensor) -> Candidates:
        """The others are no candidates any more, and keep their places."""
        scores_BC = self.scores_BC.masked_fill(~which_BC, NEVER)
        return Candidates(scores_BC, self.rows_BC, self.ids_BC, self.log_probs_BC)


@dataclass(frozen=True, eq=False)
class Beams:
    """The hypotheses that go on, those of one source in rows next to each other."""

    scores_BW: Tensor
    """Log-probabilities; minus infinity where a source has fewer hypotheses."""
    last_R: Tensor
    ids_RT: Tensor
    token_log_probs_RT: Tensor
    sources_B: Tensor
    """Which source of the search each one is."""

    @staticmethod
    def start(terms: Terms, width: int) -> Beams:
        """One empty hypothesis for each source."""
        B, R, device = terms.n_sources, terms.n_sources * width, terms.device
        scores_BW = torch.full((B, width), NEVER, device=device)
        scores_BW[:, 0] = 0.0
        last_R = torch.full((R,), terms.bos, dtype=torch.int64, device=device)
        log_probs_RT = torch.empty(R, 0, device=device)
        return Beams(scores_BW, last_R, last_R.new_empty(R, 0), log_probs_RT, torch.arange(B, device=device))

    @property
    def sources_R(self) -> Tensor:
        """Which source of the search each row belongs to."""
        return self.sources_B.repeat_interleave(self.scores_BW.shape[1])

    def tokens_of(self, chosen: Candidates) -> tuple[Tensor, Tensor]:
        """Tokens that these candidates are made of, and their log-probabilities, a candidate each."""
        rows, ids, log_probs = (x.flatten() for x in (chosen.rows_BC, chosen.ids_BC, chosen.log_probs_BC))
        all_ids = torch.cat([self.ids_RT[rows], ids[:, None]], dim=1)
        return all_ids, torch.cat([self.token_log_probs_RT[rows], log_probs[:, None]], dim=1)

    def followed_by(self, chosen: Candidates) -> Beams:
        """The hypotheses that these candidates are, when they go on."""
        return Beams(chosen.scores_BC, chosen.ids_BC.flatten(), *self.tokens_of(chosen), self.sources_B)

    def keep(self, places_B: Tensor) -> Beams:
        """Only the sources in these places."""
        in_rows = (self.last_R, self.ids_RT, self.token_log_probs_RT)
        by_source = (x.unflatten(0, self.scores_BW.shape) for x in in_rows)
        last_R, ids_RT, log_probs_RT = (x.index_select(0, places_B).flatten(0, 1) for x in by_source)
        return Beams(self.scores_BW[places_B], last_R, ids_RT, log_probs_RT, self.sources_B[places_B])


@dataclass(frozen=True, eq=False)
class Ended:
    """The best hypotheses of each source that have ended so far, the best first."""

    scores_BN: Tensor
    """What they are ranked by; minus infinity where there are fewer."""
    lengths_BN: Tensor
    ids_BNT: Tensor
    token_log_probs_BNT: Tensor
    counts_B: Tensor
    """Hypotheses that have ended, the best and the rest."""

    @staticmethod
    def none(terms: Terms, n_best: int) -> Ended:
        """Before the first step."""
        scores_BN = torch.full((terms.n_sources, n_best), NEVER, device=terms.device)
        lengths_BN = torch.zeros_like(scores_BN, dtype=torch.int64)
        no_ids, no_log_probs = lengths_BN[:, :, None][:, :, :0], scores_BN[:, :, None][:, :, :0]
        return Ended(scores_BN, lengths_BN, no_ids, no_log_probs, lengths_BN[:, 0])

    def joined_by(self, ending: Candidates, beams: Beams, alpha: float) -> Ended:
        """The best of these and of the candidates, which end now."""
        shape = ending.scores_BC.shape
        ids, log_probs = (x.unflatten(0, shape) for x in beams.tokens_of(ending))
        length = ids.shape[-1]
        ranked = torch.cat([self.scores_BN, ending.scores_BC / length_penalty(length, alpha)], dim=1)
        # Stable, so that of equals the first to end comes first.
        places_BN = ranked.argsort(dim=1, descending=True, stable=True)[:, : self.scores_BN.shape[1]]
        lengths = torch.cat([self.lengths_BN, torch.full_like(ending.ids_BC, length)], dim=1)
        places = places_BN[:, :, None].expand(-1, -1, length)
        return Ended(
            ranked.gather(1, places_BN),
            lengths.gather(1, places_BN),
            torch.cat([F.pad(self.ids_BNT, (0, 1)), ids], dim=1).gather(1, places),
            torch.cat([F.pad(self.token_log_probs_BNT, (0, 1)), log_probs], dim=1).gather(1, places),
            self.counts_B + (ending.scores_BC > NEVER).sum(dim=1),
        )

    def keep(self, places_B: Tensor) -> Ended:
        """Only the sources in these places."""
        fields = (self.scores_BN, self.lengths_BN, self.ids_BNT, self.token_log_probs_BNT, self.counts_B)
        return Ended(*(field.index_select(0, places_B) for field in fields))

    def hypotheses(self, eos: int, alpha: float) -> list[tuple[Hypothesis, ...]]:
        """As values, for each source."""
        columns = (self.scores_BN, self.lengths_BN, self.ids_BNT, self.token_log_probs_BNT)
        return [
            tuple(
                Hypothesis.of_tokens(ids[:length], log_probs[:length], eos=eos, alpha=alpha)
                for score, length, ids, log_probs in zip(*source, strict=True)
                if score > NEVER
            )
            for source in zip(*(column.tolist() for column in columns), strict=True)
        ]
