import dspy
from cases import KEY, MODEL, QUESTION, TOOL, URL, play

lm = dspy.LM(f"openai/{MODEL}", api_base=URL, api_key=KEY, cache=False)
play(chat=lambda: lm(QUESTION)[0], tool=lambda: lm(QUESTION, tools=[TOOL])[0]["tool_calls"][0].function.arguments)
