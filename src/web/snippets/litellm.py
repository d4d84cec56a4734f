import os
from litellm import completion

answer = completion(
    model="openai/{{model}}",
    api_base="{{baseUrl}}",
    api_key=os.environ["{{keyVariable}}"],
    messages=[{"role": "user", "content": "{{question}}"}],
    stream=True,
)
for chunk in answer:
    print(chunk.choices[0].delta.content or "", end="", flush=True)
