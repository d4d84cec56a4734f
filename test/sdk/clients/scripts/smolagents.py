from cases import KEY, MODEL, QUESTION, URL, get_time, play
from smolagents import OpenAIModel, tool

model = OpenAIModel(model_id=MODEL, api_base=URL, api_key=KEY)
messages = [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}]
play(
    chat=lambda: model.generate(messages).content,
    stream=lambda: "".join(delta.content or "" for delta in model.generate_stream(messages)),
    tool=lambda: model.generate(messages, tools_to_call_from=[tool(get_time)]).tool_calls[0].function,
)
