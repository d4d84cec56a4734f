from cases import KEY, MESSAGES, MODEL, TOOL, URL, get_time, play
from crewai import LLM

settings = dict(model=MODEL, provider="openai", base_url=URL, api_key=KEY)
play(
    chat=lambda: LLM(**settings).call(MESSAGES),
    stream=lambda: LLM(**settings, stream=True).call(MESSAGES),
    tool=lambda: LLM(**settings).call(MESSAGES, tools=[TOOL], available_functions={"get_time": get_time}),
)
