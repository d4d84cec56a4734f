import litellm
from cases import KEY, MESSAGES, MODEL, TOOL, URL, play


def ask(**more):
    return litellm.completion(model=f"openai/{MODEL}", api_base=URL, api_key=KEY, messages=MESSAGES, **more)


play(
    chat=lambda: ask().choices[0].message.content,
    stream=lambda: "".join(chunk.choices[0].delta.content or "" for chunk in ask(stream=True)),
    tool=lambda: ask(tools=[TOOL]).choices[0].message.tool_calls[0].function.arguments,
)
