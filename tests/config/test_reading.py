from dataclasses import fields, replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regard import ConfigError, ModelConfig, RunConfig, preset, read_config, to_toml
from regard.config import PRESETS, TaskConfig
from tests.refusals import refused


@pytest.fixture
def toml(tmp_path):
    def write(text):
        path = tmp_path / "de-en.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def refusal(**sources):
    with pytest.raises(ConfigError) as caught:
        read_config(**sources)
    return caught.value


def test_nothing_given_is_the_paper():
    assert read_config() == preset("paper-base")


def test_a_preset_then_a_file_then_settings(toml):
    file = toml('preset = "small"\n[model]\nd_ff = 300\nd_v = 20\n[training]\nlearning_rate = 2\n')
    config = read_config(file=file, settings=["model.d_ff=400", "training.seed=7"])
    small = preset("small")
    assert config == RunConfig(
        model=replace(small.model, d_ff=400, d_v=20),
        training=replace(small.training, learning_rate=2.0, seed=7),
        decoding=small.decoding,
    )
    assert isinstance(config.training.learning_rate, float)


def test_a_preset_from_the_command_line_wins_over_the_files(toml):
    file = toml('preset = "small"\n')
    assert read_config(preset="tiny", file=file) == preset("tiny")


def test_of_two_settings_the_last_counts():
    assert read_config(settings=["training.seed=2", "training.seed=3"]).training.seed == 3


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("model.d_model=256", 256),
        ("model.d_model = 1_024", 1024),
        ("model.d_k=none", None),
        ("model.d_k=", None),
        ("model.d_k=32", 32),
        ("model.dropout=0", 0.0),
        ("model.dropout=2e-1", 0.2),
        ("model.scale_embeddings=False", False),
        ("model.positions=none", "none"),
        ("model.norm=rms", "rms"),
    ],
)
def test_a_setting_takes_the_type_of_its_field(setting, value):
    name = setting.partition("=")[0].strip().removeprefix("model.")
    read = getattr(read_config(preset="paper-base-heads-4", settings=[setting]).model, name)
    assert read == value
    assert type(read) is type(value)


def test_the_message_of_the_style_guide(toml):
    file = toml("[model]\nn_head = 8\nd_model = 510\n")
    assert str(refusal(file=file)) == (
        f"2 problems in {file}\n"
        "  model.n_head is not a setting; did you mean model.n_heads?\n"
        "  model.d_model = 510 does not divide among 8 heads; 512 does"
    )


@pytest.mark.parametrize(
    ("text", "code", "places"),
    [
        ("[model]\nn_head = 4", "unknown_setting", ["model.n_head", "model.n_heads?"]),
        ("[training]\nd_model = 4", "unknown_setting", ["training.d_model", "model.d_model?"]),
        ("[training]\nn_head = 4", "unknown_setting", ["training.n_head", "model.n_heads?"]),
        ("[modle]\nd_ff = 4", "unknown_setting", ["modle.d_ff", "model.d_ff?"]),
        ("d_ff = 4", "unknown_setting", ["model.d_ff?"]),
        ("[zzz]", "unknown_setting", ["zzz", "`regard config`"]),
        ("[model]\nzzz = 4", "unknown_setting", ["model.zzz", "`regard config`"]),
        ("model = 4", "unknown_setting", ["model is a section", "model.NAME"]),
        ('[model]\nd_ff = "4"', "wrong_type", ["model.d_ff", "an integer", '"4"']),
        ("[model]\nd_ff = 4.0", "wrong_type", ["model.d_ff", "an integer", "4.0"]),
        ("[model]\nd_ff = true", "wrong_type", ["model.d_ff", "an integer", "true"]),
        ("[model]\nd_ff = [4]", "wrong_type", ["model.d_ff", "a list"]),
        ("[model.d_ff]\nx = 1", "wrong_type", ["model.d_ff", "a table"]),
        ("[model]\ndropout = false", "wrong_type", ["model.dropout", "a number", "false"]),
        ("[model]\nscale_embeddings = 1", "wrong_type", ["model.scale_embeddings", "true or false", "1"]),
        ('[model]\npositions = "sinusoid"', "unknown_choice", ["model.positions", "alibi", "sinusoidal?"]),
        ("[training]\nclip_norm = nan", "bad_value", ["training.clip_norm", "nan"]),
        ("preset = 3", "wrong_type", ["preset", "3"]),
        ('preset = "smal"', "unknown_preset", ["smal", "small?"]),
    ],
)
def test_one_mistake_in_a_file_is_one_problem(toml, text, code, places):
    error = refusal(file=toml(text))
    (problem,) = error.problems
    assert error.code == code
    assert [place for place in places if place not in problem] == []
    assert error.where.endswith("de-en.toml")


