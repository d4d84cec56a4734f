/** What must hold before a real model server; each says what it saw, or throws. */
import OpenAI from "openai";
import { priceOf } from "../support/chat.ts";
import { createRandom } from "../support/random.ts";
import type { TestService } from "../support/service.ts";
import { waitFor } from "../support/wait.ts";
import type { RealServer } from "./servers.ts";

export interface RealWorld {
	readonly service: TestService;
	readonly server: RealServer;
	readonly contextLength: number;
	/** The same SDK, straight to the model server. */
	readonly direct: OpenAI;
	/** A new account with USD 100. */
	customer(): Promise<Customer>;
	/** The model server, at once. */
	kill(): Promise<void>;
	/** Until it answers. */
	restart(): Promise<void>;
}

interface Customer {
	readonly accountId: string;
	readonly secret: string;
	readonly client: OpenAI;
}

const MESSAGES = [{ role: "user" as const, content: "the quick fox and the lazy dog, again and again." }];
/** Greedy, so that the same prompt has the same answer. */
const GREEDY = { model: "tiny", messages: MESSAGES, temperature: 0, seed: 7 };

function must(condition: unknown, what: string): asserts condition {
	if (!condition) throw new Error(what);
}

/** The rows of an account whose requests are over; what it spent is their sum. */
async function booked({ service }: RealWorld, accountId: string) {
	await service.settled();
	const rows = await service.usage(accountId);
	const spent = Number((await service.balance(accountId)).spent);
	const sum = rows.reduce((total, row) => total + Number(row.charged_nano_usd), 0);
	must(spent === sum, `spent ${spent} is not the sum of the rows, ${sum}`);
	return { rows, spent };
}

async function assembled(client: OpenAI, body: Record<string, unknown>) {
	const stream = await client.chat.completions.create({
		...GREEDY,
		...body,
		stream: true,
		stream_options: { include_usage: true },
	} as OpenAI.ChatCompletionCreateParamsStreaming);
	let text = "";
	let finish: string | null = null;
	let usage: OpenAI.CompletionUsage | undefined;
	for await (const event of stream) {
		text += event.choices[0]?.delta.content ?? "";
		finish = event.choices[0]?.finish_reason ?? finish;
		usage = event.usage ?? usage;
	}
	return { text, finish, usage };
}

/** What an answer costs by what it says of itself; tokens that were at hand at half the price. */
function costOf(usage: OpenAI.CompletionUsage | undefined): number {
	if (usage === undefined) return 0;
	const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
	return priceOf(usage.prompt_tokens - cached / 2, usage.completion_tokens);
}

