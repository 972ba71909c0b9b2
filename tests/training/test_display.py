import io
import os
import re
import subprocess
import sys
from itertools import pairwise

import pytest
from rich.cells import cell_len
from rich.console import Console

from regard.training.display import display
from regard.training.display.display import open_display
from regard.training.display.panel import Panel, curve
from regard.training.display.standing import STRETCHES, Curve, Standing, duration

ESCAPE = re.compile(r"\x1b\[[?\d;]*[a-zA-Z]")
SAMPLE = {
    "source": "猫坐在垫子上。" * 9,
    "reference": "the cat [bold]sits[/bold] :cat:",
    "output": "a [/red] \x1b[31mdog",
}


def step(number, **others):
    known = {"loss": 6.0, "tokens": 300, "learning_rate": 2e-4, "seconds": 0.5 * number}
    return {"step": number, **known, **others}


def validation(number, loss=2.0, **others):
    return {"step": number, "valid_loss": loss, "valid_accuracy": 0.6, **others}


def terminal(width=100, **others):
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=50, **others)


def log():
    return Console(file=io.StringIO(), force_terminal=False, width=80)


def shown(console, events, share=0.25, title="runs/zh-en", unit="token"):
    """What a console shows when it has heard some events."""
    with open_display(console, Standing(title, 97, unit)) as hear:
        hear({"share_done": share})
        for event in events:
            hear(event)
    return console.file.getvalue()


def last_frame(console, events, **others):
    """The lines of the panel as they stay on the screen."""
    return ESCAPE.sub("", shown(console, events, **others).split("\r")[-1]).splitlines()


def frame_of(standing, width=100):
    console = Console(file=io.StringIO(), width=width)
    console.print(Panel(standing))
    return console.file.getvalue()


def test_the_panel_shows_where_the_run_stands():
    frame = "\n".join(last_frame(terminal(), [*map(step, range(1, 11)), validation(10, valid_bleu=23.125)]))
    for words in ("runs/zh-en", "step 10", "25%", "15 s left", "2.00e-04", "403.43"):
        assert words in frame
    assert re.search(r"loss +6\.000", frame)
    assert re.search(r"tokens/s +600\b", frame)
    assert re.search(r"validation +2\.000 +best 2\.000 at 10", frame)
    assert re.search(r"BLEU +23\.12 +best 23\.12 at 10", frame)


def test_what_other_tasks_measure_is_shown_too():
    events = [step(1), validation(1, valid_bits_per_byte=1.5), validation(2, valid_macro_f1=0.875)]
    frame = "\n".join(last_frame(terminal(), events))
    assert re.search(r"bits a byte +1\.500", frame)
    assert re.search(r"macro-F1 +87\.5%", frame)
    assert "bits a byte 1.500" in shown(log(), events)


@pytest.mark.parametrize("unit", ["text", "decision"])
def test_of_labels_the_accuracy_is_told_and_no_perplexity(unit):
    events = [{**step(1), "accuracy": 0.5}, {**step(2), "accuracy": 0.5}, validation(2)]
    frame = "\n".join(last_frame(terminal(), events, unit=unit))
    assert re.search(r"loss +\d.*\n *accuracy +50\.0%", frame)
    assert re.search(r"validation +2\.000.*\n *accuracy +60\.0% +best 60\.0% at 2", frame)
    told = shown(log(), events, unit=unit)
    assert re.search(r"loss \d\.\d+  accuracy 50\.0%", told)
    assert "perplexity" not in frame + told
    assert "perplexity" in shown(log(), events)


def test_the_best_validation_stays_when_later_ones_are_worse():
    standing = Standing("x", 97)
    for number, loss, bleu in ((10, 3.0, 9.0), (20, 2.0, 8.0), (30, float("nan"), 7.0)):
        standing.hear(validation(number, loss, valid_bleu=bleu))
    frame = frame_of(standing)
    assert re.search(r"validation +nan +best 2\.000 at 20", frame)
    assert re.search(r"BLEU +7\.00 +best 9\.00 at 10", frame)


@pytest.mark.parametrize("width", [20, 40, 71, 72, 100, 200])
def test_no_line_is_wider_than_the_terminal(width):
    events = [step(1), step(2), validation(2, valid_bleu=3.0, sample=SAMPLE), step(3)]
    lines = last_frame(terminal(width), events, title="猫" * 70)
    assert len(lines) > 8
    assert max(map(cell_len, lines)) <= width


def test_sample_text_is_shown_as_it_is_and_steers_nothing():
    output = shown(terminal(), [validation(5, sample=SAMPLE)])
    assert "\x1b[31mdog" not in output
    assert "a [/red] ␛[31mdog" in ESCAPE.sub("", output)
    assert "the cat [bold]sits[/bold] :cat:" in output


