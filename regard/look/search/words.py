"""Why a candidate of a beam search had its fate, in English and in Chinese."""

from __future__ import annotations

from regard.look.search.tree import Reason


def went_on(rank: int, width: int) -> Reason:
    """It was among those that go on."""
    return Reason(
        f"It went on: candidate {rank + 1} of its step, in a beam of {width}.",
        f"保留：在这一步排第 {rank + 1}，束宽为 {width}。",
    )


def outranked(better: int, missed: float) -> Reason:
    """Others filled the beam."""
    went = f"{better} better {'candidate' if better == 1 else 'candidates'} went on"
    return Reason(
        f"It fell: {went}, and {missed:.4f} of log-probability was missing to the last of them.",
        f"淘汰：有 {better} 个更好的候选继续扩展，与其中最后一个的对数概率相差 {missed:.4f}。",
    )


def crowded_out(better: int, width: int) -> Reason:
    """Others went first, though not for their log-probability: they had required phrases."""
    return Reason(
        f"It fell: {better} candidates with other parts of the required phrases filled the beam of {width}.",
        f"淘汰：{better} 个含有其他指定短语的候选占满了宽为 {width} 的束。",
    )


def ended_too_low(rank: int, width: int) -> Reason:
    """It ended where an end does not count."""
    return Reason(
        f"It fell: an end counts among the first {width} of its step, and this one was number {rank + 1}.",
        f"淘汰：只有排在前 {width} 的结束才算数，它排第 {rank + 1}。",
    )


def no_place_at_the_limit(rank: int, width: int) -> Reason:
    """The last step has no place for more than the beam."""
    return Reason(
        f"It fell: at the limit of length the first {width} were taken, and this one was number {rank + 1}.",
        f"淘汰：达到长度上限时只取前 {width} 个，它排第 {rank + 1}。",
    )


def hopeless(hope: float, to_beat: float) -> Reason:
    """The search stopped: nothing open could still win."""
    return Reason(
        f"The search stopped: at best this one could have scored {hope:.4f}, and {to_beat:.4f} was found.",
        f"搜索结束：它最多只能得 {hope:.4f} 分，而已找到 {to_beat:.4f} 分的结果。",
    )


def enough_ended(n_ended: int) -> Reason:
    """The search stopped: it was told to wait for so many and no more."""
    return Reason(
        f"The search stopped: {n_ended} hypotheses had ended, as many as were waited for.",
        f"搜索结束：已有 {n_ended} 个结果结束，达到要求的数量。",
    )


def won(score: float, cut_off: bool) -> Reason:
    """The best that ended."""
    return Reason(
        f"It won: it {_ending(cut_off)} with the best score, {score:.4f}.",
        f"胜出：{_ending_in_chinese(cut_off)}，得分最高，{score:.4f}。",
    )


def lost(score: float, best: float, place: int, cut_off: bool) -> Reason:
    """It ended, and another was better."""
    return Reason(
        f"It {_ending(cut_off)} in place {place + 1}: {score:.4f}, and the best has {best:.4f}.",
        f"{_ending_in_chinese(cut_off)}，名列第 {place + 1}：得分 {score:.4f}，最高分 {best:.4f}。",
    )


def _ending(cut_off: bool) -> str:
    return "was cut off at the limit of length" if cut_off else "ended"


def _ending_in_chinese(cut_off: bool) -> str:
    return "在长度上限处截断" if cut_off else "正常结束"
