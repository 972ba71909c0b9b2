"""Sequences laid end to end, on numbers one can do by hand."""

import numpy as np
import pytest
import torch

from regard.errors import ShapeError
from regard.packing import Boundaries, Packed, PaddedView, pack, unpack

LENGTHS = (3, 1, 5)
N = sum(LENGTHS)


@pytest.fixture
def boundaries() -> Boundaries:
    return Boundaries.of_lengths(LENGTHS)


class TestBoundaries:
    def test_each_token_knows_its_sequence_and_its_place_in_it(self, boundaries):
        assert boundaries.sequence_N.tolist() == [0, 0, 0, 1, 2, 2, 2, 2, 2]
        assert boundaries.positions_N.tolist() == [0, 1, 2, 0, 0, 1, 2, 3, 4]

    def test_counts(self, boundaries):
        assert (boundaries.n_tokens, boundaries.n_sequences, boundaries.longest) == (9, 3, 5)
        assert boundaries.n_positions == 5
        assert boundaries.known_lengths == LENGTHS

    def test_first_and_last_token_of_each_sequence(self, boundaries):
        assert boundaries.starts_B.tolist() == [0, 3, 4]
        assert boundaries.ends_B.tolist() == [2, 3, 8]

    def test_which_cells_of_the_padded_view_hold_a_token(self, boundaries):
        assert boundaries.exists_BL.int().tolist() == [[1, 1, 1, 0, 0], [1, 0, 0, 0, 0], [1, 1, 1, 1, 1]]

    def test_shifted_sequences_go_on_where_others_ended(self, boundaries):
        shifted = boundaries.shifted(torch.tensor([2, 0, 7]), n_positions=12)
        assert shifted.positions_N.tolist() == [2, 3, 4, 0, 7, 8, 9, 10, 11]
        assert shifted.sequence_N.tolist() == boundaries.sequence_N.tolist()
        assert shifted.n_positions == 12

    def test_a_compiled_step_that_asks_for_lengths_is_told_so(self, boundaries):
        without = Boundaries(boundaries.sequence_N, boundaries.positions_N, None, None)
        assert without.n_tokens == N
        with pytest.raises(AssertionError, match="lengths"):
            _ = without.longest

    @pytest.mark.parametrize(
        ("lengths", "got"), [((3, 0, 5), "sequence 1 is empty"), ((), "none"), ((-2,), "0")]
    )
    def test_an_empty_sequence_and_an_empty_batch_are_refused(self, lengths, got):
        with pytest.raises(ShapeError, match=got) as caught:
            Boundaries.of_lengths(lengths)
        assert caught.value.argument == "lengths"


