import { assert } from "../base/assert.ts";
import type { Statements } from "../db/statements.ts";
import { formatRatePerMillion, formatRatePerUnit, type PicoUsdPerUnit } from "../money/nano-usd.ts";
import type { Model, RateCard, Rates } from "./model.ts";

/** A stored version of a model's prices. `createdS`: Unix seconds at which the model's first version was stored. */
interface PinnedRateCard extends RateCard {
	readonly createdS: number;
}

/** Maximum number of attempts to store a version. One fails if another instance stores a version at the same time. */
const PIN_ROUNDS_MAX = 20;
const HISTORY_ROWS_MAX = 1000;

interface NewCard extends Rates {
	readonly id: string;
	readonly model: string;
	readonly version: number;
}

/** Price columns of `rate_card`. The database driver returns bigints as strings, so that they stay exact. */
export interface RateCardColumns extends Record<RateName, string> {
	id: string;
	version: number;
}

interface Row extends RateCardColumns {
	model: string;
	created_at: Date;
}

/**
 * Returns a stored version of each model's prices: the newest if its rates are equal, otherwise a new one. If two
 * instances insert at the same time, one reads the version of the other.
 */
export async function pinRateCards(
	statements: Statements,
	specs: readonly { readonly id: string; readonly rates: Rates }[],
): Promise<Map<string, PinnedRateCard>> {
	const pinned = new Map<string, PinnedRateCard>();
	let open = specs;
	for (let round = 0; open.length > 0; round++) {
		assert(round < PIN_ROUNDS_MAX, "versions of rate cards do not settle: instances keep storing different rates");
		const newest = await readNewest(statements, open);
		const missing: NewCard[] = [];
		for (const { id, rates } of open) {
			const found = newest.get(id);
			if (found !== undefined && haveEqualRates(found, rates)) pinned.set(id, found);
			else {
				const version = (found?.version ?? 0) + 1;
				missing.push({ id: `${id}@${version}`, model: id, version, ...buildRates((name) => readRate(rates, name)) });
			}
		}
		// Uses the version that it inserted, even if another instance has stored a newer version since.
		for (const card of missing.length === 0 ? [] : await insert(statements, missing))
			pinned.set(card.model, {
				...parseRateCard(card),
				createdS: newest.get(card.model)?.createdS ?? unixSeconds(card.created_at),
			});
		open = open.filter(({ id }) => !pinned.has(id));
	}
	return pinned;
}

/** All versions of a model's prices, newest first, with the Unix seconds at which they were stored. */
export async function rateCardHistory(statements: Statements, modelId: string) {
	const rows = await statements<Row>`
		select * from rate_card where model = ${modelId} order by version desc limit ${HISTORY_ROWS_MAX}`;
	return rows.map((row) => ({ ...parseRateCard(row), storedS: unixSeconds(row.created_at) }));
}

export function haveEqualRates(a: Rates, b: Rates): boolean {
	return RATE_NAMES.every((name) => readRate(a, name) === readRate(b, name));
}

/** The newest version of each model, with `createdS` of the model's first version. */
async function readNewest(statements: Statements, specs: readonly { readonly id: string }[]) {
	const ids = JSON.stringify(specs.map(({ id }) => id));
	const rows = await statements<Row & { first_created_at: Date }>`
		select distinct on (r.model) r.*, f.created_at as first_created_at
		from rate_card r join rate_card f on f.model = r.model and f.version = 1
		where r.model in (select jsonb_array_elements_text(${ids}::text::jsonb))
		order by r.model, r.version desc`;
	return new Map(
		rows.map((row) => [row.model, { ...parseRateCard(row), createdS: unixSeconds(row.first_created_at) }] as const),
	);
}