def test_a_sample_has_a_history():
    standing = Standing("x", 97)
    for number in range(1, 8):
        standing.hear(validation(number, sample={"source": "s", "reference": "r", "output": f"try {number}"}))
    frame = frame_of(standing)
    assert [line.strip() for line in frame.splitlines() if "try" in line] == [
        f"{n}  try {n}" for n in (4, 5, 6, 7)
    ]
    assert frame.count("source") == frame.count("reference") == 1
    standing.hear(validation(8, sample={"source": "other", "reference": "r", "output": "new"}))
    assert "try" not in frame_of(standing)


def test_a_long_sample_is_clipped_with_a_sign():
    standing = Standing("x", 97)
    standing.hear(validation(1, sample={"source": "猫" * 200, "reference": "short", "output": "word " * 99}))
    lines = frame_of(standing, width=40).splitlines()
    assert sum("猫" in line for line in lines) == 2
    assert sum("word" in line for line in lines) == 2
    assert sum(line.rstrip().endswith("…") for line in lines) == 2
    assert max(map(cell_len, lines)) <= 40


def test_words_stay_above_the_panel():
    events = [step(1), {"message": "out of [red]memory"}]
    assert shown(terminal(), events).count("out of [red]memory") == 1
    assert last_frame(terminal(), events) == last_frame(terminal(), events[:1])


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_the_cursor_comes_back_after_a_failure(failure):
    def events():
        yield step(1)
        raise failure

    console = terminal()
    with pytest.raises(failure):
        shown(console, events())
    output = console.file.getvalue()
    assert output.rfind("\x1b[?25h") > output.rfind("\x1b[?25l") >= 0


def test_unknown_events_and_unfit_values_change_nothing():
    events = [
        step(1),
        {"new": 1},
        {"step": None, "loss": "much"},
        {"step": 1, "valid_loss": None},
    ]
    assert last_frame(terminal(), events) == last_frame(terminal(), [step(1)])
    assert shown(log(), events) == shown(log(), [step(1)])


def test_a_loss_that_is_not_finite_is_seen_and_then_forgotten():
    standing = Standing("x", 97)
    for loss in (4.0, float("nan")):
        standing.hear(step(1, loss=loss))
    assert re.search("loss +nan", frame_of(standing))
    standing.hear(step(2, loss=4.0))
    assert standing.loss == pytest.approx(4.0)


def test_the_loss_is_smoothed_and_starts_unbiased():
    standing = Standing("x", 97)
    standing.hear(step(1, loss=8.0))
    assert standing.loss == pytest.approx(8.0)
    standing.hear(step(2, loss=4.0))
    assert standing.loss == pytest.approx((0.98 * 8 + 4) / 1.98)


def test_the_speed_leaves_validations_out():
    standing = Standing("x", 97)
    for number in range(1, 5):
        standing.hear(step(number))
    standing.hear(validation(4))
    assert standing.speed == pytest.approx(600)
    standing.hear(step(5, seconds=100.0))
    standing.hear(step(6, seconds=100.5))
    assert standing.speed == pytest.approx(600)


def test_a_resumed_run_measures_its_own_speed():
    standing = Standing("x", 97)
    standing.hear(step(50, seconds=1000.0))
    assert standing.speed is None
    standing.hear(step(51, seconds=1001.0))
    assert standing.speed == pytest.approx(300)


@pytest.mark.parametrize(("share", "left"), [(0.0, None), (0.25, 30.0), (1.0, 0.0), (1.5, 0.0)])
def test_the_time_left_follows_the_share_that_is_done(share, left):
    standing = Standing("x", 97)
    standing.hear(step(20, share_done=share))
    assert standing.seconds_left == left


@pytest.mark.parametrize(("share", "words"), [(20 / 97, "20 of 97"), (0.3, "20")])
def test_the_number_of_steps_is_shown_if_it_ends_the_run(share, words):
    standing = Standing("x", 97)
    standing.hear(step(20, share_done=share))
    assert standing.steps == words


def test_the_end_of_a_run():
    events = [
        step(9),
        {"step": 9, "averaged": 5, "valid_loss": 1.5},
    ]
    frame = "\n".join(last_frame(terminal(), events))
    assert re.search(r"averaged +1\.500 +mean of 5", frame)
    assert "best" not in frame


def test_a_terminal_that_knows_ascii_alone_gets_nothing_else():
    standing = Standing("x", 97)
    for number in range(1, 9):
        standing.hear(step(number, loss=9.0 / number))
    written = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    Console(file=written, width=100).print(Panel(standing))
    written.flush()
    assert b"19.35" in written.buffer.getvalue()


