import type { Cell, Mistake } from "./cell.ts";
import { addBudgets, bookCap, bookCredit, isEverywhere, setAccount } from "./cell.ts";

/**
 * Moves an account from one cell to another while requests run: one step a call, each a statement on one database. All
 * that it knows stands in the two databases, so that it may die between any two steps and begin anew.
 */
export interface Mover {
	/** True once nothing is left to move for now. */
	step(): boolean;
	/** Forgets where it was. */
	restart(): void;
}

type Phase = "announce" | "prepare" | "fence" | "keys" | "drain" | "serve" | "follow";

export function createMover(
	of: { readonly account: string; readonly keys: readonly string[]; readonly from: Cell; readonly to: Cell },
	clock: { nowMs(): number; readonly graceMs: number },
	mistakes: ReadonlySet<Mistake>,
): Mover {
	const { account, keys, from, to } = of;
	let phase: Phase = "announce";
	let seq = 0;
	let attempts = 0;
	/** Of a mistake alone. */
	let owed: (() => boolean) | undefined;

	const availableOf = (budget: string) => {
		const row = from.store.budgets.get(budget);
		return row === undefined || row.limit === null ? 0 : row.limit - row.drawn;
	};

	/** Taken away and not added yet: a step before this one died in between. */
	function unfinished(): (() => void) | undefined {
		for (const { ref, amount } of from.store.entries) {
			const into = ref.replace("out:", "in:");
			if (!ref.startsWith("out:") || to.store.entries.some((entry) => entry.ref === into)) continue;
			return () => void bookCredit(to, account, -amount, into);
		}
		for (const [ref, { key, amount }] of from.capMoves) {
			const into = ref.replace("out:", "in:");
			if (ref.startsWith("out:") && !to.capMoves.has(into)) return () => void bookCap(to, key, -amount, into);
		}
		return undefined;
	}

	/** Moves what is available of one budget; false if there is nothing. */
	function moveSome(): boolean {
		const due = owed;
		owed = undefined;
		if (due?.() === true) return true;
		const again = unfinished();
		if (again !== undefined) {
			again();
			return true;
		}
		const budget = [account, ...keys].find((id) => availableOf(id) > 0);
		if (budget === undefined) return false;
		const amount = availableOf(budget);
		const isAccount = budget === account;
		const taken = isAccount ? from.store.entries.length : from.capMoves.size;
		const ref = `out:${budget}:${taken}`;
		attempts += 1;
		const into = mistakes.has("what was taken away is added at each attempt") ? `in:${attempts}:${taken}` : undefined;
		const book = isAccount ? bookCredit : bookCap;
		if (mistakes.has("credit is added before it is taken away")) {
			book(to, budget, amount, ref.replace("out:", "in:"));
			owed = () => book(from, budget, -amount, ref);
			return true;
		}
		if (into !== undefined) book(to, budget, amount, into);
		// The other half is the next step's.
		book(from, budget, -amount, ref);
		return true;
	}

	function step(): boolean {
		switch (phase) {
			case "announce":
				if (from.accounts.get(account) !== "leaving") seq = setAccount(from, account, "leaving");
				else seq = from.store.seq();
				phase = "prepare";
				return false;
			case "prepare":
				if (!to.accounts.has(account)) {
					addBudgets(to, account, keys, 0, 0);
					setAccount(to, account, "arriving");
				}
				phase = "fence";
				return false;
			case "fence":
				if (mistakes.has("nobody waits for the fence") || isEverywhere(from, seq, clock.nowMs(), clock.graceMs))
					phase = "keys";
				return false;
			case "keys":
				copyKeys();
				phase = "drain";
				return false;
			case "drain":
				if (!moveSome()) phase = "serve";
				return false;
			case "serve":
				if (to.accounts.get(account) !== "serving") setAccount(to, account, "serving");
				phase = "follow";
				return false;
			case "follow":
				return mistakes.has("what comes back later stays behind") || !moveSome();
		}
	}

	/** Two statements: what is read may be old when it is written. */
	let read: { id: string; revoked: boolean }[] | undefined;
	function copyKeys(): void {
		read ??= keys.map((id) => ({ id, revoked: from.keys.get(id)?.revoked ?? true }));
		for (const { id, revoked } of read) {
			const there = to.keys.get(id);
			const keep = there?.revoked === true && !mistakes.has("a copied key overwrites one that is revoked");
			const next = { revoked: keep || revoked };
			to.keys.set(id, next);
			to.store.append("key", id, next);
		}
	}

	return {
		step() {
			if (phase === "keys" && read === undefined) {
				read = keys.map((id) => ({ id, revoked: from.keys.get(id)?.revoked ?? true }));
				return false;
			}
			return step();
		},
		restart() {
			phase = "announce";
			read = undefined;
		},
	};
}
