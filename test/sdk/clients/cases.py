"""Plays the cases of a client and prints each result as a line that run.ts reads."""
import asyncio
import inspect
import json
import os

URL = os.environ["OPENAI_BASE_URL"]
KEY = os.environ["OPENAI_API_KEY"]
MODEL = os.environ["MODEL"]
QUESTION = "What time is it in Paris?"
MESSAGES = [{"role": "user", "content": QUESTION}]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "get_time", "description": "The time.", "parameters": PARAMETERS}}
CALLS = []


def get_time(city: str) -> str:
    """The time in a city.

    Args:
        city: Name of the city.
    """
    CALLS.append(city)
    return "noon"


def play(**cases):
    for name, case in cases.items():
        try:
            value = case()
            if inspect.isawaitable(value):
                value = asyncio.run(value)
        except Exception as error:
            value = f"{type(error).__name__}: {error}"
        called = f"{CALLS} " if name == "tool" and CALLS else ""
        print("@@" + json.dumps([name, called + str(value)[:160]]), flush=True)
