from cases import KEY, MODEL, QUESTION, URL, play
from inspect_ai.model import get_model
from inspect_ai.tool import ToolInfo, ToolParams

model = get_model(f"openai-api/local/{MODEL}", base_url=URL, api_key=KEY)
time = ToolInfo(
    name="get_time",
    description="The time.",
    parameters=ToolParams(properties={"city": {"type": "string", "description": "Name."}}, required=["city"]),
)


async def chat():
    return (await model.generate(QUESTION)).completion


async def tool():
    calls = (await model.generate(QUESTION, tools=[time])).message.tool_calls
    return [(call.function, call.arguments) for call in calls]


play(chat=chat, tool=tool)