def test_the_newest_translation_stands_out():
    samples = [{"source": "s", "reference": "r", "output": f"try {number}"} for number in (1, 2)]
    output = shown(terminal(), [validation(n, sample=sample) for n, sample in enumerate(samples, start=1)])
    assert "\x1b[2mtry 1" in output
    assert "\x1b[1mtry 2" in output


def test_a_curve_by_hand():
    assert curve([1.0, 2.0, 4.0], 3, 1) == ["▁▅█"]
    assert curve([0.0, 15.0], 2, 2) == [" █", "▁█"]
    assert curve([3.0, 3.0], 4, 1) == ["▁▁▁▁"]


def test_a_long_curve_keeps_its_shape_in_little_memory():
    line = Curve()
    for value in range(100_000):
        line.add(float(value))
        assert len(line.means) < STRETCHES
    assert len(line.means) >= STRETCHES // 2 - 1
    gaps = [later - earlier for earlier, later in pairwise(line.means)]
    assert max(gaps) == pytest.approx(min(gaps))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "0 s"), (59, "59 s"), (720, "12 min"), (3900, "1 h 05 min"), (3599, "1 h 00 min")],
)
def test_durations_are_said_as_people_do(seconds, words):
    assert duration(seconds) == words


def test_a_log_has_lines_and_no_escape_codes(monkeypatch):
    monkeypatch.setattr(display, "EVERY", 0.0)
    output = shown(
        log(), [step(1), validation(1, valid_bleu=12.5, sample=SAMPLE), step(2), {"message": "words"}]
    )
    assert "\x1b" not in output
    assert output.splitlines() == [
        "step 1  loss 6.000  perplexity 403.43  600 tokens/s  learning rate 2.00e-04  about 2 s left",
        "step 1  valid loss 2.000  accuracy 60.0%  BLEU 12.50  best so far",
        f"  source     {SAMPLE['source']}",
        "  output     a [/red] ␛[31mdog",
        "  reference  the cat [bold]sits[/bold] :cat:",
        "step 2  loss 6.000  perplexity 403.43  600 tokens/s  learning rate 2.00e-04"
        "  best valid loss 2.000  about 3 s left",
        "words",
    ]


def test_a_log_speaks_every_few_seconds_and_at_the_end(monkeypatch):
    monkeypatch.setattr(display, "EVERY", 1e9)
    lines = shown(log(), map(step, range(1, 90))).splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("step 89 of 97")


def test_a_log_has_the_mean_of_checkpoints():
    events = [{"step": 9, "averaged": 5, "valid_loss": 1.5}]
    assert shown(log(), events).splitlines() == ["averaged over 5 checkpoints: valid loss 1.500"]


def test_a_dumb_terminal_gets_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in shown(Console(file=io.StringIO(), force_terminal=True), [step(1)])


def test_no_color_means_none():
    output = shown(terminal(no_color=True), [step(1), step(2)])
    assert not re.search(r"\x1b\[(\d+;)*(3\d|9\d|38;)", output)
    assert re.search(r"\x1b\[(\d+;)*3\d", shown(terminal(), [step(1), step(2)]))


def test_the_display_does_without_torch():
    code = "import sys; import regard.training.display.display; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


CHILD = """
from rich.console import Console
from regard.training.display.display import open_display
from regard.training.display.standing import Standing
with open_display(Console(stderr=True), Standing('runs/猫', 97)) as tell:
    tell({'step': 3, 'loss': 2.0})
    print('a stray line')
"""


def on_a_terminal(code, **streams):
    """What arrives on a real terminal from a program, and on its standard output if that is elsewhere."""
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "60", "LINES": "30", "PYTHONUTF8": "1"}
    streams = {"stdout": theirs, "stderr": theirs, **streams}
    program = subprocess.Popen([sys.executable, "-c", code], env=environment, **streams)
    os.close(theirs)
    output = b""
    try:
        while piece := os.read(ours, 4096):
            output += piece
    except OSError:  # how Linux says that the other side has hung up
        pass
    os.close(ours)
    elsewhere, _ = program.communicate()
    assert program.returncode == 0
    return output.decode(), (elsewhere or b"").decode()


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal to talk to")
def test_on_a_real_terminal_the_panel_is_drawn_and_the_cursor_restored():
    text, _ = on_a_terminal(CHILD)
    assert "runs/猫" in text
    assert "a stray line" in text
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l") >= 0


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal to talk to")
def test_what_is_piped_elsewhere_arrives_there():
    text, elsewhere = on_a_terminal(CHILD, stdout=subprocess.PIPE)
    assert elsewhere == "a stray line\n"
    assert "a stray line" not in text
    assert "runs/猫" in text
