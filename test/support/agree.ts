import { systemClock } from "../../src/base/clock.ts";
import { bookAdjustment } from "../../src/billing/adjustments.ts";
import { checkTerms, type WrittenTerms } from "../../src/billing/price-agreements.ts";
import { newestControlEntry } from "../../src/cluster/control-log.ts";
import { waitForAllInstances } from "../../src/cluster/wait-for-all-instances.ts";
import { ZERO_USD } from "../../src/money/nano-usd.ts";
import type { TestDatabase } from "./database.ts";

const LIST_PRICE: WrittenTerms = { model: null, discount: null, rates: null, from: null };

interface How {
	readonly key?: string;
	readonly secondLookFrom?: number | null;
	readonly operator?: string;
}

/** Requests prices for an account. Without terms: the list price of every model, from now on. */
export async function askPrice(db: TestDatabase, accountId: string, terms: Partial<WrittenTerms>, how: How = {}) {
	const { key = crypto.randomUUID(), secondLookFrom = null, operator = "usr_one" } = how;
	const price = await checkTerms(db.statements, { ...LIST_PRICE, ...terms }, Date.now());
	const asked = { accountId, amount: ZERO_USD, price, reason: "contract 7", idempotencyKey: key };
	return bookAdjustment(db.tx, { ...asked, operatorId: operator, ip: null }, secondLookFrom);
}

/** Agrees on prices of an account; returns once all instances have applied them. */
export async function agree(db: TestDatabase, accountId: string, terms: Partial<WrittenTerms>) {
	const made = await askPrice(db, accountId, terms);
	const entry = await newestControlEntry(db.statements);
	await waitForAllInstances({ liveness: db.statements, clock: systemClock }, entry, 20_000);
	return made;
}
