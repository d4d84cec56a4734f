from cases import KEY, MODEL, QUESTION, URL, get_time, play
from strands import Agent, tool
from strands.models.openai import OpenAIModel

model = OpenAIModel(client_args={"api_key": KEY, "base_url": URL}, model_id=MODEL)
ask = lambda *tools: str(Agent(model=model, tools=list(tools), callback_handler=None)(QUESTION)).strip()
play(stream=ask, tool=lambda: ask(tool(get_time)))