@pytest.mark.parametrize(
    ("setting", "code", "places"),
    [
        ("model.d_model", "missing_value", ["model.d_model=VALUE"]),
        ("model.d_model=wide", "wrong_type", ["model.d_model", "an integer", '"wide"']),
        ("model.d_model=", "wrong_type", ["model.d_model", "an integer", '""']),
        ("model.scale_embeddings=yes", "wrong_type", ["model.scale_embeddings", "true or false", '"yes"']),
        ("training.d_model=4", "unknown_setting", ["training.d_model", "model.d_model?"]),
        ("=4", "unknown_setting", ["`regard config`"]),
    ],
)
def test_one_mistake_in_a_setting_is_one_problem(setting, code, places):
    error = refusal(settings=[setting])
    (problem,) = error.problems
    assert error.code == code
    assert [place for place in places if place not in problem] == []
    assert error.where == "--set"


def test_with_two_origins_each_problem_says_which_it_means(toml):
    file = toml('preset = "smal"\n[model]\nd_fff = 4\nd_model = 510')
    error = refusal(file=file, settings=["training.sead=1", "decoding.beam_size=0"])
    assert error.where == f"{file} and --set"
    assert error.code == "bad_setting", "problems of several kinds"
    places = (
        "smal",
        f"{file}: model.d_fff",
        "--set: training.sead",
        "model.d_model = 510",
        "decoding.beam_size",
    )
    for problem, place in zip(error.problems, places, strict=True):
        assert place in problem


def test_an_unreadable_file_is_refused(tmp_path):
    for file in (tmp_path, tmp_path / "missing.toml"):
        with refused("missing_file", str(file), error=ConfigError):
            read_config(file=file)


def test_text_that_is_not_toml_is_refused_with_its_line(toml):
    with refused("not_toml", "line 2", error=ConfigError):
        read_config(file=toml("[model]\nd_model 512\n"))


def test_bytes_that_are_not_text_are_refused(tmp_path):
    (tmp_path / "latin.toml").write_bytes(b"# gr\xfc\xdfe\n")
    with refused("not_utf8", "latin.toml", "byte 4", error=ConfigError):
        read_config(file=tmp_path / "latin.toml")


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000 + "]" * 100_000, "a = " + "9" * 10_000])
def test_text_that_exhausts_the_parser_is_refused(toml, text):
    with refused("not_toml", ".toml"):
        read_config(file=toml(text))


def test_an_enormous_file_is_refused_unread(tmp_path):
    file = tmp_path / "sparse.toml"
    with file.open("wb") as opened:
        opened.truncate(1 << 42)
    with refused("not_toml", "sparse.toml"):
        read_config(file=file)


@pytest.mark.parametrize(
    "setting",
    [
        "model.d_model=100000000000",
        "model.encoder_layers=1001",
        "model.vocab_size=16777217",
        "training.batch_tokens=1073741825",
        "training.seed=9223372036854775808",
        "training.max_steps=-9223372036854775808",
    ],
)
def test_values_that_no_machine_can_hold_are_refused(setting):
    name = setting.partition("=")[0]
    with refused("wrong_type" if "92233" in setting else "bad_value", name):
        read_config(settings=[setting])


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    (tmp_path / "bom.toml").write_bytes(b"\xef\xbb\xbf[model]\nd_ff = 7\n")
    assert read_config(file=tmp_path / "bom.toml").model.d_ff == 7


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("described", [False, True])
def test_what_is_written_reads_back_equal_whatever_the_preset(toml, name, described):
    file = toml(to_toml(preset(name), described=described))
    assert read_config(file=file) == preset(name)
    assert read_config(preset="paper-base-heads-1", file=file) == preset(name)


@given(
    dropout=st.floats(0, 1, exclude_max=True),
    rate=st.floats(1e-300, 1e300),
    d_v=st.none() | st.integers(1, 99),
)
def test_numbers_survive_the_round_trip(tmp_path_factory, dropout, rate, d_v):
    base = preset("tiny")
    config = replace(
        base,
        model=replace(base.model, dropout=dropout, d_v=d_v),
        training=replace(base.training, learning_rate=rate),
    )
    file = tmp_path_factory.mktemp("toml") / "run.toml"
    file.write_text(to_toml(config))
    assert read_config(file=file) == config


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: text != "none"))
@example('"|"')
@example("question:\t{question}\r\n\\{context}\x7f")
def test_words_survive_the_round_trip(tmp_path_factory, words):
    config = replace(preset("tiny"), task=TaskConfig(name="classify", label_separator=words))
    file = tmp_path_factory.mktemp("toml") / "run.toml"
    file.write_text(to_toml(config), encoding="utf-8")
    assert read_config(file=file) == config


@pytest.mark.parametrize("field", fields(ModelConfig), ids=lambda field: field.name)
def test_a_misspelt_setting_is_recognised(field):
    misspelt = field.name[:-1] if len(field.name) > 4 else field.name + "s"
    with refused("unknown_setting", f"model.{misspelt} ", f"model.{field.name}?"):
        read_config(settings=[f"model.{misspelt}=1"])


@pytest.mark.parametrize("template", ["text", "{text", "{}"])
def test_a_template_without_a_field_is_refused(template):
    with refused("bad_value", "task.input", template):
        read_config(preset="tiny", settings=["task.name=summarise", f"task.input={template}"])


@pytest.mark.parametrize("minutes", ["0", "-1", "inf"])
def test_a_run_takes_time(minutes):
    with refused("bad_value", "training.max_minutes"):
        read_config(preset="tiny", settings=[f"training.max_minutes={minutes}"])
