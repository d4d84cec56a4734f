import os
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike

llm = OpenAILike(
    model="{{model}}",
    api_base="{{baseUrl}}",
    api_key=os.environ["{{keyVariable}}"],
    is_chat_model=True,
    is_function_calling_model=True,
)
for chunk in llm.stream_chat([ChatMessage(role="user", content="{{question}}")]):
    print(chunk.delta, end="", flush=True)
