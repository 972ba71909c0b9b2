"""Models of named fields, served: one output for a text of many lines, and fields by their names."""

import pytest

import regard
from tests.serve.field_models import save_field_models
from tests.serve.running import serving
from tests.serve.single_stack_models import save_single_stack_models

ROW = {"question": "who sat?", "context": "the cat\nsat on the mat"}
FLAT = "who sat? the cat sat on the mat"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fields")
    return [*save_field_models(folder), save_single_stack_models(folder, ["good", "bad"]) / "labeller"]


@pytest.fixture(scope="module")
def server(folders):
    with serving(folders) as found:
        yield found


@pytest.fixture(scope="module")
def answers(folders):
    return regard.load(folders[0])


def test_models_tell_what_they_were_trained_for(server):
    about = {each["id"]: each for each in server.get("/api/v1/models").json()["models"]}
    assert {name: each["does"] for name, each in about.items()} == {
        "answers": "answer",
        "talks": "converse",
        "labeller": "classify",
    }
    assert about["answers"]["template"] == "{question} {context}"


def test_a_text_of_many_lines_has_one_output(server, answers):
    wanted = answers.translate(FLAT).text
    assert "\n" not in wanted
    for text in (ROW, "who sat?\n\nthe cat\nsat on the mat", FLAT):
        answer = server.post("/api/v1/translate", text=text, model="answers").json()
        assert answer["items"][0]["text"] == wanted
    assert answers.respond(ROW).text == wanted


def test_what_is_looked_at_is_what_is_read(server, answers):
    made = server.post("/api/v1/traces", source="who sat?\nthe cat sat on the mat", model="answers").json()
    assert [token["text"] for token in made["inputs"]["tokens"]] == answers.look(FLAT).inputs.texts


def test_an_answer_is_no_translation_into_a_language(server):
    libre = server.post("/translate", q="who sat?", source="auto", target="de")
    assert (libre.status_code, "No model here translates" in libre.json()["error"]) == (400, True)
    named = server.post("/api/v1/translate", text="who sat?", target="de", model="answers")
    assert named.json()["error"]["message"] == (
        "Model 'answers' does not translate from any language into de."
    )
    wrong = server.post("/api/v1/generate", prompt="who", model="answers").json()["error"]["message"]
    assert wrong == "Model 'answers' is for the task 'answer' and cannot generate."


def test_a_field_that_is_missing_is_named(server):
    answer = server.post("/api/v1/translate", text={"questoin": "who?", "context": "a cat"}, model="answers")
    assert answer.status_code == 422
    assert "there is no text in question; did you mean questoin?" in answer.json()["error"]["message"]


def test_a_chat_with_a_model_of_conversations_reads_all_turns(server, folders):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "who sat on the mat?"},
        {"role": "assistant", "content": "the cat"},
        {"role": "user", "content": "a dog\nsat"},
    ]
    answer = server.post("/v1/chat/completions", model="talks", messages=messages).json()
    turns = [message["content"] for message in messages[1:]]
    talks = regard.load(folders[1])
    assert answer["choices"][0]["message"]["content"] == talks.respond({"turns": turns}).text
    read = talks.subwords.encode_one("who sat on the mat? ¶ the cat ¶ a dog sat")
    assert answer["usage"]["prompt_tokens"] == len(read)
