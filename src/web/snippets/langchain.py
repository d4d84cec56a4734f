import os
from langchain_openai import ChatOpenAI

model = ChatOpenAI(
    model="{{model}}",
    base_url="{{baseUrl}}",
    api_key=os.environ["{{keyVariable}}"],
)
for chunk in model.stream("{{question}}"):
    print(chunk.content, end="", flush=True)
