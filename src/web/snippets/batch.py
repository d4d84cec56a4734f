import os
from openai import OpenAI

client = OpenAI(base_url="{{baseUrl}}", api_key=os.environ["{{keyVariable}}"])
file = client.files.create(file=open("requests.jsonl", "rb"), purpose="batch")
batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
# Once client.batches.retrieve(batch.id).status is "completed":
# client.files.content(output_file_id).text