/** Returns the inserted rows. All instances insert in the order of model ids, to avoid deadlocks. */
function insert(statements: Statements, cards: readonly NewCard[]): Promise<readonly Row[]> {
	return statements<Row>`
		insert into rate_card (id, model, version, input, cached_input, output, request, image, audio_second, search)
		select id, model, version, input, "cachedInput", output, request, image, "audioSecond", search
		from jsonb_to_recordset(${JSON.stringify(cards)}::text::jsonb) as c(id text, model text, version integer, input bigint,
			"cachedInput" bigint, output bigint, request bigint, image bigint, "audioSecond" bigint, search bigint)
		order by id on conflict do nothing returning *`;
}

export function parseRateCard(row: RateCardColumns): RateCard {
	return { id: row.id, version: row.version, ...buildRates((name) => Number(row[name]) as PicoUsdPerUnit) };
}

const unixSeconds = (date: Date): number => Math.floor(date.getTime() / 1000);

export const RATE_NAMES = ["input", "cached_input", "output", "request", "image", "audio_second", "search"] as const;

export type RateName = (typeof RATE_NAMES)[number];

/** Rates that are written per million tokens; all others are written per unit. */
export const RATES_PER_MILLION: ReadonlySet<RateName> = new Set(["input", "cached_input", "output"]);

/** Rates with the names and units of `tollgate.yaml`. */
export type WrittenRates = Readonly<Record<RateName, string>>;

export const WRITTEN_UNITS = "input, cached_input and output in USD per million tokens, others USD each";

/** Builds rates by calling `rate` with each name as used in `tollgate.yaml` and in the table `rate_card`. */
export const buildRates = (rate: (name: RateName) => PicoUsdPerUnit): Rates => ({
	input: rate("input"),
	cachedInput: rate("cached_input"),
	output: rate("output"),
	request: rate("request"),
	image: rate("image"),
	audioSecond: rate("audio_second"),
	search: rate("search"),
});

export function readRate(rates: Rates, name: RateName): PicoUsdPerUnit {
	if (name === "cached_input") return rates.cachedInput;
	return name === "audio_second" ? rates.audioSecond : rates[name];
}

export function writtenRates(rates: Rates): WrittenRates {
	const written = (name: RateName) =>
		(RATES_PER_MILLION.has(name) ? formatRatePerMillion : formatRatePerUnit)(readRate(rates, name));
	return Object.fromEntries(RATE_NAMES.map((name) => [name, written(name)])) as WrittenRates;
}

export function nonZeroRates(rates: Rates): Partial<WrittenRates> {
	return Object.fromEntries(Object.entries(writtenRates(rates)).filter(([, rate]) => rate !== "0"));
}

/** The highest of these rates in the format of OpenRouter's price list: decimal US dollars per single unit. */
export function openRouterPricing(cards: readonly RateCard[]): Record<string, string> {
	const highest = (rate: (card: RateCard) => PicoUsdPerUnit) =>
		formatRatePerUnit(Math.max(...cards.map(rate)) as PicoUsdPerUnit);
	return {
		prompt: highest((card) => card.input),
		completion: highest((card) => card.output),
		input_cache_read: highest((card) => card.cachedInput),
		request: highest((card) => card.request),
		image: highest((card) => card.image),
		audio_second: highest((card) => card.audioSecond),
		search: highest((card) => card.search),
	};
}

/** Compares two models of a route by price, cheapest first. */
export function byPrice(a: Model, b: Model): number {
	const [priceA, priceB] = [typicalPrice(a), typicalPrice(b)];
	return priceA < priceB ? -1 : priceA > priceB ? 1 : 0;
}

/** Price of 3,000 prompt and 1,000 output tokens, or of one unit for other kinds. Only used to compare models. */
function typicalPrice({ kind, rateCard }: Model): bigint {
	const { input, output, request, audioSecond, image, search } = rateCard;
	const units = { chat: 0, embedding: 0, transcription: audioSecond, image, rerank: search }[kind];
	return 3_000n * BigInt(input) + 1_000n * BigInt(output) + BigInt(request) + BigInt(units);
}
