client = OpenAI(api_key="unused", webhook_secret=os.environ["WEBHOOK_SECRET"])
event = client.webhooks.unwrap(body, headers)  # raises unless the signature is right
print(event.type, event.data.id)
