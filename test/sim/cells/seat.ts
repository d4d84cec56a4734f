import type { SettledEvent } from "../../../src/ledger/event.ts";
import { nanoUsd } from "../../../src/money/nano-usd.ts";
import type { Random } from "../../support/random.ts";
import type { AccountState, Cell } from "./cell.ts";

/** How long an instance's lease lasts; it counts from before it asked, and stops a margin earlier. */
export const LEASE_MS = 500;
const MARGIN_MS = 100;

interface Request {
	readonly id: string;
	readonly account: string;
	readonly key: string;
	readonly reserved: number;
}

/** An instance's part in one cell: an epoch, its slices, its journal, and what it knows of keys and accounts. */
export interface Seat {
	readonly cell: Cell;
	readonly id: string;
	readonly epoch: number;
	/** What a crash does not take. */
	readonly journal: { readonly admitted: Map<string, Request>; readonly settled: Map<string, SettledEvent> };
	/** Spends credit; false where it may not or has too little. */
	admit(account: string, key: string, need: number, nowMs: number): boolean;
	draw(account: string, key: string, nowMs: number): void;
	settleOne(): void;
	/** What it has settled goes to the books; an answer that is lost is asked for again. */
	flush(): void;
	giveBack(): void;
	/** Hears of what was appended, and renews its lease. */
	follow(nowMs: number): void;
	crash(): void;
	isDown(): boolean;
	/** Everything that its journal holds, and then the end of the epoch; true once it is over. */
	recover(): boolean;
	/** Asks again for what it asked before, as a message that comes twice. */
	repeat(): void;
	spendable(budget: string): number;
}

export function takeSeat(cell: Cell, id: string, random: Random, nowMs: number): Seat {
	const { store } = cell;
	const epoch = store.join(id, LEASE_MS);
	let applied = store.seq();
	store.goLive(id, epoch, applied, LEASE_MS);
	let gateUntilMs = nowMs + LEASE_MS - MARGIN_MS;
	let down = false;
	const revoked = new Set<string>();
	const accounts = new Map<string, AccountState>();
	const free = new Map<string, number>();
	const open = new Map<string, Request>();
	const unsent = new Map<string, SettledEvent>();
	const journal: Seat["journal"] = { admitted: new Map(), settled: new Map() };
	let lastReturn: Parameters<typeof store.giveBack>[2] = [];
	let lastFlush: readonly SettledEvent[] = [];
	// A row that is read is as new as the log at that moment.
	for (const [key, row] of cell.keys) if (row.revoked) revoked.add(key);
	for (const [account, state] of cell.accounts) accounts.set(account, state);
	const mayAsk = () => ["live", "silent"].includes(store.instances.get(`${id}|${epoch}`)?.state ?? "left");
	const add = (budget: string, amount: number) => free.set(budget, (free.get(budget) ?? 0) + amount);

	function settle({ id: request, account, key, reserved }: Request, charged: number): void {
		const event = settledEvent(request, account, key, reserved, charged);
		journal.settled.set(request, event);
		journal.admitted.delete(request);
		unsent.set(request, event);
		for (const budget of [account, key]) add(budget, reserved - charged);
	}

	return {
		cell,
		id,
		epoch,
		journal,
		admit(account, key, need, now) {
			const known = cell.keys.has(key) && !revoked.has(key) && accounts.get(account) === "serving";
			if (down || now >= gateUntilMs || !known) return false;
			if ([account, key].some((budget) => (free.get(budget) ?? 0) < need)) return false;
			const request = { id: random.uuid(), account, key, reserved: need };
			journal.admitted.set(request.id, request);
			open.set(request.id, request);
			for (const budget of [account, key]) add(budget, -need);
			return true;
		},
		draw(account, key, now) {
			if (down || now >= gateUntilMs || !mayAsk()) return;
			const wish = (budget: string) => ({
				op: random.uuid(),
				budget,
				want: nanoUsd(random.int(1, 60)),
				min: nanoUsd(1),
				again: false,
				ticket: null,
			});
			for (const budget of [account, key]) {
				for (const { amount } of store.grant(id, epoch, [wish(budget)])) add(budget, amount);
			}
		},
		settleOne() {
			const [request] = open.values();
			if (down || request === undefined) return;
			open.delete(request.id);
			settle(request, random.int(0, request.reserved));
		},
		flush() {
			if (down || unsent.size === 0) return;
			lastFlush = [...unsent.values()];
			const { late } = store.flush(id, epoch, lastFlush, "[]");
			if (!late && random.chance(0.8)) unsent.clear();
		},
		giveBack() {
			if (down) return;
			lastReturn = [...free]
				.filter(([, amount]) => amount > 0)
				.map(([budget, amount]) => ({ op: random.uuid(), budget, amount: nanoUsd(amount), recall: null }));
			for (const { budget } of lastReturn) free.set(budget, 0);
			store.giveBack(id, epoch, lastReturn);
		},
		follow(now) {
			if (down) return;
			for (const { kind, subject, payload } of store.log.slice(applied)) {
				if (kind === "key" && payload.revoked === true) revoked.add(subject);
				else if (kind === "key") revoked.delete(subject);
				else if (kind === "account") accounts.set(subject, payload.state as AccountState);
			}
			applied = store.seq();
			if (store.heartbeat(id, epoch, applied, LEASE_MS) !== null) gateUntilMs = now + LEASE_MS - MARGIN_MS;
			else gateUntilMs = 0;
		},
		crash() {
			down = true;
			free.clear();
			open.clear();
			unsent.clear();
		},
		isDown: () => down,
		recover() {
			for (const request of [...journal.admitted.values()]) settle(request, 0);
			store.leave(id, epoch);
			// What is acknowledged already is known by its id.
			store.flush(id, epoch, [...journal.settled.values()], "[]");
			return store.close(id, epoch, false, 1).done;
		},
		repeat() {
			if (down) return;
			store.giveBack(id, epoch, lastReturn);
			store.flush(id, epoch, lastFlush, "[]");
		},
		spendable(budget) {
			const of = (amounts: Iterable<readonly [readonly string[], number]>) =>
				[...amounts].reduce((sum, [budgets, amount]) => sum + (budgets.includes(budget) ? amount : 0), 0);
			const running = [...open.values()].map(({ account, key, reserved }) => [[account, key], reserved] as const);
			const known = [...unsent.values()].filter((event) => !store.usage.has(event.id));
			return (
				(free.get(budget) ?? 0) +
				of(running) +
				of(known.map(({ account, key, charged }) => [[account, key], charged] as const))
			);
		},
	};
}

function settledEvent(id: string, account: string, key: string, reserved: number, charged: number): SettledEvent {
	const [zero, spent] = [nanoUsd(0), nanoUsd(charged)];
	return {
		id,
		account,
		key,
		model: "m",
		card: "rc",
		endpoint: "chat",
		streamed: false,
		reserved: nanoUsd(reserved),
		at: 0,
		charged: spent,
		off: zero,
		basis: "exact",
		ending: "finished",
		status: 200,
		prompt: 0,
		cached: 0,
		completion: 0,
		reasoning: 0,
		units: 0,
		replica: null,
		first: null,
		ms: 0,
	};
}
