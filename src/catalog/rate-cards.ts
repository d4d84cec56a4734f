import { and, desc, eq, inArray } from "drizzle-orm";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { assert } from "../base/assert.ts";
import type { PicoUsdPerUnit } from "../money/nano-usd.ts";
import type { RateCard, Rates } from "./model.ts";
import { rateCardTable } from "./rate-card.sql.ts";

/** A version of a model's prices, with the time that the model was first seen (Unix seconds). */
export interface PinnedRateCard extends RateCard {
	readonly createdS: number;
}

/** Each failed round means that another instance stored a version in between. */
const PIN_ROUNDS_MAX = 20;
const HISTORY_ROWS_MAX = 1000;

const RATE_FIELDS = ["input", "cachedInput", "output", "request", "image", "audioSecond", "search"] as const;

type Row = typeof rateCardTable.$inferSelect;

/**
 * The stored version of each model's prices: the newest one if its rates are those of `specs`, else a new one.
 * Instances that start together agree on one version: `(model, version)` is unique, and who loses an insert reads again.
 */
export async function pinRateCards(
	tx: PostgresJsDatabase,
	specs: readonly { readonly id: string; readonly rates: Rates }[],
): Promise<Map<string, PinnedRateCard>> {
	const pinned = new Map<string, PinnedRateCard>();
	let open = specs;
	for (let round = 0; open.length > 0; round++) {
		assert(round < PIN_ROUNDS_MAX, "versions of rate cards do not settle: instances keep storing different rates");
		const newest = await readNewest(tx, open);
		const created = await readCreated(tx, open);
		const missing: (typeof rateCardTable.$inferInsert)[] = [];
		for (const { id, rates } of open) {
			const row = newest.get(id);
			const createdAt = created.get(id);
			if (row !== undefined && createdAt !== undefined && haveEqualRates(row, rates)) {
				pinned.set(id, { ...rateCardOf(row), createdS: unixSeconds(createdAt) });
			} else {
				const version = (row?.version ?? 0) + 1;
				missing.push({ id: `${id}@${version}`, model: id, version, ...ratesOf(rates) });
			}
		}
		// One order for all instances: rows inserted in different orders would wait for each other in a circle.
		missing.sort((a, b) => (a.id < b.id ? -1 : 1));
		if (missing.length > 0) await tx.insert(rateCardTable).values(missing).onConflictDoNothing();
		open = open.filter(({ id }) => !pinned.has(id));
	}
	return pinned;
}

/** All versions of a model's prices with the time each was stored (Unix seconds), newest first. */
export async function rateCardHistory(
	tx: PostgresJsDatabase,
	modelId: string,
): Promise<(RateCard & { readonly storedS: number })[]> {
	const rows = await tx
		.select()
		.from(rateCardTable)
		.where(eq(rateCardTable.model, modelId))
		.orderBy(desc(rateCardTable.version))
		.limit(HISTORY_ROWS_MAX);
	return rows.map((row) => ({ ...rateCardOf(row), storedS: unixSeconds(row.createdAt) }));
}

export function haveEqualRates(a: Rates | Row, b: Rates): boolean {
	return RATE_FIELDS.every((field) => a[field] === b[field]);
}

async function readNewest(
	tx: PostgresJsDatabase,
	specs: readonly { readonly id: string }[],
): Promise<Map<string, Row>> {
	const rows = await tx
		.selectDistinctOn([rateCardTable.model])
		.from(rateCardTable)
		.where(inArray(rateCardTable.model, idsOf(specs)))
		.orderBy(rateCardTable.model, desc(rateCardTable.version));
	return new Map(rows.map((row) => [row.model, row]));
}

/** A model is as old as its first version. */
async function readCreated(
	tx: PostgresJsDatabase,
	specs: readonly { readonly id: string }[],
): Promise<Map<string, Date>> {
	const rows = await tx
		.select({ model: rateCardTable.model, createdAt: rateCardTable.createdAt })
		.from(rateCardTable)
		.where(and(inArray(rateCardTable.model, idsOf(specs)), eq(rateCardTable.version, 1)));
	return new Map(rows.map((row) => [row.model, row.createdAt]));
}

function idsOf(specs: readonly { readonly id: string }[]): string[] {
	return specs.map(({ id }) => id);
}

function ratesOf(rates: Rates): Rates {
	const { input, cachedInput, output, request, image, audioSecond, search } = rates;
	return { input, cachedInput, output, request, image, audioSecond, search };
}

function rateCardOf(row: Row): RateCard {
	const rate = (value: number) => value as PicoUsdPerUnit;
	return {
		id: row.id,
		version: row.version,
		input: rate(row.input),
		cachedInput: rate(row.cachedInput),
		output: rate(row.output),
		request: rate(row.request),
		image: rate(row.image),
		audioSecond: rate(row.audioSecond),
		search: rate(row.search),
	};
}

function unixSeconds(date: Date): number {
	return Math.floor(date.getTime() / 1000);
}
