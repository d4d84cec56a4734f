/**
 * Two databases and an account that moves from one to the other under load: instances that crash, hear late and ask
 * twice, a mover that dies between any two steps, payments and revocations meanwhile. The books are the model that
 * `test/ledger/store-contract.ts` holds to PostgreSQL; an entry and its row are one statement there too.
 */
import { createRandom } from "../../support/random.ts";
import { Broken } from "../world.ts";
import type { Cell, Mistake } from "./cell.ts";
import { addBudgets, bookCredit, createCell, isEverywhere, revokeIn, setAccount } from "./cell.ts";
import { createMover } from "./mover.ts";
import type { Seat } from "./seat.ts";
import { LEASE_MS, takeSeat } from "./seat.ts";

const STEPS = 600;
const INSTANCES = 3;
const ACCOUNT = "acc_a";
const KEYS = ["key_a", "key_b", "key_c"] as const;
const PAID = 2_000;
const CAP = 900;
const GRACE_MS = 50;
const STEP_MS_MAX = 20;
const QUIET_STEPS_MAX = 5_000;

export interface CellsResult {
	readonly failure: string | undefined;
	/** How often what could go wrong did, and what was served where. */
	readonly seen: Readonly<Record<string, number>>;
}

/** A revocation under way: whose entries it waits for. */
interface Revocation {
	readonly key: string;
	readonly waits: { readonly cell: Cell; readonly seq: number }[];
	readonly cells: Cell[];
}

