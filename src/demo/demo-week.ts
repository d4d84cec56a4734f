import { maxCost, NO_QUANTITIES, priceOf } from "../admission/price.ts";
import { assert } from "../base/assert.ts";
import type { Model } from "../catalog/model.ts";
import type { RequestEnding, SettledEvent } from "../ledger/event.ts";
import { NO_USAGE } from "../ledger/outcome.ts";
import type { NanoUsd } from "../money/nano-usd.ts";

export type WeekModel = Pick<Model, "id" | "contextLength" | "maxOutputTokens" | "rateCard">;

/** Options of sample usage by two keys: a product used in the daytime, and a nightly job. */
export interface WeekOptions {
	/** Wall time at which the usage ends. */
	readonly nowMs: number;
	readonly accountId: string;
	readonly webKeyId: string;
	readonly nightKeyId: string;
	/** Chat models, most used first; at least one. */
	readonly models: readonly WeekModel[];
}

const HOUR_MS = 3_600_000;
const WEEK_HOURS = 7 * 24;
const QUARTER_HOURS = 90 * 24;
/** Least age of sample requests, so that lists show the user's own requests first. */
const QUIET_MS = 10 * 60_000;
/** Requests per hour of a working day, from midnight in this machine's time zone. */
const DAY = [1, 1, 0, 0, 0, 1, 3, 7, 14, 20, 22, 21, 15, 19, 22, 21, 17, 12, 8, 6, 5, 4, 3, 2];
const WEEKEND_SHARE = 0.3;
const NIGHT_HOUR = 2;
const NIGHT_REQUESTS = 45;
/** Fraction of requests per model, most used first; the last model gets the remaining requests. */
const MODEL_SHARES = [0.6, 0.3, 0.1];
const FAILED_PERCENT = 0.8;

/** A random number of tokens: `least + spread × chance^power`. A larger power makes small numbers more frequent. */
type Tokens = readonly [least: number, spread: number, power: number];

interface RequestKind {
	readonly promptTokens: Tokens;
	readonly completionTokens: Tokens;
	/** Percentage of requests whose client disconnected. */
	readonly leftPercent: number;
}

/** A streamed chat with some context and a question, answered at reading speed. */
const CHAT: RequestKind = { promptTokens: [300, 3_200, 2], completionTokens: [40, 560, 1.5], leftPercent: 2.5 };
/** A summary of a long text, not streamed. */
const SUMMARY: RequestKind = { promptTokens: [2_200, 1_600, 1], completionTokens: [80, 160, 1], leftPercent: 0 };
/** A question about long documents, streamed. */
const LONG: RequestKind = { promptTokens: [4_000, 56_000, 2], completionTokens: [120, 1_400, 1.5], leftPercent: 3 };
const SEED = 20_261_122;

/** Returns one week of usage at present prices, oldest first. Deterministic for equal options. */
export function demoWeek(options: WeekOptions): SettledEvent[] {
	const chance = createChance(SEED);
	const events = hours(options.nowMs, WEEK_HOURS).flatMap(({ fromMs, expected, hourOfDay }) => {
		const web = Math.round(expected * (0.7 + 0.6 * chance()));
		const night = hourOfDay === NIGHT_HOUR ? NIGHT_REQUESTS : 0;
		return [
			...Array.from({ length: web }, () => request(options, CHAT, fromMs + chance() * HOUR_MS, chance)),
			...Array.from({ length: night }, (_, n) => request(options, SUMMARY, fromMs + n * 20_000, chance)),
		];
	});
	return pastOnly(events, options.nowMs);
}

/**
 * Returns three months of growing usage by one key, oldest first. `busy` scales the usage; `seed` makes accounts
 * differ. The usage ends `quietDays` before now.
 */
