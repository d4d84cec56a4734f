from cases import MODEL, QUESTION, get_time, play
from openai import AsyncOpenAI
from semantic_kernel import Kernel
from semantic_kernel.connectors.ai import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
from semantic_kernel.contents import ChatHistory
from semantic_kernel.functions import KernelFunctionFromMethod, kernel_function


def asked(**more):
    history = ChatHistory()
    history.add_user_message(QUESTION)
    service = OpenAIChatCompletion(ai_model_id=MODEL, async_client=AsyncOpenAI())
    return service, {"chat_history": history, "settings": OpenAIChatPromptExecutionSettings(**more)}


async def chat():
    service, of = asked()
    return str(await service.get_chat_message_content(**of))


async def stream():
    service, of = asked()
    return "".join([str(part) async for part in service.get_streaming_chat_message_content(**of)])


async def tool():
    kernel = Kernel()
    function = kernel_function(get_time, name="get_time", description="The time.")
    kernel.add_function("clock", KernelFunctionFromMethod(function, plugin_name="clock"))
    service, of = asked(function_choice_behavior=FunctionChoiceBehavior.Auto())
    return str(await service.get_chat_message_content(kernel=kernel, **of))


play(chat=chat, stream=stream, tool=tool)