export function simulateCells(seed: number, mistakes: ReadonlySet<Mistake> = new Set()): CellsResult {
	const random = createRandom(seed);
	let nowMs = 0;
	const [from, to] = [createCell("from", () => nowMs), createCell("to", () => nowMs)];
	const cells = [from, to];
	const seen: Record<string, number> = {};
	const count = (what: string) => {
		seen[what] = (seen[what] ?? 0) + 1;
	};
	for (const key of KEYS) from.keys.set(key, { revoked: false });
	addBudgets(from, ACCOUNT, KEYS, 0, CAP);
	setAccount(from, ACCOUNT, "serving");
	bookCredit(from, ACCOUNT, PAID, "paid:0");
	let paid = PAID;
	const seats: Seat[] = [];
	const past: Seat[] = [];
	for (let node = 0; node < INSTANCES; node++)
		for (const cell of cells) seats.push(takeSeat(cell, `${cell.name}-${node}`, random, nowMs));
	const mover = createMover(
		{ account: ACCOUNT, keys: KEYS, from, to },
		{ nowMs: () => nowMs, graceMs: GRACE_MS },
		mistakes,
	);
	const revoking: Revocation[] = [];
	const revoked = new Set<string>();
	/** Payments whose answer was lost: they are told of again. */
	const payments: { readonly ref: string; readonly amount: number; readonly home: Cell }[] = [];
	const startAt = random.int(20, STEPS / 2);

	function pay(): void {
		const home = to.accounts.has(ACCOUNT) ? to : from;
		const payment = { ref: `paid:${payments.length + 1}`, amount: random.int(1, 100), home };
		payments.push(payment);
		paid += payment.amount;
		bookCredit(home, ACCOUNT, payment.amount, payment.ref);
	}

	function payAgain(): void {
		if (payments.length === 0) return;
		const { ref, amount, home } = random.pick(payments);
		const now = to.accounts.has(ACCOUNT) ? to : from;
		bookCredit(mistakes.has("a payment is booked where the account is by now") ? now : home, ACCOUNT, amount, ref);
	}

	function revoke(): void {
		const key = random.pick(KEYS);
		const only = mistakes.has("a revocation goes to the new cell alone")
			? [to]
			: mistakes.has("a revocation goes to the old cell alone")
				? [from]
				: to.accounts.get(ACCOUNT) === "serving"
					? // Nobody admits by the old books any more: that is what the move has waited for.
						[to]
					: [...cells];
		revoking.push({ key, waits: [], cells: only });
		count("revocation");
	}

	/** The old cell first: who copies the key reads there, and what he writes does not take a revocation back. */
	function revokeOn(): void {
		const [revocation] = revoking;
		if (revocation === undefined) return;
		const cell = revocation.cells.shift();
		if (cell !== undefined) {
			revocation.waits.push({ cell, seq: revokeIn(cell, revocation.key) });
			return;
		}
		if (!revocation.waits.every(({ cell, seq }) => isEverywhere(cell, seq, nowMs, GRACE_MS))) return;
		revoking.shift();
		revoked.add(revocation.key);
		count("revoked");
	}

	function request(seat: Seat): void {
		const key = random.pick(KEYS);
		if (random.chance(0.5)) seat.draw(ACCOUNT, key, nowMs);
		if (!seat.admit(ACCOUNT, key, random.int(1, 20), nowMs)) return;
		count(`admitted ${seat.cell.name}`);
		if (revoked.has(key)) throw new Broken(`${seat.id} admitted ${key}, whose revocation had returned`);
	}

	function replace(seat: Seat): void {
		if (!seat.isDown()) {
			seat.crash();
			count("crash");
			past.push(seat);
			seats[seats.indexOf(seat)] = takeSeat(seat.cell, seat.id, random, nowMs);
		}
	}

	function step(at: number): void {
		nowMs += random.int(1, STEP_MS_MAX);
		const seat = random.pick(seats);
		const acts: (() => void)[] = [
			() => request(seat),
			() => request(seat),
			() => request(seat),
			() => seat.settleOne(),
			() => seat.settleOne(),
			() => seat.flush(),
			() => seat.follow(nowMs),
			() => {
				// As an announcement reaches them: most of one cell at once.
				for (const other of seats) if (other.cell === seat.cell && random.chance(0.9)) other.follow(nowMs);
			},
			() => seat.giveBack(),
			() => seat.repeat(),
			() => {
				if (random.chance(0.1)) replace(seat);
			},
			() => {
				if (past.length > 0 && random.pick(past).recover()) count("recovered");
			},
			() => {
				if (random.chance(0.2)) pay();
				else payAgain();
			},
			() => {
				if (random.chance(at > startAt - STEPS / 30 ? 0.3 : 0.02)) revoke();
			},
			() => {
				for (let steps = random.int(1, 3); steps > 0; steps--) revokeOn();
			},
			() => {
				if (at < startAt) return;
				if (random.chance(0.15)) {
					mover.restart();
					count("mover died");
				}
				// At times all of it while an instance waits for its next word.
				for (let steps = random.int(1, 12); steps > 0; steps--) mover.step();
			},
			() => {
				// A move and a revocation behind it between two words that an instance of the old cell hears.
				if (at < startAt || random.chance(0.7)) return;
				for (let steps = 0; steps < 40; steps++) mover.step();
				revoke();
				for (let rounds = 0; rounds < 4; rounds++) {
					for (const other of seats) if (other.cell === to) other.follow(nowMs);
					revokeOn();
				}
			},
		];
		random.pick(acts)();
		check();
	}

	function check(): void {
		for (const { store, name } of cells) {
			for (const budget of store.budgets.values()) {
				const leases = [...store.leases.values()].filter((lease) => lease.budget === budget.id);
				const drawn = leases.reduce(
					(sum, lease) => sum + (lease.state === "open" ? lease.granted - lease.returned : lease.settled),
					0,
				);
				if (drawn !== budget.drawn) throw new Broken(`${name}: ${budget.id} has drawn ${budget.drawn}, not ${drawn}`);
				if (budget.limit !== null && budget.drawn > budget.limit)
					throw new Broken(`${name}: ${budget.id} is overdrawn`);
				if (budget.writtenOff > 0) throw new Broken(`${name}: ${budget.id} wrote off`);
			}
		}
		for (const seat of seats) {
			for (const budget of [ACCOUNT, ...KEYS]) {
				const lease = seat.cell.store.leases.get(`${budget}|${seat.id}|${seat.epoch}`);
				const rest = lease === undefined ? 0 : lease.granted - lease.returned - lease.settled;
				if (seat.spendable(budget) > rest)
					throw new Broken(`${seat.id} may spend more of ${budget} than it was granted`);
			}
		}
		if (limits(ACCOUNT) > paid) throw new Broken(`credit of ${limits(ACCOUNT)} was made of ${paid}`);
		for (const key of KEYS) if (limits(key) > CAP) throw new Broken(`the cap of ${key} came to ${limits(key)}`);
	}

	/** Of a budget in both cells; what is on its way between them is in none. */
	function limits(budget: string): number {
		return cells.reduce((sum, { store }) => sum + (store.budgets.get(budget)?.limit ?? 0), 0);
	}

	function quiet(): void {
		for (const seat of seats) {
			for (let left = seat.journal.admitted.size; left > 0; left--) seat.settleOne();
			seat.crash();
			past.push(seat);
		}
		for (let done = 0; done < QUIET_STEPS_MAX; done++) {
			nowMs += LEASE_MS;
			for (const seat of past) seat.recover();
			revokeOn();
			if (mover.step() && revoking.length === 0 && past.every((seat) => seat.recover())) return;
		}
		throw new Broken("the move does not end");
	}

	/** Everything is back: what was paid is spent or to be had, in one place. */
	function checkEnd(): void {
		check();
		const settled = new Map<string, number>();
		for (const { journal, cell } of past) {
			for (const { id, charged } of journal.settled.values()) {
				settled.set(id, charged);
				if (cell.store.usage.get(id)?.charged !== charged) throw new Broken(`settlement ${id} is lost`);
				if (cells.some((other) => other !== cell && other.store.usage.has(id)))
					throw new Broken(`${id} is in both cells`);
			}
		}
		const recorded = cells.reduce((sum, { store }) => sum + store.usage.size, 0);
		if (recorded !== settled.size) throw new Broken(`${recorded} requests are recorded, ${settled.size} were settled`);
		const spent = [...settled.values()].reduce((sum, charged) => sum + charged, 0);
		for (const budget of [ACCOUNT, ...KEYS]) {
			const old = from.store.budgets.get(budget);
			if (old !== undefined && old.limit !== old.drawn) throw new Broken(`${budget} left something behind`);
		}
		const left = (to.store.budgets.get(ACCOUNT)?.limit ?? 0) - (to.store.budgets.get(ACCOUNT)?.drawn ?? 0);
		if (spent + left !== paid) throw new Broken(`of ${paid} paid in, ${spent} were spent and ${left} are left`);
		for (const key of KEYS) if (limits(key) !== CAP) throw new Broken(`the cap of ${key} came to ${limits(key)}`);
		for (const key of revoked) if (to.keys.get(key)?.revoked !== true) throw new Broken(`${key} is valid again`);
	}

	try {
		for (let at = 0; at < STEPS; at++) step(at);
		quiet();
		checkEnd();
		return { failure: undefined, seen };
	} catch (error) {
		if (error instanceof Broken || error instanceof Error) return { failure: error.message, seen };
		throw error;
	}
}
