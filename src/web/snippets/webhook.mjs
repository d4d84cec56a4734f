const client = new OpenAI({ apiKey: "unused", webhookSecret: process.env.WEBHOOK_SECRET });
const event = await client.webhooks.unwrap(body, headers); // throws unless the signature is right
console.log(event.type, event.data.id);