export function demoQuarter(
	options: WeekOptions & { readonly busy: number; readonly seed: number; readonly quietDays: number },
): SettledEvent[] {
	const chance = createChance(options.seed);
	const endMs = options.nowMs - options.quietDays * 24 * HOUR_MS;
	const events = hours(endMs, QUARTER_HOURS).flatMap(({ fromMs, expected }, hour) => {
		const growth = 0.4 + (0.8 * hour) / QUARTER_HOURS;
		const web = Math.floor(expected * options.busy * growth * (0.4 + 1.2 * chance()) + chance());
		return Array.from({ length: web }, () => request(options, LONG, fromMs + chance() * HOUR_MS, chance));
	});
	return pastOnly(events, options.nowMs);
}

/** Returns the hours before `endMs` with the expected requests of each, in this machine's time zone. */
function hours(endMs: number, count: number) {
	return Array.from({ length: count }, (_, hour) => {
		const fromMs = endMs - (count - hour) * HOUR_MS;
		const local = new Date(fromMs);
		const share = [0, 6].includes(local.getDay()) ? WEEKEND_SHARE : 1;
		return { fromMs, hourOfDay: local.getHours(), expected: (DAY[local.getHours()] as number) * share };
	});
}

const pastOnly = (events: readonly SettledEvent[], nowMs: number): SettledEvent[] =>
	events.filter(({ at }) => at < nowMs - QUIET_MS).sort((a, b) => a.at - b.at);

function request(
	{ accountId, webKeyId, nightKeyId, models }: WeekOptions,
	kind: RequestKind,
	atMs: number,
	chance: () => number,
): SettledEvent {
	const tokens = ([least, spread, power]: Tokens) => Math.round(least + chance() ** power * spread);
	const dice = chance() * 100;
	const failed = dice < FAILED_PERCENT;
	const left = !failed && dice < FAILED_PERCENT + kind.leftPercent;
	const ending: RequestEnding = failed ? "upstream_failed" : left ? "client_left" : "finished";
	const model = pickModel(models, chance());
	const at = Math.round(atMs);
	const promptTokens = Math.min(tokens(kind.promptTokens), Math.floor(model.contextLength / 2));
	const maxOutputTokens = Math.min(model.maxOutputTokens, model.contextLength - promptTokens);
	const whole = Math.min(tokens(kind.completionTokens), maxOutputTokens);
	const completionTokens = left ? Math.ceil(whole * 0.4) : whole;
	const used = { ...NO_QUANTITIES, promptTokens, completionTokens, requests: 1 };
	const firstMs = 90 + chance() ** 3 * 900;
	return {
		id: Bun.randomUUIDv7("hex", at),
		account: accountId,
		key: kind === SUMMARY ? nightKeyId : webKeyId,
		model: model.id,
		card: model.rateCard.id,
		endpoint: "chat",
		streamed: kind !== SUMMARY,
		reserved: known(maxCost(model.rateCard, { ...used, completionTokens: maxOutputTokens })),
		at,
		charged: failed ? (0 as NanoUsd) : known(priceOf(model.rateCard, used)),
		off: 0 as NanoUsd,
		basis: left ? "estimated" : "exact",
		ending,
		status: failed ? 502 : 200,
		...NO_USAGE,
		promptTokens: failed ? 0 : promptTokens,
		completionTokens: failed ? 0 : completionTokens,
		replica: `${model.id}#0`,
		first: failed ? null : Math.round(firstMs),
		ms: Math.round(failed ? 40 + firstMs : firstMs + completionTokens * (11 + 5 * chance())),
	};
}

function pickModel(models: readonly WeekModel[], dice: number): WeekModel {
	let rest = dice;
	for (const [place, model] of models.entries()) {
		rest -= MODEL_SHARES[place] ?? 0;
		if (rest < 0) return model;
	}
	const last = models.at(-1);
	assert(last !== undefined, "a week needs a model");
	return last;
}

function known(price: NanoUsd | undefined): NanoUsd {
	assert(price !== undefined, "some thousand tokens have a price and a bound");
	return price;
}

/** Returns seeded pseudo-random numbers from 0 to 1 (mulberry32). */
function createChance(seed: number): () => number {
	let state = seed;
	return () => {
		state = (state + 0x6d2b79f5) | 0;
		let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
		mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
		return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
	};
}
