"""The blocks and both stacks against torch's own, with the same weights: values and gradients.

torch.nn's masks say True where one may *not* attend, so they are ours upside down.
"""

import pytest
import torch
from torch import Tensor, nn

from regard.model.decoder import Decoder
from regard.model.encoder import Encoder
from regard.model.masks import SameSequence, causal_mask, length_mask
from regard.model.multi_head_attention import MultiHeadAttention
from regard.model.taps import recording
from regard.packing import Boundaries
from tests.model.small import small_config, stirred
from tests.parity.tolerances import assert_close

B, L, M, H, K, F = 2, 5, 7, 3, 11, 13
D = H * K  # torch.nn knows no other d_k


def randn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def gradients(output: Tensor, along: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad((output * along).sum(), inputs)


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    """Give our block the weights of theirs."""
    with torch.no_grad():
        for name, weight in zip(("w_q", "w_k", "w_v"), theirs.in_proj_weight.chunk(3), strict=True):
            getattr(ours, name).weight.copy_(weight)
        ours.w_o.weight.copy_(theirs.out_proj.weight)
        if theirs.in_proj_bias is not None:
            for name, bias in zip(("w_q", "w_k", "w_v"), theirs.in_proj_bias.chunk(3), strict=True):
                getattr(ours, name).bias.copy_(bias)
            ours.w_o.bias.copy_(theirs.out_proj.bias)


@pytest.mark.parametrize("bias", [True, False])
class TestMultiheadAttention:
    def both(self, bias: bool) -> tuple[MultiHeadAttention, nn.MultiheadAttention]:
        theirs = stirred(nn.MultiheadAttention(D, H, bias=bias, batch_first=True)).double()
        ours = MultiHeadAttention(D, H, bias=bias).double()
        copy_attention(ours, theirs)
        return ours, theirs

    def test_self_attention_with_a_causal_mask_and_padding(self, bias):
        ours, theirs = self.both(bias)
        x, along = randn(B, L, D), torch.randn(B, L, D)
        exists = length_mask(torch.tensor([L, 3]))
        our_output = ours(x, may_attend=causal_mask(L) & exists)
        masks = {"attn_mask": ~causal_mask(L), "key_padding_mask": ~exists[:, 0, 0]}
        their_output, _ = theirs(x, x, x, **masks, need_weights=False)
        assert_close(our_output, their_output)
        assert_close(gradients(our_output, along, x)[0], gradients(their_output, along, x)[0])

    def test_attention_to_a_memory_with_a_mask_for_each_head(self, bias):
        ours, theirs = self.both(bias)
        x, memory, along = randn(B, L, D), randn(B, M, D), torch.randn(B, L, D)
        may_attend = torch.rand(B, H, L, M) < 0.5
        may_attend[..., 2] = True  # torch.nn gives NaN to a query that may attend to nothing
        our_output = ours(x, memory, may_attend)
        their_output, _ = theirs(x, memory, memory, attn_mask=~may_attend.flatten(0, 1), need_weights=False)
        assert_close(our_output, their_output)
        for our_grad, their_grad in zip(
            gradients(our_output, along, x, memory), gradients(their_output, along, x, memory), strict=True
        ):
            assert_close(our_grad, their_grad)

    def test_the_weights_that_a_recording_shows(self, bias):
        ours, theirs = self.both(bias)
        x, memory = randn(B, L, D), randn(B, M, D)
        with recording(ours) as seen:
            ours(x, memory)
        _, their_weights = theirs(x, memory, memory, average_attn_weights=False)
        assert_close(seen["weights"], their_weights)


def copy_stack(ours: Encoder | Decoder, theirs: nn.Module) -> None:
    """Give our stack of layers the weights of theirs."""
    for our_layer, their_layer in zip(ours.layers, theirs.layers, strict=True):
        if isinstance(ours, Decoder):
            copy_attention(our_layer.masked_multi_head_attention, their_layer.self_attn)
            copy_attention(our_layer.multi_head_attention, their_layer.multihead_attn)
        else:
            copy_attention(our_layer.multi_head_attention, their_layer.self_attn)
        our_layer.feed_forward.widen.load_state_dict(their_layer.linear1.state_dict())
        our_layer.feed_forward.narrow.load_state_dict(their_layer.linear2.state_dict())
        for i, add_and_norm in enumerate(our_layer.add_and_norm):
            add_and_norm.norm.load_state_dict(getattr(their_layer, f"norm{i + 1}").state_dict())
    if theirs.norm is not None:
        ours.norm.load_state_dict(theirs.norm.state_dict())


def both_transformers(norm_first: bool, activation: str) -> tuple[Encoder, Decoder, nn.Transformer]:
    """Our two stacks and torch's, whose last norm behind post-norm layers is not the paper's."""
    n_encoder, n_decoder = 2, 3
    options = {"dropout": 0.0, "activation": activation, "batch_first": True, "norm_first": norm_first}
    theirs = nn.Transformer(
        D,
        H,
        custom_encoder=nn.TransformerEncoder(
            nn.TransformerEncoderLayer(D, H, F, **options),
            n_encoder,
            nn.LayerNorm(D) if norm_first else None,
            enable_nested_tensor=False,
        ),
        custom_decoder=nn.TransformerDecoder(
            nn.TransformerDecoderLayer(D, H, F, **options), n_decoder, nn.LayerNorm(D) if norm_first else None
        ),
        batch_first=True,
    )
    theirs = stirred(theirs).double()
    config = small_config(
        d_model=D, n_heads=H, d_k=None, d_v=None, d_ff=F, attention_bias=True, feed_forward=activation,
        positions="none", norm_position="pre" if norm_first else "post",
    )  # fmt: skip
    encoder, decoder = Encoder(config).double(), Decoder(config).double()
    copy_stack(encoder, theirs.encoder)
    copy_stack(decoder, theirs.decoder)
    return encoder, decoder, theirs


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [True, False], ids=["pre", "post"])
class TestTransformer:
    """Inputs of 7 and 3 tokens, outputs of 2 and 5."""

    lengths = (M, 3), (2, L)

    def theirs(self, transformer: nn.Transformer, x: Tensor, y: Tensor) -> Tensor:
        missing = ~length_mask(torch.tensor(self.lengths[0]))[:, 0, 0]
        missing_y = ~length_mask(torch.tensor(self.lengths[1]))[:, 0, 0]
        return transformer(
            x, y, tgt_mask=~causal_mask(L), src_key_padding_mask=missing, memory_key_padding_mask=missing,
            tgt_key_padding_mask=missing_y,
        )  # fmt: skip

    def compare(self, output: Tensor, theirs: Tensor, x: Tensor, y: Tensor) -> None:
        """Where there are tokens, values are the same; and so are gradients from there."""
        exists = length_mask(torch.tensor(self.lengths[1]))[:, 0, 0]
        assert_close(output[exists], theirs[exists])
        along = torch.randn(B, L, D, dtype=torch.float64) * exists[..., None]
        ours_and_theirs = zip(gradients(output, along, x, y), gradients(theirs, along, x, y), strict=True)
        for ours, their in ours_and_theirs:
            assert_close(ours, their)
            assert their.abs().max() > 1e-3

    def test_on_ordinary_tensors_values_and_gradients_are_the_same(self, norm_first, activation):
        encoder, decoder, transformer = both_transformers(norm_first, activation)
        x, y = randn(B, M, D), randn(B, L, D)
        inputs, outputs = (length_mask(torch.tensor(lengths)) for lengths in self.lengths)
        ours = decoder(y, encoder(x, inputs), causal_mask(L) & outputs, inputs)
        self.compare(ours, self.theirs(transformer, x, y), x, y)

    def test_on_packed_tokens_values_and_gradients_are_the_same(self, norm_first, activation):
        encoder, decoder, transformer = both_transformers(norm_first, activation)
        x, y = randn(B, M, D), randn(B, L, D)
        inputs, outputs = (Boundaries.of_lengths(lengths) for lengths in self.lengths)
        memory = encoder(inputs.padded.unpad([x]), SameSequence(inputs, inputs, causal=False))
        so_far, source = (
            SameSequence(outputs, outputs, causal=True),
            SameSequence(outputs, inputs, causal=False),
        )
        (ours,) = outputs.padded.pad(decoder(outputs.padded.unpad([y]), memory, so_far, source))
        self.compare(ours, self.theirs(transformer, x, y), x, y)