/** Each is undefined where the server has no such thing. */
export const REAL_CHECKS: Readonly<Record<string, (world: RealWorld) => Promise<string | undefined>>> = {
	async "a whole answer is the server's, and costs what it counted"(world) {
		const { client, accountId } = await world.customer();
		const body = { ...GREEDY, max_tokens: 40 };
		const direct = await world.direct.chat.completions.create(body);
		const ours = await client.chat.completions.create(body);
		must(ours.choices[0]?.message.content === direct.choices[0]?.message.content, "another text");
		must(ours.usage?.prompt_tokens === direct.usage?.prompt_tokens, "another count of the prompt");
		must(ours.usage?.completion_tokens === direct.usage?.completion_tokens, "another count of the answer");
		const { spent } = await booked(world, accountId);
		const cost = costOf(ours.usage);
		must(spent === cost, `charged ${spent}, not ${cost}`);
		return `${direct.usage?.prompt_tokens} + ${direct.usage?.completion_tokens} tokens, ${spent} nano-dollars`;
	},

	async "a stream assembles to the same text, ends with its usage, and says by whose count"(world) {
		const { client, accountId } = await world.customer();
		const direct = await assembled(world.direct, { max_tokens: 60 });
		const ours = await assembled(client, { max_tokens: 60 });
		must(ours.text === direct.text, "another text");
		must(ours.finish === direct.finish, `finish ${ours.finish}, not ${direct.finish}`);
		must(ours.usage !== undefined, "no usage");
		const { rows, spent } = await booked(world, accountId);
		const cost = costOf(ours.usage);
		must(spent === cost, `charged ${spent}, shown ${cost}`);
		if (world.server.countsStreams) {
			must(rows[0]?.basis === "exact", `charged by ${rows[0]?.basis}`);
			must(direct.usage?.prompt_tokens === ours.usage.prompt_tokens, "another count of the prompt");
			must(direct.usage?.completion_tokens === ours.usage.completion_tokens, "another count of the answer");
		}
		return `${ours.usage.prompt_tokens} + ${ours.usage.completion_tokens} tokens, ${rows[0]?.basis}`;
	},

	async "text completions, whole and streamed"(world) {
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
		const { rows } = await booked(world, accountId);
		must(rows.length === 2, `${rows.length} rows`);
		return `${direct.usage?.completion_tokens} tokens, twice`;
	},

	async "an answer ends at max_tokens and at a stop"(world) {
		const { client } = await world.customer();
		const cut = await client.chat.completions.create({ ...GREEDY, max_tokens: 5 });
		must(cut.usage?.completion_tokens === 5, `${cut.usage?.completion_tokens} tokens`);
		must(cut.choices[0]?.finish_reason === "length", `finish ${cut.choices[0]?.finish_reason}`);
		const long = await client.chat.completions.create({ ...GREEDY, max_tokens: 200 });
		const text = long.choices[0]?.message.content ?? "";
		const stop = [...text].find((letter) => /[a-z0-9]/.test(letter));
		must(stop !== undefined, "no letter in 200 tokens of noise");
		const stopped = await client.chat.completions.create({ ...GREEDY, max_tokens: 200, stop: [stop] });
		must(!(stopped.choices[0]?.message.content ?? "").includes(stop), "the stop stands in the answer");
		must(stopped.choices[0]?.finish_reason === "stop", `finish ${stopped.choices[0]?.finish_reason}`);
		return `5 tokens; stopped before ${JSON.stringify(stop)}`;
	},

	async "tokens that the server had at hand cost what they should, whole and streamed"(world) {
		if (!world.server.tellsCached) return undefined;
		const { client, accountId } = await world.customer();
		// vLLM keeps whole blocks of 128 tokens.
		const messages = [{ role: "user" as const, content: "the quick fox and the lazy dog, again. ".repeat(12) }];
		const first = await client.chat.completions.create({ ...GREEDY, messages, max_tokens: 5 });
		const second = await assembled(client, { messages, max_tokens: 5 });
		const cached = second.usage?.prompt_tokens_details?.cached_tokens ?? 0;
		must(cached > 0, "nothing was at hand");
		const { spent } = await booked(world, accountId);
		const cost = costOf(first.usage) + costOf(second.usage);
		must(spent === cost, `charged ${spent}, not ${cost}`);
		return `${cached} of ${second.usage?.prompt_tokens} tokens of the prompt`;
	},

	async "max_completion_tokens is kept to, by whatever name the server knows it"(world) {
		const { client } = await world.customer();
		const answer = await client.chat.completions.create({ ...GREEDY, max_completion_tokens: 7 });
		must(answer.usage?.completion_tokens === 7, `${answer.usage?.completion_tokens} tokens`);
		const streamed = await assembled(client, { max_completion_tokens: 7 });
		must(streamed.usage?.completion_tokens === 7, `${streamed.usage?.completion_tokens} tokens, streamed`);
		return "7 tokens, twice";
	},

	async "several choices are all of them paid for, and where the server makes one alone, that is said"(world) {
		const { client, accountId } = await world.customer();
		// vLLM makes one alone of what is greedy.
		const body = { ...GREEDY, temperature: 1, max_tokens: 20, n: 2 };
		if (!world.server.parameters.includes("n")) {
			const { data, response } = await client.chat.completions.create(body).withResponse();
			must(response.headers.get("x-ignored-parameters") === "n", "nothing says that n was ignored");
			must(data.choices.length === 1 && data.usage?.completion_tokens === 20, JSON.stringify(data.usage));
			must((await booked(world, accountId)).spent === costOf(data.usage), "charged otherwise");
			return "ignored, and said so";
		}
		const whole = await client.chat.completions.create(body);
		must(whole.choices.length === 2, `${whole.choices.length} choices`);
		must(whole.usage?.completion_tokens === 40, `${whole.usage?.completion_tokens} tokens`);
		const { usage } = await assembled(client, { temperature: 1, max_tokens: 20, n: 2 });
		must(usage?.completion_tokens === 40, `${usage?.completion_tokens} tokens, streamed`);
		const { spent } = await booked(world, accountId);
		const cost = costOf(whole.usage) + costOf(usage);
		must(spent === cost, `charged ${spent}, not ${cost}`);
		return "2 choices of 20 tokens, twice";
	},

	async "logprobs are the server's, whole and streamed"(world) {
		if (!world.server.parameters.includes("logprobs")) return undefined;
		const { client } = await world.customer();
		const body = { ...GREEDY, max_tokens: 6, logprobs: true, top_logprobs: 2 };
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

	async "a schema is kept to"(world) {
		if (!world.server.parameters.includes("response_format")) return undefined;
		const { client, accountId } = await world.customer();
		const schema = {
			type: "object",
			properties: { fox: { type: "boolean" } },
			required: ["fox"],
			additionalProperties: false,
		};
		const format = { type: "json_schema" as const, json_schema: { name: "fox", strict: true, schema } };
		const body = { ...GREEDY, max_tokens: 400, response_format: format };
		const whole = await client.chat.completions.create(body);
		const text = whole.choices[0]?.message.content ?? "";
		const { fox } = whole.choices[0]?.finish_reason === "stop" ? JSON.parse(text) : { fox: /^\s*\{/.test(text) };
		must(typeof fox === "boolean", text);
		const streamed = await assembled(client, { max_tokens: 400, response_format: format });
		must(streamed.text === text, `${streamed.text}, streamed`);
		const { spent } = await booked(world, accountId);
		must(spent === costOf(whole.usage) + costOf(streamed.usage), `charged ${spent}`);
		return `${JSON.stringify(text.slice(0, 20))}, twice`;
	},

	async "a tool that must be called is called alike, whole and streamed, and its arguments are paid for"(world) {
		if (!world.server.callsTools) return undefined;
		const { client, accountId } = await world.customer();
		const parameters = {
			type: "object",
			properties: { fox: { type: "boolean" } },
			required: ["fox"],
			additionalProperties: false,
		};
		let cost = 0;
		let called = "";
		for (const tool_choice of ["required" as const, { type: "function" as const, function: { name: "pick" } }]) {
			const tools = [{ type: "function" as const, function: { name: "pick", description: "Picks one.", parameters } }];
			const body = { ...GREEDY, max_tokens: 120, tools, tool_choice };
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
			cost += costOf(whole.usage) + costOf(streamed.usage);
			called = told(streamed);
		}
		const { spent } = await booked(world, accountId);
		must(spent === cost, `charged ${spent}, not ${cost}`);
		return `${called}, four times`;
	},

	async "embeddings are the server's, as numbers and packed, and cost what it counted"(world) {
		if (!world.server.embeds) return undefined;
		const { client, accountId } = await world.customer();
		const input = ["the quick fox", "and the lazy dog"];
		let cost = 0;
		for (const encoding_format of ["float", "base64"] as const) {
			const told = async (sdk: OpenAI, model: string) => {
				const { data, usage } = await sdk.embeddings.create({ model, input, encoding_format });
				return { vectors: data.map(({ embedding }) => embedding), tokens: usage.prompt_tokens };
			};
			const [direct, ours] = [await told(world.direct, "tiny"), await told(client, "tiny-vectors")];
			must(JSON.stringify(ours) === JSON.stringify(direct), `others as ${encoding_format}`);
			must(ours.vectors.length === 2, `${ours.vectors.length} vectors`);
			cost += priceOf(ours.tokens, 0);
		}
		const { spent } = await booked(world, accountId);
		must(spent === cost, `charged ${spent}, not ${cost}`);
		return "2 vectors, twice";
	},

	async "connections that the server closes between two requests harm none"(world) {
		const { client, accountId } = await world.customer();
		let sent = 0;
		const send = async () => {
			await client.chat.completions.create({ ...GREEDY, max_tokens: 1 });
			sent += 1;
		};
		for (let nth = 0; nth < 250; nth += 1) await send();
		// Servers and libraries for them keep a connection for 5 s without being told.
		for (const pauseMs of [4_900, 4_980, 5_000, 5_020, 5_100]) {
			await Bun.sleep(pauseMs);
			await send();
		}
		const { rows } = await booked(world, accountId);
		must(rows.length === sent, `${rows.length} rows of ${sent}`);
		return `${sent} requests, five of them behind pauses of some 5 s`;
	},

	async "a server that is killed in the middle ends the stream with an error, what came is paid for, and it serves again"(
		world,
	) {
		const { client, accountId } = await world.customer();
		const stream = await client.chat.completions.create({ ...GREEDY, max_tokens: 3_000, stream: true });
		let events = 0;
		let error: unknown;
		try {
			for await (const _ of stream) {
				events += 1;
				if (events === 20) await world.kill();
			}
		} catch (thrown) {
			error = thrown;
		}
		must(error instanceof OpenAI.APIError, `the stream ended as if whole behind ${events} events: ${error}`);
		const { rows, spent } = await booked(world, accountId);
		must(rows[0]?.ending === "upstream_died", `ending ${rows[0]?.ending}`);
		await world.restart();
		const other = await world.customer();
		await waitFor(
			async () =>
				(await other.client.chat.completions.create({ ...GREEDY, max_tokens: 5 }).catch(() => undefined)) !== undefined,
			"an answer of the server that was started again",
			30_000,
		);
		return `${events} events seen, ${rows[0]?.completion_tokens} tokens charged (${rows[0]?.basis}), ${spent} nano-dollars`;
	},

	async "a prompt that is too long is refused, free of charge, and takes nothing from anybody else"(world) {
		if (!world.server.refusesLongPrompts) return undefined;
		const { client, accountId } = await world.customer();
		const other = await world.customer();
		// Streamed, this server answers it with an empty 200, which cannot be told from a fault of its own: a 502.
		const messages = [{ role: "user" as const, content: "x1 ".repeat(2_500) }];
		const statuses = new Set<number>();
		for (let nth = 0; nth < 8; nth += 1) {
			const body = { model: "tiny", messages, max_tokens: 10, stream: nth % 2 === 1 };
			const error = await client.chat.completions.create(body as OpenAI.ChatCompletionCreateParams).then(
				async (answer) => {
					if (Symbol.asyncIterator in answer) for await (const _ of answer);
					return undefined;
				},
				(thrown) => thrown,
			);
			must(error instanceof OpenAI.APIError, `attempt ${nth} was answered`);
			statuses.add(error.status ?? 0);
		}
		const answer = await other.client.chat.completions.create({ ...GREEDY, max_tokens: 5 });
		must(answer.usage?.completion_tokens === 5, "the other customer was not served");
		const { spent } = await booked(world, accountId);
		must(spent === 0, `charged ${spent}`);
		return `8 refused (${[...statuses].sort().join(", ")}), free of charge; another customer was served`;
	},

	async "a prompt that the server cuts costs what it counted, no more than its context"(world) {
		if (world.server.refusesLongPrompts) return undefined;
		const { client, accountId } = await world.customer();
		const messages = [{ role: "user" as const, content: "x1 ".repeat(2_500) }];
		const answer = await client.chat.completions.create({ model: "tiny", messages, max_tokens: 10 });
		const { spent } = await booked(world, accountId);
		must(spent === costOf(answer.usage), `charged ${spent}`);
		must((answer.usage?.prompt_tokens ?? 0) <= world.contextLength, `${answer.usage?.prompt_tokens} tokens`);
		return `${answer.usage?.prompt_tokens} tokens of some 7,500`;
	},

	async "a health check does not interrupt a running stream"(world) {
		const { client, accountId } = await world.customer();
		const startedMs = performance.now();
		const ours = await assembled(client, { max_tokens: 3_000 });
		const ms = Math.round(performance.now() - startedMs);
		must(
			ours.usage?.completion_tokens !== undefined && ours.usage.completion_tokens > 2_500,
			`${ours.usage?.completion_tokens} tokens of 3,000`,
		);
		must(ours.finish === "length" || ours.finish === "stop", `finish ${ours.finish}`);
		const { rows } = await booked(world, accountId);
		must(rows[0]?.ending === "finished", `ending ${rows[0]?.ending}`);
		return `${ours.usage.completion_tokens} tokens in ${ms} ms, checks due every 500 ms`;
	},

	async "requests that come together are all of them answered, whole"(world) {
		const customers = await Promise.all([world.customer(), world.customer(), world.customer()]);
		const answers = await Promise.all(customers.map(({ client }) => assembled(client, { max_tokens: 300 })));
		const texts = new Set(answers.map(({ text }) => text));
		must(texts.size === 1, `${texts.size} different texts`);
		for (const { accountId } of customers) {
			const { rows } = await booked(world, accountId);
			must(rows[0]?.ending === "finished", `ending ${rows[0]?.ending}`);
		}
		return "3 streams of 300 tokens";
	},

	async "who leaves pays for what came, and the server is free again"(world) {
		const { client, accountId } = await world.customer();
		const leaving = new AbortController();
		const stream = await client.chat.completions.create(
			{ ...GREEDY, max_tokens: 3_000, stream: true },
			{ signal: leaving.signal },
		);
		let events = 0;
		for await (const _ of stream) {
			events += 1;
			if (events === 40) break;
		}
		leaving.abort();
		await waitFor(async () => (await world.service.usage(accountId)).length === 1, "the row of the request", 20_000);
		const { rows, spent } = await booked(world, accountId);
		must(rows[0]?.ending === "client_left", `ending ${rows[0]?.ending}`);
		const next = await client.chat.completions.create({ ...GREEDY, max_tokens: 5 });
		must(next.usage?.completion_tokens === 5, "the next request was not served");
		return `${events} events seen, ${rows[0]?.completion_tokens} tokens charged (${rows[0]?.basis}), ${spent} nano-dollars`;
	},

	async "many at once, some of whom leave, while it is killed twice: a whole answer costs what it says, a failed one nothing"(
		world,
	) {
		const customers = await Promise.all(Array.from({ length: 8 }, () => world.customer()));
		const random = createRandom(20261127);
		const whole = new Map<string, OpenAI.CompletionUsage | undefined>();
		let failed = 0;
		let left = 0;
		const requestOf = (response: Response) => response.headers.get("x-request-id")?.replace("req_", "") ?? "";
		const send = async ({ client }: Customer, tokens: number, way: "whole" | "streamed" | "left") => {
			const body = { ...GREEDY, max_tokens: tokens };
			if (way === "whole") {
				const { data, response } = await client.chat.completions.create(body).withResponse();
				whole.set(requestOf(response), data.usage);
				return;
			}
			const stream = { ...body, stream: true as const, stream_options: { include_usage: true } };
			const { data, response } = await client.chat.completions.create(stream).withResponse();
			let usage: OpenAI.CompletionUsage | undefined;
			let events = 0;
			for await (const event of data) {
				usage = event.usage ?? usage;
				events += 1;
				if (way === "left" && events === 5) {
					left += 1;
					return;
				}
			}
			whole.set(requestOf(response), usage);
		};
		const all = customers.map(async (customer) => {
			for (let served = 0; served < 25; ) {
				const way = random.pick(["whole", "streamed", "streamed", "left"] as const);
				const error = await send(customer, 20 + random.int(0, 179), way).catch((thrown) => thrown);
				must(error === undefined || error instanceof OpenAI.APIError, String(error));
				if (error === undefined) {
					served += 1;
					continue;
				}
				failed += 1;
				await Bun.sleep(200);
			}
		});
		const killing = (async () => {
			for (let nth = 0; nth < 2; nth += 1) {
				const served = whole.size;
				await waitFor(() => whole.size >= served + 20, "twenty answers more", 60_000);
				await world.kill();
				await world.restart();
			}
		})();
		await Promise.all([...all, killing]);
		await world.service.settled();
		for (const { accountId } of customers) {
			await waitFor(
				async () => Number((await world.service.balance(accountId)).held) === 0,
				"nothing to be held",
				20_000,
			);
			const { rows } = await booked(world, accountId);
			for (const row of rows) {
				const id = String(row.request_id).replaceAll("-", "");
				const [charged, usage] = [Number(row.charged_nano_usd), whole.get(id)];
				if (usage !== undefined) must(charged === costOf(usage), `${id}: charged ${charged}, not ${costOf(usage)}`);
				else if (row.first_token_ms === null) must(charged === 0, `${id}: charged ${charged} for no answer`);
				whole.delete(id);
			}
		}
		must(whole.size === 0, `${whole.size} whole answers are on no row`);
		return `${8 * 25 - left} whole answers, ${left} left, ${failed} failed`;
	},

	async "the books hold"(world) {
		await world.service.settled();
		const broken = (await world.service.reconciled()).filter(({ ok }) => !ok);
		must(broken.length === 0, JSON.stringify(broken));
		return "no broken invariant";
	},
};
