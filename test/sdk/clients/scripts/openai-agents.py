from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from cases import MODEL, QUESTION, get_time, play
from openai import AsyncOpenAI

set_tracing_disabled(True)


def agent(*tools):
    return Agent(name="a", model=OpenAIChatCompletionsModel(model=MODEL, openai_client=AsyncOpenAI()), tools=list(tools))


async def chat():
    return (await Runner.run(agent(), QUESTION)).final_output


async def stream():
    events = Runner.run_streamed(agent(), QUESTION).stream_events()
    raw = [event.data async for event in events if event.type == "raw_response_event"]
    return "".join(one.delta for one in raw if one.type == "response.output_text.delta")


async def tool():
    return (await Runner.run(agent(function_tool(get_time)), QUESTION)).final_output


play(chat=chat, stream=stream, tool=tool)
