"""Switch heads off: what is each of them worth for one translation, and what remains without the best?

    python examples/head_off.py [RUN]        RUN is what examples/two_files.py wrote

A head that looks at the right word need not be one that matters: others may look there, too. So the question
is put to the model: it scores its own translation once without each head.
"""

from __future__ import annotations

import sys

import numpy as np

import regard
from regard.look.interventions.interventions import HeadOff

DATE = "三月五日星期二"


def main() -> None:
    """Print the effect of each head, then take more and more of them away."""
    model = regard.load(sys.argv[1] if sys.argv[1:] else "runs/dates")
    trace = model.look(DATE)
    print(f"{DATE}  →  {trace.outputs.text}   log-probability {trace.log_probs.sum():.3f}")
    effects = model.head_effects(trace)
    for kind, effect_LH in effects.items():
        for layer, row in enumerate(effect_LH):
            print(
                f"  without {kind:7} layer {layer}: "
                + "  ".join(f"head {h} {e:+.3f}" for h, e in enumerate(row))
            )
    ranked = sorted(
        (effect, kind, layer, head)
        for kind, effect_LH in effects.items()
        for (layer, head), effect in np.ndenumerate(effect_LH)
    )
    for n_off in (1, 2, 4, 8):
        off = [HeadOff(kind=kind, layer=layer, head=head) for _, kind, layer, head in ranked[:n_off]]
        print(f"without the {n_off} that matter most: {model.look(DATE, interventions=off).outputs.text}")


if __name__ == "__main__":
    main()
