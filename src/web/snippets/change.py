from openai import OpenAI

client = OpenAI(
    base_url="{{baseUrl}}",   # 1
    api_key=os.environ["{{keyVariable}}"],   # 2
)
client.chat.completions.create(
    model="MODEL_ID",   # 3: an id from GET /v1/models
    messages=[{"role": "user", "content": "Hello!"}],
)
