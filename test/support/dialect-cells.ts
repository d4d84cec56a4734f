import { beforeAll, describe, expect, test } from "bun:test";
import type { DialectName } from "../../src/catalog/model.ts";
import type { Balance } from "../../src/ledger/balance.ts";
import { ask, priceOf } from "./chat.ts";
import { LONG } from "./long-form.ts";
import { eventsOf, parseRaw, type RawClient } from "./raw-http.ts";
import { chatModel, type TestService, withService } from "./service.ts";
import type { Reply } from "./upstream-reply.ts";
import { reply, type SeenRequest, type UpstreamServer, withUpstream } from "./upstream-server.ts";
import { CHAT_DIALECTS, SINGLE_CHOICE } from "./upstream-wire.ts";

/**
 * A matrix of tests: each behaviour of the upstream or the client, in every chat dialect, through a complete service.
 * The six dialects run concurrently, each with a different customer; then the test checks each result.
 */

/** Dialects whose servers report usage with every event. In others the usage of a broken answer is estimated. */
const RUNNING_USAGE: readonly DialectName[] = ["vllm", "sglang"];
/** Names, paths, errors and fields of upstreams that clients must not see. */
const FOREIGN =
	/served-name|upstream-model|chatcmpl-upstream|secret|gguf|\/srv|timings|__verbose|token_ids|matched_stop|lie_/;
const CREDIT = 100e9;
const BREAK_OFF_MS = 1_000;

const QUESTION = "one two three";
/** Tokens of the question: as the upstream counts them, and as estimated (17 bytes, plus 4 per message). */
export const PROMPT_TOKENS = 6;
export const PROMPT_TOKENS_ESTIMATED = 9;

export interface CellContext {
	readonly dialect: DialectName;
	readonly service: TestService;
	readonly upstream: UpstreamServer;
	readonly secret: string;
	/** Sends the request's bytes with additional fields; closes the connection after the response. */
	send(more: Record<string, unknown>, ...answers: Reply[]): Promise<{ client: RawClient; nth: number }>;
}

type Row = Record<string, string | number | null>;

export interface Cell<Acted> {
	readonly dialect: DialectName;
	readonly acted: Acted;
	readonly rows: readonly Row[];
	readonly balance: Balance;
}

export interface Charge {
	readonly ending: string;
	readonly status: number;
	readonly basis: "exact" | "estimated";
	readonly prompt: number;
	readonly completion: number;
	readonly nanoUsd: number;
}

/**
 * Creates the service of all tests of a file; await it once. With `ahead`, cells that wait for seconds run one after
 * the other from the start, parallel to the cells of another matrix.
 */
export async function dialectMatrix(limits: string, { ahead = false } = {}) {
	const upstreams = new Map(CHAT_DIALECTS.map((dialect) => [dialect, withUpstream(dialect)]));
	const models = [...upstreams].map(([dialect, { url }]) => {
		const yaml = chatModel({ id: `model-${dialect}`, url, dialect });
		return SINGLE_CHOICE.has(dialect) ? yaml.replace(" n,", "") : yaml;
	});
	const service = await withService({ models: models.join("\n"), limits });

	async function placeOf(dialect: DialectName): Promise<CellContext & { accountId: string }> {
		const upstream = upstreams.get(dialect) as UpstreamServer;
		const { accountId, secret } = await service.customer();
		return {
			dialect,
			service,
			upstream,
			secret,
			accountId,
			async send(more, ...answers) {
				upstream.next(...answers);
				const nth = upstream.requests.length + 1;
				const body = ask(QUESTION, { model: `model-${dialect}`, ...more });
				return { client: await service.openChat(secret, body, { connection: "close" }), nth };
			},
		};
	}

	/** A success follows each failure: otherwise the circuit breaker would exclude a replica that only fails. */
	async function serveOn({ send }: CellContext): Promise<void> {
		const { client } = await send({}, reply().text("fine"));
		expect(parseRaw(await client.ended()).status).toBe(200);
	}

	let lastAhead: Promise<unknown> = Promise.resolve();

	return {
		/**
		 * Adds a test per dialect. Without LONG a cell with `half` gets every second dialect: two cells that test code
		 * common to all dialects share the dialects.
		 */
		cell<Acted>(
			name: string,
			act: (place: CellContext) => Promise<Acted>,
			check: (cell: Cell<Acted>) => void,
			half?: 0 | 1,
		) {
			const dialects = CHAT_DIALECTS.filter((_, at) => LONG || half === undefined || at % 2 === half);

			async function run() {
				const ends = await Promise.allSettled(
					dialects.map(async (dialect) => {
						const place = await placeOf(dialect);
						const acted = await act(place);
						await service.settled();
						const rows = await service.usage(place.accountId);
						const balance = await service.balance(place.accountId);
						await serveOn(place);
						return { dialect, acted, rows, balance };
					}),
				);
				await service.settled();
				return { ends, broken: (await service.reconciled()).filter(({ ok }) => !ok) };
			}

			const begun = ahead ? lastAhead.then(run) : undefined;
			// An error is not handled here, because the tests of these cells report it.
			if (begun !== undefined) lastAhead = begun.catch(() => {});
			describe(name, () => {
				let done: Awaited<ReturnType<typeof run>>;
				beforeAll(async () => {
					done = await (begun ?? run());
				}, 60_000);
				test.each(dialects)("%s", (dialect) => {
					const end = done.ends[dialects.indexOf(dialect)];
					if (end?.status !== "fulfilled") throw end?.reason;
					check(end.value);
					expect(done.broken).toEqual([]);
				});
			});
		},
	};
}

