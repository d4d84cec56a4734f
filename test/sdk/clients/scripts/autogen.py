from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient
from cases import KEY, MODEL, QUESTION, URL, get_time, play

ABLE = {"vision": False, "function_calling": True, "json_output": True, "structured_output": True, "family": "unknown"}


def client():
    return OpenAIChatCompletionClient(model=MODEL, base_url=URL, api_key=KEY, model_info=ABLE)


async def chat():
    result = await client().create([UserMessage(content=QUESTION, source="user")])
    return f"{result.content} {result.finish_reason}"


async def stream():
    stream = client().create_stream([UserMessage(content=QUESTION, source="user")])
    result = [one async for one in stream][-1]
    return f"{result.content} {result.finish_reason}"


async def tool():
    agent = AssistantAgent("a", model_client=client(), tools=[get_time], reflect_on_tool_use=True)
    return (await agent.run(task=QUESTION)).messages[-1].content


play(chat=chat, stream=stream, tool=tool)
