import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText, tool } from "ai";
import { z } from "zod";

const { OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey, MODEL } = process.env;
const model = createOpenAICompatible({ name: "local", baseURL, apiKey, includeUsage: true })(MODEL);
const prompt = "What time is it in Paris?";
const tools = { get_time: tool({ description: "The time.", inputSchema: z.object({ city: z.string() }) }) };
const cases = {
	chat: async () => (await generateText({ model, prompt })).text,
	stream: async () => {
		const result = streamText({ model, prompt });
		return `${await result.text} ${(await result.usage).outputTokens} tokens`;
	},
	tool: async () => {
		const { toolCalls } = await generateText({ model, prompt, tools });
		return JSON.stringify(toolCalls.map(({ toolName, input }) => [toolName, input]));
	},
};
for (const [name, play] of Object.entries(cases))
	console.log(`@@${JSON.stringify([name, await play().catch((error) => String(error).slice(0, 160))])}`);