type Counted = Pick<Charge, "basis" | "prompt" | "completion" | "nanoUsd">;
export const exact = (completion: number): Counted => countedFrom("exact", PROMPT_TOKENS, completion);
export const estimated = (completion: number): Counted => countedFrom("estimated", PROMPT_TOKENS_ESTIMATED, completion);
const countedFrom = (basis: Charge["basis"], prompt: number, completion: number): Counted => ({
	...{ basis, prompt, completion, nanoUsd: priceOf(prompt, completion) },
});

/** Charge of a broken answer: the upstream's count if it reports usage with each event, else the estimate. */
export function deliveredCharge(dialect: DialectName, tokens: { counted: number; estimated: number }): Counted {
	return RUNNING_USAGE.includes(dialect) ? exact(tokens.counted) : estimated(tokens.estimated);
}

export function expectCharge({ rows, balance }: Cell<unknown>, charge: Charge): void {
	expect(rows).toHaveLength(1);
	expect(rows[0]).toMatchObject({
		ending: charge.ending,
		status: charge.status,
		basis: charge.basis,
		prompt_tokens: charge.prompt,
		completion_tokens: charge.completion,
		charged_nano_usd: String(charge.nanoUsd),
		written_off_nano_usd: "0",
	});
	const left = CREDIT - charge.nanoUsd;
	expect({ ...balance } as unknown).toMatchObject({ balance: left, available: left, held: 0, spent: charge.nanoUsd });
}

export function expectFree(cell: Cell<unknown>, ending: string, status: number): void {
	expectCharge(cell, { ending, status, basis: "exact", prompt: 0, completion: 0, nanoUsd: 0 });
}

type Json = Record<string, unknown>;

/** Returns the JSON events of a complete stream, after checks of its form, headers, single usage record and end. */
export function streamedEvents(cell: Cell<string>, includeUsage: boolean): Json[] {
	const { status, headers, body } = parseRaw(cell.acted);
	expect(status).toBe(200);
	expect(headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
	expect(body).not.toMatch(FOREIGN);
	const all = eventsOf(body).filter((event) => event !== ":");
	expect(all.pop()).toBe("[DONE]");
	const events = all as Json[];
	const row = cell.rows[0] as Row;
	for (const event of events) {
		if (event.error !== undefined) continue;
		expect(event).toMatchObject({
			id: `chatcmpl-${String(row.request_id).replaceAll("-", "")}`,
			object: "chat.completion.chunk",
			created: events[0]?.created as number,
			model: `model-${cell.dialect}`,
		});
		if (includeUsage) expect(event).toHaveProperty("usage");
	}
	expect(Number.isInteger(events[0]?.created)).toBe(true);
	expect(events.filter(({ usage }) => typeof usage === "object" && usage !== null)).toEqual([events.at(-1) as Json]);
	expectUsageOf(events.at(-1) as Json, row);
	return events;
}

/** Expects the answer's usage record to equal the usage row, to the nano-dollar. */
export function expectUsageOf({ usage }: Json, row: Row): void {
	expect(usage).toEqual({
		prompt_tokens: row.prompt_tokens,
		completion_tokens: row.completion_tokens,
		total_tokens: Number(row.prompt_tokens) + Number(row.completion_tokens),
		prompt_tokens_details: { cached_tokens: row.cached_tokens },
		completion_tokens_details: { reasoning_tokens: row.reasoning_tokens },
		cost: Number(row.charged_nano_usd) / 1e9,
		basis: row.basis,
	});
}

export function wholeAnswer(cell: Cell<string>, status: number): Json {
	const answer = parseRaw(cell.acted);
	expect(answer.status).toBe(status);
	expect(answer.headers.get("content-type")).toBe("application/json");
	expect(answer.body).not.toMatch(FOREIGN);
	return JSON.parse(answer.body);
}

/** Disconnects the client when `ready` resolves. Returns the upstream's request, which must end within a second. */
export async function disconnectWhen(
	{ upstream, send }: CellContext,
	more: Json,
	answer: Reply,
	ready: (client: RawClient, request: SeenRequest) => Promise<unknown>,
): Promise<{ request: SeenRequest; text: string }> {
	const { client, nth } = await send(more, answer);
	const request = await upstream.waitForRequest(nth);
	await ready(client, request);
	const text = client.text();
	const leftAtMs = performance.now();
	client.leave();
	await upstream.waitForAbort(nth);
	expect((request.abortedAtMs as number) - leftAtMs).toBeLessThan(BREAK_OFF_MS);
	return { request, text };
}
