import json

from cases import MESSAGES, MODEL, URL, play
from lm_eval.api.instance import Instance
from lm_eval.models.api_models import JsonChatStr
from lm_eval.models.openai_completions import LocalChatCompletion

lm = LocalChatCompletion(model=MODEL, base_url=f"{URL}/chat/completions", eos_string="</s>")


def chat():
    arguments = (JsonChatStr(json.dumps(MESSAGES)), {"until": ["\n\n"], "max_gen_toks": 16})
    return lm.generate_until([Instance("generate_until", {}, arguments, 0)])[0]


play(chat=chat)
