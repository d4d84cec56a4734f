from cases import KEY, MODEL, QUESTION, TOOL, URL, play
from langchain_openai import ChatOpenAI

model = ChatOpenAI(model=MODEL, base_url=URL, api_key=KEY)
play(
    chat=lambda: model.invoke(QUESTION).content,
    stream=lambda: "".join(chunk.content for chunk in model.stream(QUESTION)),
    tool=lambda: [(call["name"], call["args"]) for call in model.bind_tools([TOOL]).invoke(QUESTION).tool_calls],
)
