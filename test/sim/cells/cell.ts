import type { ModelStore } from "../model-store.ts";
import { createModelStore } from "../model-store.ts";

/** Ways to get the move of an account wrong; each must be found. */
export type Mistake =
	| "credit is added before it is taken away"
	| "what was taken away is added at each attempt"
	| "what comes back later stays behind"
	| "nobody waits for the fence"
	| "a revocation goes to the new cell alone"
	| "a revocation goes to the old cell alone"
	| "a copied key overwrites one that is revoked"
	| "a payment is booked where the account is by now";

/**
 * `serving`: requests are admitted by these books. `arriving`: not yet. `leaving`: not any more; what its leases hold
 * comes back and follows.
 */
export type AccountState = "serving" | "arriving" | "leaving";

/** One database: the books of its accounts, and the rows beside them that a move touches. */
export interface Cell {
	readonly name: string;
	readonly store: ModelStore;
	readonly accounts: Map<string, AccountState>;
	/** Keys by id; a revocation that came before its key leaves a row too. */
	readonly keys: Map<string, { revoked: boolean }>;
	/** Moved parts of caps, out of here or in, by reference: what `ledger_entry` is for credit. */
	readonly capMoves: Map<string, { readonly key: string; readonly amount: number }>;
}

export function createCell(name: string, nowMs: () => number): Cell {
	return { name, store: createModelStore(nowMs), accounts: new Map(), keys: new Map(), capMoves: new Map() };
}

export function addBudgets(cell: Cell, account: string, keys: readonly string[], limit: number, cap: number): void {
	const row = (id: string, kind: "account" | "key", of: number) =>
		cell.store.budgets.has(id) || cell.store.budgets.set(id, { id, kind, account, limit: of, drawn: 0, writtenOff: 0 });
	row(account, "account", limit);
	for (const key of keys) row(key, "key", cap);
}

/** Credit by `ledger_book`: once a reference. */
export function bookCredit(cell: Cell, account: string, amount: number, ref: string): boolean {
	return cell.store.book(account, "top_up", amount, ref, false) !== "refused";
}

/** The same of a key's cap. */
export function bookCap(cell: Cell, key: string, amount: number, ref: string): boolean {
	if (cell.capMoves.has(ref)) return true;
	const budget = cell.store.budgets.get(key);
	if (budget === undefined || budget.limit === null || budget.limit + amount < budget.drawn) return false;
	cell.capMoves.set(ref, { key, amount });
	budget.limit += amount;
	cell.store.append("budget", key, { lowered: amount < 0 });
	return true;
}

/** One statement: the row, and the entry by which instances hear of it. */
export function revokeIn(cell: Cell, key: string): number {
	cell.keys.set(key, { revoked: true });
	return cell.store.append("key", key, { revoked: true });
}

export function setAccount(cell: Cell, account: string, state: AccountState): number {
	cell.accounts.set(account, state);
	return cell.store.append("account", account, { state });
}

/** Whether no live instance of the cell acts by anything older; fences off those whose lease is over. */
export function isEverywhere(cell: Cell, seq: number, nowMs: number, graceMs: number): boolean {
	const lagging = cell.store.lagging(seq);
	for (const { id, epoch, beat, leaseUntilMs } of lagging)
		if (leaseUntilMs + graceMs < nowMs) cell.store.fenceOff(id, epoch, beat);
	return cell.store.lagging(seq).length === 0;
}
