/** Checks of irregular endings and of concurrent answers. */
import OpenAI from "openai";
import { createRandom } from "../support/random.ts";
import { waitFor } from "../support/wait.ts";
import { assembledAnswer, type Checks, type Customer, costOf, GREEDY_REQUEST, must, usageRowsOf } from "./world.ts";

export const ENDING_CHECKS: Checks = {
	async "connections that the server closes between requests break no request"(world) {
		const { client, accountId } = await world.customer();
		let sent = 0;
		const send = async () => {
			await client.chat.completions.create({ ...GREEDY_REQUEST, max_tokens: 1 });
			sent += 1;
		};
		for (let nth = 0; nth < 250; nth += 1) await send();
		// Servers and their libraries keep idle connections for 5 s by default, so the pauses are close to it.
		for (const pauseMs of [4_900, 4_980, 5_000, 5_020, 5_100]) {
			await Bun.sleep(pauseMs);
			await send();
		}
		const { rows } = await usageRowsOf(world, accountId);
		must(rows.length === sent, `${rows.length} rows of ${sent}`);
		return `${sent} requests, five of them after pauses of about 5 s`;
	},

	async "killing the server ends a stream with an error and charges the part delivered"(world) {
		const { client, accountId } = await world.customer();
		const stream = await client.chat.completions.create({ ...GREEDY_REQUEST, max_tokens: 3_000, stream: true });
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
		const { rows, spent } = await usageRowsOf(world, accountId);
		must(rows[0]?.ending === "upstream_died", `ending ${rows[0]?.ending}`);
		await world.restart();
		const other = await world.customer();
		await waitFor(
			async () =>
				(await other.client.chat.completions.create({ ...GREEDY_REQUEST, max_tokens: 5 }).catch(() => undefined)) !==
				undefined,
			"an answer of the server that was started again",
			30_000,
		);
		return `${events} events seen, ${rows[0]?.completion_tokens} tokens charged (${rows[0]?.basis}), ${spent} nano-dollars`;
	},

	async "a too long prompt is refused without charge and blocks no other customer"(world) {
		if (!world.server.refusesLongPrompts) return undefined;
		const { client, accountId } = await world.customer();
		const other = await world.customer();
		// The server answers with an empty 200, which the gateway counts as the server's failure: the client gets a 502.
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
		const answer = await other.client.chat.completions.create({ ...GREEDY_REQUEST, max_tokens: 5 });
		must(answer.usage?.completion_tokens === 5, "the other customer was not served");
		const { spent } = await usageRowsOf(world, accountId);
		must(spent === 0, `charged ${spent}`);
		return `8 refused (${[...statuses].sort().join(", ")}), free of charge; another customer was served`;
	},

	async "a too long prompt that the server answers costs at most its context"(world) {
		if (world.server.refusesLongPrompts) return undefined;
		const { client, accountId } = await world.customer();
		const messages = [{ role: "user" as const, content: "x1 ".repeat(2_500) }];
		const answer = await client.chat.completions.create({ model: "tiny", messages, max_tokens: 10 });
		const { spent } = await usageRowsOf(world, accountId);
		must(spent === costOf(answer.usage), `charged ${spent}`);
		must((answer.usage?.prompt_tokens ?? 0) <= world.contextLength, `${answer.usage?.prompt_tokens} tokens`);
		return `${answer.usage?.prompt_tokens} tokens of some 7,500`;
	},

	async "a health check does not interrupt a running stream"(world) {
		const { client, accountId } = await world.customer();
		const startedMs = performance.now();
		const ours = await assembledAnswer(client, { max_tokens: 3_000 });
		const ms = Math.round(performance.now() - startedMs);
		must(
			ours.usage?.completion_tokens !== undefined && ours.usage.completion_tokens > 2_500,
			`${ours.usage?.completion_tokens} tokens of 3,000`,
		);
		must(ours.finish === "length" || ours.finish === "stop", `finish ${ours.finish}`);
		const { rows } = await usageRowsOf(world, accountId);
		must(rows[0]?.ending === "finished", `ending ${rows[0]?.ending}`);
		return `${ours.usage.completion_tokens} tokens in ${ms} ms, checks due every 500 ms`;
	},

	async "concurrent requests all get complete answers"(world) {
		const customers = await Promise.all([world.customer(), world.customer(), world.customer()]);
		const answers = await Promise.all(customers.map(({ client }) => assembledAnswer(client, { max_tokens: 300 })));
		const texts = new Set(answers.map(({ text }) => text));
		must(texts.size === 1, `${texts.size} different texts`);
		for (const { accountId } of customers) {
			const { rows } = await usageRowsOf(world, accountId);
			must(rows[0]?.ending === "finished", `ending ${rows[0]?.ending}`);
		}
		return "3 streams of 300 tokens";
	},

	async "a client that leaves pays for what it received, and the server is free again"(world) {
		const { client, accountId } = await world.customer();
		const leaving = new AbortController();
		const startedMs = performance.now();
		const stream = await client.chat.completions.create(
			{ ...GREEDY_REQUEST, max_tokens: 3_000, stream: true },
			{ signal: leaving.signal },
		);
		let events = 0;
		for await (const _ of stream) {
			events += 1;
			if (events === 40) break;
		}
		const leftMs = Math.round(performance.now() - startedMs);
		leaving.abort();
		await waitFor(async () => (await world.service.usage(accountId)).length === 1, "the row of the request", 20_000);
		const { rows, spent } = await usageRowsOf(world, accountId);
		// On a busy machine, events may still be in transit when the server has finished.
		must(rows[0]?.ending === "client_left", `ending ${rows[0]?.ending}, left behind ${leftMs} ms`);
		const next = await client.chat.completions.create({ ...GREEDY_REQUEST, max_tokens: 5 });
		must(next.usage?.completion_tokens === 5, "the next request was not served");
		return `${events} events seen, ${rows[0]?.completion_tokens} tokens charged (${rows[0]?.basis}), ${spent} nano-dollars`;
	},

	async "under load with two kills, whole answers cost their usage, failed ones nothing"(world) {
		const customers = await Promise.all(Array.from({ length: 8 }, () => world.customer()));
		const random = createRandom(20261127);
		const whole = new Map<string, OpenAI.CompletionUsage | undefined>();
		let failed = 0;
		let left = 0;
		const requestOf = (response: Response) => response.headers.get("x-request-id")?.replace("req_", "") ?? "";
		const send = async ({ client }: Customer, tokens: number, way: "whole" | "streamed" | "left") => {
			const body = { ...GREEDY_REQUEST, max_tokens: tokens };
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
			const { rows } = await usageRowsOf(world, accountId);
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
};
