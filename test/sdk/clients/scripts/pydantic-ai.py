from cases import KEY, MODEL, QUESTION, URL, get_time, play
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=URL, api_key=KEY))


async def stream():
    async with Agent(model).run_stream(QUESTION) as result:
        return "".join([text async for text in result.stream_text(delta=True)])


async def chat(*tools):
    return (await Agent(model, tools=list(tools)).run(QUESTION)).output


play(chat=chat, stream=stream, tool=lambda: chat(get_time))