class TestPackedIds:
    def test_sequences_lie_end_to_end_and_come_apart_again(self):
        sequences = [[5, 6, 7], [8], [9, 10, 11, 12, 13]]
        packed = pack(sequences)
        assert packed.ids_N.tolist() == [5, 6, 7, 8, 9, 10, 11, 12, 13]
        assert packed.ids_N.dtype == torch.int64
        assert [one.tolist() for one in unpack(packed.ids_N, packed.boundaries)] == sequences

    def test_its_size_in_words(self):
        packed = pack([[5, 6, 7], [8]])
        assert len(packed) == 2
        assert repr(packed) == "Packed(2 sequences, 4 tokens)"

    def test_to_another_device_it_goes_whole(self):
        packed = pack([[5, 6, 7], [8]])
        moved = packed.to("meta")
        assert {moved.ids_N.device.type, moved.boundaries.sequence_N.device.type} == {"meta"}
        assert moved.boundaries.positions_N.device.type == "meta"
        assert moved.boundaries.lengths == packed.boundaries.lengths

    def test_filled_it_has_exactly_so_many_tokens_and_one_sequence_more(self):
        packed = pack([[5, 6, 7], [8]])
        filled = packed.filled(11)
        assert filled.ids_N.tolist()[:4] == [5, 6, 7, 8]
        assert filled.boundaries.lengths == (3, 1, 7)
        assert filled.boundaries.sequence_N.tolist() == [0, 0, 0, 1] + [2] * 7
        # The filler starts over, so that it never needs a position that the others do not.
        assert filled.boundaries.positions_N.tolist() == [0, 1, 2, 0, 0, 1, 2, 0, 1, 2, 0]
        assert filled.boundaries.n_positions == 3

    def test_one_missing_token_is_enough_for_a_filler_and_none_is_not(self):
        packed = pack([[5, 6, 7], [8]])
        assert packed.filled(5).boundaries.lengths == (3, 1, 1)
        for too_few in (4, 3):
            with pytest.raises(ShapeError, match="n_tokens: expected more than the 4"):
                packed.filled(too_few)

    @pytest.mark.parametrize("sequences", [[], [[]], [[5], []]])
    def test_an_empty_sequence_and_an_empty_batch_are_refused(self, sequences):
        with pytest.raises(ShapeError, match="lengths"):
            pack(sequences)

    def test_ids_in_rows_are_refused(self, boundaries):
        with pytest.raises(ShapeError, match=r"ids_N: expected one dimension.*\(3, 3\)"):
            Packed(torch.zeros(3, 3, dtype=torch.int64), boundaries)
        with pytest.raises(ShapeError, match="ids_N"):
            pack([[[5, 6], [7, 8]]])

    def test_another_number_of_ids_than_of_places_is_refused(self, boundaries):
        with pytest.raises(ShapeError, match="ids_N: expected 9 tokens, got 7"):
            Packed(torch.zeros(7, dtype=torch.int64), boundaries)

    def test_another_number_of_rows_than_of_places_is_not_cut_apart(self, boundaries):
        with pytest.raises(ShapeError, match="x_N: expected 9 packed tokens, got 7"):
            unpack(torch.zeros(7, 2), boundaries)

    def test_numbers_that_are_not_whole_are_refused_and_not_rounded(self):
        with pytest.raises(ShapeError, match="ids"):
            pack([[5.5, 6.0]])

    def test_a_tensor_of_floats_is_refused(self, boundaries):
        with pytest.raises(ShapeError, match="ids_N"):
            Packed(torch.zeros(N), boundaries)


class TestPaddedView:
    def test_tokens_stand_in_rows_with_zeros_behind(self, boundaries):
        (padded,) = boundaries.padded.pad(torch.arange(1, N + 1))
        assert padded.tolist() == [[1, 2, 3, 0, 0], [4, 0, 0, 0, 0], [5, 6, 7, 8, 9]]

    def test_what_stands_in_empty_cells_is_never_read(self, boundaries):
        x = torch.randn(N, 2, 7)
        (padded,) = boundaries.padded.pad(x)
        padded[~boundaries.exists_BL] = float("nan")
        assert torch.equal(boundaries.padded.unpad([padded]), x)

    def test_in_groups_each_block_is_as_wide_as_its_own_longest(self, boundaries):
        view = PaddedView.of_groups(boundaries, [np.array([2]), np.array([1, 0])])
        first, second = view.pad(torch.arange(1, N + 1))
        assert first.tolist() == [[5, 6, 7, 8, 9]]
        assert second.tolist() == [[4, 0, 0], [1, 2, 3]]
        assert view.unpad([first, second]).tolist() == list(range(1, N + 1))

    @pytest.mark.parametrize("groups", [[[0, 1, 2]], [[2], [1, 0]]], ids=["one group", "two groups"])
    def test_gradients_in_float64_are_those_of_finite_differences(self, boundaries, groups):
        view = PaddedView.of_groups(boundaries, [np.array(group) for group in groups])
        x = torch.randn(N, 2, dtype=torch.float64, requires_grad=True)
        blocks = [torch.randn(*shape, 2, dtype=torch.float64, requires_grad=True) for shape in view.shapes]
        assert torch.autograd.gradcheck(view.pad, (x,))
        assert torch.autograd.gradcheck(lambda *padded: view.unpad(padded), blocks)
        assert torch.autograd.gradgradcheck(view.pad, (x,))


@pytest.mark.parametrize(("sequences", "wrong"), [([1, 2], "1"), (["ab"], "'ab'"), ([[3], None], "None")])
def test_what_is_no_list_of_sequences_is_refused(sequences, wrong):
    with pytest.raises(ShapeError, match=f"sequences: expected a list of token ids .*, got {wrong}"):
        pack(sequences)
