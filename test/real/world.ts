/** Inputs of the checks with a real model server, and their results. */
import type OpenAI from "openai";
import { priceOf } from "../support/chat.ts";
import type { TestService } from "../support/service.ts";
import type { RealServer } from "./servers.ts";

export interface RealWorld {
	readonly service: TestService;
	readonly server: RealServer;
	readonly contextLength: number;
	/** The same SDK, connected to the model server directly. */
	readonly direct: OpenAI;
	customer(): Promise<Customer>;
	kill(): Promise<void>;
	restart(): Promise<void>;
}

export interface Customer {
	readonly accountId: string;
	readonly secret: string;
	readonly client: OpenAI;
}

const MESSAGES = [{ role: "user" as const, content: "the quick fox and the lazy dog, again and again." }];
/** Greedy sampling, so that the same prompt gets the same answer. */
export const GREEDY_REQUEST = { model: "tiny", messages: MESSAGES, temperature: 0, seed: 7 };

export function must(condition: unknown, what: string): asserts condition {
	if (!condition) throw new Error(what);
}

/** Usage rows of an account without running requests. Their sum must be its spent amount. */
export async function usageRowsOf({ service }: RealWorld, accountId: string) {
	await service.settled();
	const rows = await service.usage(accountId);
	const spent = Number((await service.balance(accountId)).spent);
	const sum = rows.reduce((total, row) => total + Number(row.charged_nano_usd), 0);
	must(spent === sum, `spent ${spent} is not the sum of the rows, ${sum}`);
	return { rows, spent };
}

/** As `usageRowsOf`; the account must have been charged exactly the cost of these answers. */
export async function chargedRowsOf(
	world: RealWorld,
	accountId: string,
	...usages: readonly (OpenAI.CompletionUsage | undefined)[]
) {
	const found = await usageRowsOf(world, accountId);
	const cost = usages.reduce((sum, usage) => sum + costOf(usage), 0);
	must(found.spent === cost, `charged ${found.spent}, not ${cost}`);
	return found;
}

/** The text or the reasoning, because a model with random weights may never stop reasoning. */
export function textOf(said: { content?: string | null } | undefined): string | undefined {
	const { content, reasoning_content, reasoning } = (said ?? {}) as Record<string, string | null | undefined>;
	return content || reasoning_content || reasoning || undefined;
}

export async function assembledAnswer(client: OpenAI, body: Record<string, unknown>) {
	const stream = await client.chat.completions.create({
		...GREEDY_REQUEST,
		...body,
		stream: true,
		stream_options: { include_usage: true },
	} as OpenAI.ChatCompletionCreateParamsStreaming);
	let text = "";
	let finish: string | null = null;
	let usage: OpenAI.CompletionUsage | undefined;
	for await (const event of stream) {
		text += textOf(event.choices[0]?.delta) ?? "";
		finish = event.choices[0]?.finish_reason ?? finish;
		usage = event.usage ?? usage;
	}
	return { text, finish, usage };
}

/** The cost of an answer by its usage record, with cached tokens at half the price. */
export function costOf(usage: OpenAI.CompletionUsage | undefined): number {
	if (usage === undefined) return 0;
	const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
	return priceOf(usage.prompt_tokens - cached / 2, usage.completion_tokens);
}

/** Each check returns its observation, or undefined if the server lacks the feature; it throws on a failure. */
export type Checks = Readonly<Record<string, (world: RealWorld) => Promise<string | undefined>>>;
