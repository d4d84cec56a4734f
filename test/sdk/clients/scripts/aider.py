import os

os.environ["AIDER_ANALYTICS"] = "false"
from aider.coders import Coder
from aider.io import InputOutput
from aider.models import Model
from cases import MODEL, QUESTION, URL, play

os.environ["OPENAI_API_BASE"] = URL


def ask(stream):
    io = InputOutput(yes=True, pretty=False, fancy_input=False)
    coder = Coder.create(main_model=Model(f"openai/{MODEL}"), io=io, use_git=False, edit_format="ask", stream=stream)
    coder.run(with_message=QUESTION)
    return coder.partial_response_content


play(chat=lambda: ask(False), stream=lambda: ask(True))
