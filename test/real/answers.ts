/** Checks of answers: they equal the server's own, and cost the price of the server's count. */
import type OpenAI from "openai";
import { assembledAnswer, type Checks, chargedRowsOf, GREEDY_REQUEST, must, textOf, usageRowsOf } from "./world.ts";

const FOX = {
	type: "object",
	properties: { fox: { type: "boolean" } },
	required: ["fox"],
	additionalProperties: false,
};

export const ANSWER_CHECKS: Checks = {
	async "an unstreamed answer equals the server's; its price follows the server's count"(world) {
		const { client, accountId } = await world.customer();
		const body = { ...GREEDY_REQUEST, max_tokens: 40 };
		const direct = await world.direct.chat.completions.create(body);
		const ours = await client.chat.completions.create(body);
		must(textOf(ours.choices[0]?.message) === textOf(direct.choices[0]?.message), "another text");
		must(ours.usage?.prompt_tokens === direct.usage?.prompt_tokens, "another count of the prompt");
		must(ours.usage?.completion_tokens === direct.usage?.completion_tokens, "another count of the answer");
		const { spent } = await chargedRowsOf(world, accountId, ours.usage);
		return `${direct.usage?.prompt_tokens} + ${direct.usage?.completion_tokens} tokens, ${spent} nano-dollars`;
	},

	async "a stream has the same text, ends with usage, and names who counted it"(world) {
		const { client, accountId } = await world.customer();
		const direct = await assembledAnswer(world.direct, { max_tokens: 60 });
		const ours = await assembledAnswer(client, { max_tokens: 60 });
		must(ours.text === direct.text, "another text");
		must(ours.finish === direct.finish, `finish ${ours.finish}, not ${direct.finish}`);
		must(ours.usage !== undefined, "no usage");
		const { rows } = await chargedRowsOf(world, accountId, ours.usage);
		if (world.server.countsStreams) {
			must(rows[0]?.basis === "exact", `charged by ${rows[0]?.basis}`);
			must(direct.usage?.prompt_tokens === ours.usage.prompt_tokens, "another count of the prompt");
			must(direct.usage?.completion_tokens === ours.usage.completion_tokens, "another count of the answer");
		}
		return `${ours.usage.prompt_tokens} + ${ours.usage.completion_tokens} tokens, ${rows[0]?.basis}`;
	},

	async "text completions work, unstreamed and streamed"(world) {
		const { client, accountId } = await world.customer();
		const body = { model: "tiny", prompt: "the quick fox", max_tokens: 30, temperature: 0, seed: 7 };
		const direct = await world.direct.completions.create(body);
		const ours = await client.completions.create(body);
		must(ours.choices[0]?.text === direct.choices[0]?.text, "another text");
		must(ours.usage?.completion_tokens === direct.usage?.completion_tokens, "another count");
		let text = "";
		for await (const event of await client.completions.create({ ...body, stream: true }))
			text += event.choices[0]?.text ?? "";
		must(text === direct.choices[0]?.text, "the stream has another text");
		const { rows } = await usageRowsOf(world, accountId);
		must(rows.length === 2, `${rows.length} rows`);
		return `${direct.usage?.completion_tokens} tokens, twice`;
	},

	async "an answer ends at max_tokens and at a stop sequence"(world) {
		const { client } = await world.customer();
		const cut = await client.chat.completions.create({ ...GREEDY_REQUEST, max_tokens: 5 });
		must(cut.usage?.completion_tokens === 5, `${cut.usage?.completion_tokens} tokens`);
		must(cut.choices[0]?.finish_reason === "length", `finish ${cut.choices[0]?.finish_reason}`);
		const long = await client.chat.completions.create({ ...GREEDY_REQUEST, max_tokens: 200 });
		const text = textOf(long.choices[0]?.message) ?? "";
		const stop = [...text].find((letter) => /[a-z0-9]/.test(letter));
		must(stop !== undefined, "no letter in 200 tokens of noise");
		const stopping = { ...GREEDY_REQUEST, max_tokens: 200, stop: [stop] };
		const direct = textOf((await world.direct.chat.completions.create(stopping)).choices[0]?.message);
		const stopped = await client.chat.completions.create(stopping);
		must(textOf(stopped.choices[0]?.message) === direct, "another text than the server's");
		must(stopped.choices[0]?.finish_reason === "stop", `finish ${stopped.choices[0]?.finish_reason}`);
		return `5 tokens; stopped ${direct?.includes(stop) ? "behind" : "before"} ${JSON.stringify(stop)}`;
	},

	async "cached prompt tokens are charged at the cached rate, unstreamed and streamed"(world) {
		if (!world.server.tellsCached) return undefined;
		const { client, accountId } = await world.customer();
		// vLLM caches whole blocks of 128 tokens, so the prompt must be longer.
		const messages = [{ role: "user" as const, content: "the quick fox and the lazy dog, again. ".repeat(12) }];
		const first = await client.chat.completions.create({ ...GREEDY_REQUEST, messages, max_tokens: 5 });
		const second = await assembledAnswer(client, { messages, max_tokens: 5 });
		const cached = second.usage?.prompt_tokens_details?.cached_tokens ?? 0;
		must(cached > 0, "nothing was at hand");
		await chargedRowsOf(world, accountId, first.usage, second.usage);
		return `${cached} of ${second.usage?.prompt_tokens} tokens of the prompt`;
	},

	async "max_completion_tokens is obeyed, whatever the server's name for it"(world) {
		const { client } = await world.customer();
		const answer = await client.chat.completions.create({ ...GREEDY_REQUEST, max_completion_tokens: 7 });
		must(answer.usage?.completion_tokens === 7, `${answer.usage?.completion_tokens} tokens`);
		const streamed = await assembledAnswer(client, { max_completion_tokens: 7 });
		must(streamed.usage?.completion_tokens === 7, `${streamed.usage?.completion_tokens} tokens, streamed`);
		return "7 tokens, twice";
	},

	async "all choices are charged; an ignored `n` is reported"(world) {
		const { client, accountId } = await world.customer();
		// vLLM returns a single choice for greedy sampling, so the temperature is 1.
		const body = { ...GREEDY_REQUEST, temperature: 1, max_tokens: 20, n: 2 };
		if (!world.server.parameters.includes("n")) {
			const { data, response } = await client.chat.completions.create(body).withResponse();
			must(response.headers.get("x-ignored-parameters") === "n", "nothing says that n was ignored");
			must(data.choices.length === 1 && data.usage?.completion_tokens === 20, JSON.stringify(data.usage));
			await chargedRowsOf(world, accountId, data.usage);
			return "ignored, and said so";
		}
		const whole = await client.chat.completions.create(body);
		must(whole.choices.length === 2, `${whole.choices.length} choices`);
		must(whole.usage?.completion_tokens === 40, `${whole.usage?.completion_tokens} tokens`);
		const { usage } = await assembledAnswer(client, { temperature: 1, max_tokens: 20, n: 2 });
		must(usage?.completion_tokens === 40, `${usage?.completion_tokens} tokens, streamed`);
		await chargedRowsOf(world, accountId, whole.usage, usage);
		return "2 choices of 20 tokens, twice";
	},

	async "logprobs equal the server's, unstreamed and streamed"(world) {
		if (!world.server.parameters.includes("logprobs")) return undefined;
		const { client } = await world.customer();
		const body = { ...GREEDY_REQUEST, max_tokens: 6, logprobs: true, top_logprobs: 2 };
		const direct = await world.direct.chat.completions.create(body);
		const ours = await client.chat.completions.create(body);
		const told = (answer: OpenAI.ChatCompletion) =>
			answer.choices[0]?.logprobs?.content?.map(({ token, top_logprobs }) => [token, top_logprobs.length]);
		must(JSON.stringify(told(ours)) === JSON.stringify(told(direct)), JSON.stringify([told(ours), told(direct)]));
		must(told(ours)?.length === 6, `of ${told(ours)?.length} tokens`);
		let streamed = 0;
		for await (const event of await client.chat.completions.create({ ...body, stream: true }))
			streamed += event.choices[0]?.logprobs?.content?.length ?? 0;
		must(streamed === 6, `of ${streamed} tokens, streamed`);
		return "of 6 tokens, two each";
	},

	async "the answer matches a JSON schema"(world) {
		if (!world.server.parameters.includes("response_format")) return undefined;
		const { client, accountId } = await world.customer();
		const format = { type: "json_schema" as const, json_schema: { name: "fox", strict: true, schema: FOX } };
		const body = { ...GREEDY_REQUEST, max_tokens: 400, response_format: format };
		const whole = await client.chat.completions.create(body);
		const text = whole.choices[0]?.message.content ?? "";
		const { fox } = whole.choices[0]?.finish_reason === "stop" ? JSON.parse(text) : { fox: /^\s*\{/.test(text) };
		must(typeof fox === "boolean", text);
		const streamed = await assembledAnswer(client, { max_tokens: 400, response_format: format });
		must(streamed.text === text, `${streamed.text}, streamed`);
		await chargedRowsOf(world, accountId, whole.usage, streamed.usage);
		return `${JSON.stringify(text.slice(0, 20))}, twice`;
	},

	async "a required tool is called, unstreamed and streamed; its arguments are charged"(world) {
		if (!world.server.callsTools) return undefined;
		const { client, accountId } = await world.customer();
		const usages: (OpenAI.CompletionUsage | undefined)[] = [];
		let called = "";
		for (const tool_choice of ["required" as const, { type: "function" as const, function: { name: "pick" } }]) {
			const tools = [
				{ type: "function" as const, function: { name: "pick", description: "Picks one.", parameters: FOX } },
			];
			const body = { ...GREEDY_REQUEST, max_tokens: 120, tools, tool_choice };
			const told = (answer: OpenAI.ChatCompletion) => {
				const { message, finish_reason } = answer.choices[0] as OpenAI.ChatCompletion.Choice;
				const calls = (message.tool_calls ?? []).map((call) => call.type === "function" && call.function);
				return JSON.stringify([
					finish_reason,
					message.content || null,
					calls.map((it) => it && [it.name, it.arguments]),
				]);
			};
			const direct = await world.direct.chat.completions.create(body);
			const whole = await client.chat.completions.create(body);
			const streaming = (sdk: OpenAI) =>
				sdk.chat.completions
					.stream({ ...body, stream: true, stream_options: { include_usage: true } })
					.finalChatCompletion();
			const [directStream, streamed] = [await streaming(world.direct), await streaming(client)];
			must(told(whole).includes('"pick"'), told(whole));
			must(told(whole) === told(direct), `${told(whole)}, not ${told(direct)}`);
			must(told(streamed) === told(directStream), `${told(streamed)}, not ${told(directStream)}, streamed`);
			usages.push(whole.usage, streamed.usage);
			called = told(streamed);
		}
		await chargedRowsOf(world, accountId, ...usages);
		return `${called}, four times`;
	},
};
