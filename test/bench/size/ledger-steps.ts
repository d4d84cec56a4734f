/** What the ledger's own statements cost in books of a size, one after the other on the real functions. */
import { newUuid } from "../../../src/base/id.ts";
import { foldUsage } from "../../../src/console/usage/usage-fold.ts";
import type { SettledEvent } from "../../../src/ledger/event.ts";
import { reconcile } from "../../../src/ledger/reconcile.ts";
import type { LedgerStore } from "../../../src/ledger/store.ts";
import type { NanoUsd } from "../../../src/money/nano-usd.ts";
import { nanoUsd } from "../../../src/money/nano-usd.ts";
import { settledEvent } from "../../ledger/fixture.ts";
import { liveInstance } from "../live-instance.ts";
import { accountId, CHARGE_NANO_USD, INSTANCE, keyId } from "./fill.ts";
import type { Measured } from "./measure.ts";

const DRAWN = 1_000;
const PER_STATEMENT = 100;
const CONTESTED = 500;
const SETTLED = 1_000;
const SEAL_ROWS = 2_000;
const STEPS = 20;
const CLOSE_LEASES = 500;
/** Accounts that are drawn on here; the contested ones come behind them. */
const FIRST = 100;

export async function ledgerSteps(measured: Measured): Promise<void> {
	const { database, counter, add } = measured;
	const [first, second] = [
		await liveInstance(database, measured.folder, "bench-1"),
		await liveInstance(database, measured.folder, "bench-2"),
	];
	const [here, there] = [first.store, second.store];
	const accounts = Array.from({ length: DRAWN }, (_, at) => accountId(FIRST + at));
	const budgets = accounts.flatMap((account, at) => [account, keyId(FIRST + at, 1)]);
	add("a first grant of a budget", await counter.cost(() => grant(here, budgets, 1e9), budgets.length));
	const fold = () => foldUsage(database.statements);
	// What came before.
	await fold();
	const flush = () => here.flush(settlements(), "[]");
	add("a settlement, of 1,000 in a flush over 100 accounts", await counter.cost(flush, SETTLED));
	add("the same again, on warm pages", await counter.cost(flush, SETTLED));
	add("a fold of 2,000 settlements into the sums by hour", await counter.cost(fold));
	add("a fold of nothing new", await counter.cost(fold));
	await contested(measured, here, there);
	await first.stop();
	await second.stop();
}

export async function booksSteps({ database, counter, add, say }: Measured): Promise<void> {
	const { statements, sql } = database;
	let books: Awaited<ReturnType<typeof reconcile>> | undefined;
	const check = async () => {
		books = await reconcile(statements);
	};
	add("a check of the books", await counter.cost(check, 1));
	for (const { name, detail, ok } of books?.checks ?? []) if (!ok) say(`does not hold: ${name}: ${detail}`);
	const seal = async () => {
		const [row] = await sql<{ state: string }[]>`select state from books_seal(${SEAL_ROWS}::integer)`;
		return row?.state;
	};
	const sealSome = async () => {
		for (let step = 0; step < STEPS; step++) await seal();
	};
	add("a step of sealing, 2,000 rows", await counter.cost(sealSome, STEPS));
	let steps = 0;
	const sealDay = async () => {
		for (let state: string | undefined = "more"; state === "more"; steps++) state = await seal();
	};
	const rest = await counter.cost(sealDay);
	add("a step of the rest of that day, its seal among them", each(rest, steps));
	const verify = async () => {
		for (let step = 0; step < STEPS; step++) await sql`select state from books_verify(${SEAL_ROWS}::integer)`;
	};
	add("a step of reading sealed rows again, 2,000 rows", await counter.cost(verify, STEPS));
}

/** An epoch that left all of its leases open. */
export async function closeSteps({ database, counter, add, say }: Measured): Promise<void> {
	const { sql } = database;
	const close = async () => {
		const [row] = await sql<
			{ done: boolean }[]
		>`select closed, done from lease_close(${INSTANCE}, 1, false, ${CLOSE_LEASES})`;
		return row?.done ?? false;
	};
	const some = async () => {
		for (let step = 0; step < STEPS; step++) await close();
	};
	add("closing 500 leases of an epoch, at first", await counter.cost(some, STEPS));
	const startedMs = performance.now();
	let steps = 0;
	const all = async () => {
		for (let done = false; !done; steps++) done = await close();
	};
	const rest = await counter.cost(all);
	add("the same, all the rest", each(rest, steps));
	say(
		`closed ${(steps + STEPS) * CLOSE_LEASES} leases in ${((performance.now() - startedMs) / 1000).toFixed(1)} s and ${STEPS} steps before`,
	);
}

function each(cost: Awaited<ReturnType<Measured["counter"]["cost"]>>, times: number) {
	const { ms, statements, pages, walBytes } = cost;
	return { ms: ms / times, statements: statements / times, pages: pages / times, walBytes: walBytes / times };
}

async function grant(store: LedgerStore, budgets: readonly string[], amount: number): Promise<void> {
	for (let at = 0; at < budgets.length; at += PER_STATEMENT) {
		const wishes = budgets.slice(at, at + PER_STATEMENT).map((budget) => wish(budget, nanoUsd(amount), null));
		const replies = await store.grant(wishes);
		if (replies.some(({ amount }) => amount === 0)) throw new Error("a grant was refused");
	}
}

function wish(budget: string, amount: NanoUsd, ticket: number | null) {
	return { op: newUuid(), budget, want: amount, min: amount, again: false, ticket };
}

/** Credit that all lies with another instance: what it takes to hear that, to ask for it and to get it. */
async function contested({ counter, add }: Measured, here: LedgerStore, there: LedgerStore): Promise<void> {
	const budgets = Array.from({ length: CONTESTED }, (_, at) => accountId(FIRST + DRAWN + at));
	const held = new Map<string, NanoUsd>();
	for (const budget of budgets) {
		const tooMuch = nanoUsd(9e15);
		const [refused] = await there.grant([wish(budget, tooMuch, null)]);
		const all = refused?.available ?? nanoUsd(0);
		await there.grant([wish(budget, all, null)]);
		held.set(budget, all);
	}
	const need = nanoUsd(1e9);
	let ticket = 0;
	const inBatches = async (work: (some: string[]) => Promise<unknown>) => {
		for (let at = 0; at < budgets.length; at += PER_STATEMENT) await work(budgets.slice(at, at + PER_STATEMENT));
	};
	const ask = () =>
		inBatches((some) => here.grant(some.map((budget) => wish(budget, need, ticket === 0 ? null : ticket))));
	add(`${CONTESTED} contested budgets: a refusal`, await counter.cost(ask, CONTESTED));
	const recall = async () => {
		ticket = await here.recall(budgets);
	};
	add("a recall", await counter.cost(recall, CONTESTED));
	add("hearing of it, all of them", await counter.cost(() => there.recalls()));
	const giveBack = () =>
		inBatches((some) =>
			there.giveBack(
				some.map((budget) => ({ op: newUuid(), budget, amount: held.get(budget) ?? nanoUsd(0), recall: ticket })),
			),
		);
	add("a return", await counter.cost(giveBack, CONTESTED));
	add("the grant behind it", await counter.cost(ask, CONTESTED));
}

function settlements(): SettledEvent[] {
	const at = Date.now();
	return Array.from({ length: SETTLED }, (_, nth) => {
		const account = FIRST + (nth % 100);
		return settledEvent(accountId(account), keyId(account, 1), CHARGE_NANO_USD, { at });
	});
}
