from cases import MODEL, PARAMETERS, QUESTION, URL, get_time, play
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import Tool

time = Tool(name="get_time", description="The time.", parameters=PARAMETERS, function=get_time)


def ask(**more):
    generator = OpenAIChatGenerator(model=MODEL, api_base_url=URL, **more)
    return generator.run(messages=[ChatMessage.from_user(QUESTION)])["replies"][0]


play(
    chat=lambda: ask().text,
    stream=lambda: ask(streaming_callback=lambda _chunk: None).text,
    tool=lambda: [(call.tool_name, call.arguments) for call in ask(tools=[time]).tool_calls],
)
