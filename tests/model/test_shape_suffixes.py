"""The shape in a name is true, in every function of the model, on every road that the tests know."""

import pytest
import torch

from regard.loss import label_smoothed_cross_entropy
from regard.model.decoder import Decoder
from regard.model.encoder import Encoder
from regard.model.masks import causal_mask, length_mask
from regard.model.taps import recording
from tests.model.small import INPUT_LENGTHS, OUTPUT_LENGTHS, D, V, random_pack, small_config, small_model
from tests.shapes import shape_suffixes_checked

SETTINGS = [
    {},
    {
        "positions": "rotary",
        "norm_position": "pre",
        "norm": "rms",
        "feed_forward": "swiglu",
        "similarity": "cosine",
    },
    {"positions": "learned", "similarity": "additive", "feed_forward": "gelu", "attention_bias": True},
    {"positions": "none", "similarity": "bilinear", "feed_forward": "geglu"},
]
each_setting = pytest.mark.parametrize(
    "settings", SETTINGS, ids=lambda s: "-".join(map(str, s.values())) or "paper"
)


@each_setting
@pytest.mark.parametrize("watched", [True, False])
def test_in_a_training_step_on_packed_tokens(settings, watched):
    model = small_model(**settings, dropout=0.1).train()
    inputs, outputs = random_pack(INPUT_LENGTHS), random_pack(OUTPUT_LENGTHS)
    targets = torch.randint(V, (outputs.boundaries.n_tokens,))

    def step() -> None:
        states = model.decode(outputs, model.encode(inputs))
        weight = model.output_probabilities.weight
        label_smoothed_cross_entropy(states, weight, targets, 0.1).smoothed.backward()
        model(inputs, outputs)

    with shape_suffixes_checked("regard.model") as checked:
        if watched:
            with recording(model):
                step()
        else:
            step()
    assert {
        "regard.model.transformer.Transformer.decode",
        "regard.model.multi_head_attention.MultiHeadAttention.forward",
        "regard.model.feed_forward.FeedForward.forward",
    } <= checked


def test_in_the_loss():
    states = torch.randn(13, 5, requires_grad=True)
    weight, bias = torch.randn(17, 5, requires_grad=True), torch.randn(17, requires_grad=True)
    counted = torch.rand(13) < 0.5
    with shape_suffixes_checked("regard.loss") as checked:
        targets = torch.randint(17, (13,))
        loss = label_smoothed_cross_entropy(states, weight, targets, 0.1, bias_V=bias, counted_N=counted)
        loss.smoothed.backward()
    assert "regard.loss.label_smoothed_cross_entropy" in checked


@each_setting
@torch.no_grad()
def test_in_decoding_with_a_cache_and_beams(settings):
    model = small_model(**settings)
    with shape_suffixes_checked("regard.model") as checked:
        cache = model.start(model.encode(random_pack(INPUT_LENGTHS)), capacity=7, beams=2)
        _, cache = model.extend(random_pack((2, 5, 1, 3, 1, 2)), cache)
        _, cache = model.step(torch.randint(V, (6,)), cache.reorder(torch.tensor([1, 0, 2, 2, 5, 4])))
        model.step(torch.randint(V, (4,)), cache.keep(torch.tensor([0, 2])))
    assert "regard.model.fast.cache.Cache.recall" in checked


@each_setting
@pytest.mark.parametrize("architecture", ["decoder", "encoder"])
@torch.no_grad()
def test_in_the_other_assemblies(architecture, settings):
    model = small_model(architecture=architecture, **settings)
    with shape_suffixes_checked("regard.model"):
        model(random_pack(OUTPUT_LENGTHS))


@each_setting
@pytest.mark.parametrize("watched", [True, False])
@torch.no_grad()
def test_in_the_blocks_on_ordinary_tensors(settings, watched):
    config = small_config(**settings)
    encoder, decoder = Encoder(config), Decoder(config)
    x, y = torch.randn(2, 7, D), torch.randn(2, 5, D)
    exists = length_mask(torch.tensor([7, 3]))

    def run() -> None:
        decoder(y, encoder(x, exists), causal_mask(5), exists)

    with shape_suffixes_checked("regard.model"):
        if watched:
            with recording(encoder), recording(decoder):
                run()
        else:
            run()


class TestTheCheckerItself:
    """On functions that claim to live in a package of their own."""

    def run(self, source: str, function: str = "f") -> None:
        namespace = {"__name__": "planted.module", "torch": torch}
        exec(source, namespace)
        with shape_suffixes_checked("planted"):
            namespace[function]()

    def test_true_names_pass(self):
        self.run(
            "def f():\n x_BLD = torch.zeros(2, 3, 5)\n y_DB = x_BLD[:, 0].t()\n n_LAYERS = 3\n return y_DB"
        )

    def test_swapped_letters_are_caught(self):
        source = "def f():\n q_BLK, k_BMK = torch.zeros(2, 3, 7), torch.zeros(2, 5, 7)\n"
        source += " scores_BML = q_BLK @ k_BMK.transpose(1, 2)\n return scores_BML"
        with pytest.raises(AssertionError, match=r"scores_BML is \(2, 3, 5\), but M is 5 in k_BMK"):
            self.run(source)

    def test_a_letter_too_many_is_caught(self):
        with pytest.raises(AssertionError, match=r"f: x_NHK is \(7, 3\)"):
            self.run("def f():\n x_NHK = torch.zeros(7, 3)")

    def test_a_letter_outside_the_legend_is_caught(self):
        with pytest.raises(AssertionError, match="uses Q, which the legend does not have"):
            self.run("def f():\n x_NQ = torch.zeros(7, 3)")

    def test_arguments_are_checked_too_and_the_place_is_named(self):
        source = "\n\ndef f():\n g(torch.zeros(7))\ndef g(x_ND):\n return x_ND"
        with pytest.raises(AssertionError, match=r":5 g: x_ND is \(7,\)"):
            self.run(source)

    def test_several_are_reported_together(self):
        source = "def f():\n a_N = torch.zeros(7, 3)\n b_D = torch.zeros(5, 2)"
        with pytest.raises(AssertionError, match=r"(?s)2 names.*a_N is.*b_D is"):
            self.run(source)

    def test_other_packages_are_left_alone(self):
        with shape_suffixes_checked("planted"):
            x_ND = torch.zeros(7)
            small_model()
        assert x_ND.shape == (7,)

    def test_an_error_of_the_body_comes_out_as_it_is(self):
        with pytest.raises(ZeroDivisionError):
            self.run("def f():\n a_N = torch.zeros(7, 3)\n return 1 / 0")

    def test_a_planted_mistake_in_the_model_is_caught(self, monkeypatch):
        """The same code as in the package, with the letters of one name changed."""
        import inspect
        import textwrap

        from regard.model import scaled_dot_product_attention as module

        source = textwrap.dedent(inspect.getsource(module.attention_scores)).replace(
            "scores_BHLM", "scores_BHML"
        )
        planted = dict(vars(module))
        exec(source, planted)
        monkeypatch.setattr(module, "attention_scores", planted["attention_scores"])
        q, k = torch.zeros(2, 3, 5, 11), torch.zeros(2, 3, 7, 11)
        with pytest.raises(AssertionError, match="scores_BHML"), shape_suffixes_checked("regard.model"):
            module.attention_weights(q, k)
