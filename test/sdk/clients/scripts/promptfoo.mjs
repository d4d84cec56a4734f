import promptfoo from "promptfoo";

const { OPENAI_BASE_URL: apiBaseUrl, OPENAI_API_KEY: apiKey, MODEL } = process.env;
const provider = { id: `openai:chat:${MODEL}`, config: { apiBaseUrl, apiKey } };
const suite = { prompts: ["What time is it in Paris?"], providers: [provider], tests: [{ vars: {} }] };
const result = await promptfoo.evaluate(suite, { cache: false });
const { results } = "toEvaluateSummary" in result ? await result.toEvaluateSummary() : result;
console.log(`@@${JSON.stringify(["chat", String(results[0].response?.output ?? results[0].error).slice(0, 160)])}`);
process.exit(0);
