import type { ControlEntry, ControlKind } from "../../src/cluster/control-log.ts";
import type { SettledEvent } from "../../src/ledger/event.ts";
import type { GrantReply, GrantRequest, ReturnRequest } from "../../src/ledger/store.ts";
import { NotLive } from "../../src/ledger/store.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";

/** A rule of the schema would be broken: nothing of the statement is carried out. */
export class CheckViolated extends Error {
	override readonly name = "CheckViolated" as const;
}

export interface ModelBudget {
	readonly id: string;
	readonly kind: "account" | "key";
	readonly account: string;
	limit: number | null;
	drawn: number;
	writtenOff: number;
}

export interface ModelLease {
	readonly budget: string;
	readonly instance: string;
	readonly epoch: number;
	granted: number;
	returned: number;
	settled: number;
	state: "open" | "closed";
}

export interface ModelInstance {
	readonly id: string;
	readonly epoch: number;
	state: "joining" | "live" | "left" | "dead";
	leaseUntilMs: number;
	appliedSeq: number;
}

/** A row of `usage_event`; `off` and `charged` may differ from the settlement's if it came late. */
export type ModelUsage = SettledEvent & { readonly instance: string; readonly epoch: number };

interface Operation {
	readonly budget: string;
	readonly instance: string;
	readonly epoch: number;
	readonly kind: "grant" | "return";
	readonly amount: number;
}

/**
 * The tables and SQL functions of the ledger and the cluster, in memory: each method is one statement, carried out whole
 * or not at all. `test/ledger/store-contract.ts` holds it to what Postgres does.
 */
export interface ModelStore {
	readonly budgets: Map<string, ModelBudget>;
	readonly leases: Map<string, ModelLease>;
	readonly operations: Map<string, Operation>;
	readonly usage: Map<string, ModelUsage>;
	readonly reservations: Map<
		string,
		{ account: string; key: string; instance: string; epoch: number; reserved: number }
	>;
	readonly entries: { account: string; kind: string; amount: number; ref: string }[];
	readonly instances: Map<string, ModelInstance>;
	readonly log: ControlEntry[];
	seq(): number;
	append(kind: ControlKind, subject: string, payload: Record<string, unknown>): number;
	join(id: string, ttlMs: number): number;
	goLive(id: string, epoch: number, applied: number, ttlMs: number): number | null;
	heartbeat(id: string, epoch: number, applied: number, ttlMs: number): number | null;
	leave(id: string, epoch: number): void;
	pending(seq: number, graceMs: number): { id: string; epoch: number; leaseUntilMs: number }[];
	grant(id: string, epoch: number, requests: readonly GrantRequest[]): GrantReply[];
	giveBack(id: string, epoch: number, requests: readonly ReturnRequest[]): void;
	flush(id: string, epoch: number, settledJson: string, openJson: string): "ok" | "late";
	settleLate(id: string, epoch: number, eventJson: string): void;
	close(id: string, epoch: number, journalLost: boolean): number;
	/** The sequence number; null if `ref` was booked before; "refused" if the credit does not cover it. */
	book(account: string, kind: string, amount: number, ref: string, forced: boolean): number | null | "refused";
	creditUndelivered(requestId: string, delivered: number): void;
}

export const leaseKey = (budget: string, instance: string, epoch: number) => `${budget}|${instance}|${epoch}`;
export const instanceKey = (id: string, epoch: number) => `${id}|${epoch}`;

/** Postgres' order of text with the C collation. */
const byBudget = (a: { budget: string }, b: { budget: string }) =>
	a.budget < b.budget ? -1 : a.budget > b.budget ? 1 : 0;

export function createModelStore(nowMs: () => number): ModelStore {
	const budgets: ModelStore["budgets"] = new Map();
	const leases: ModelStore["leases"] = new Map();
	const operations: ModelStore["operations"] = new Map();
	const usage: ModelStore["usage"] = new Map();
	const reservations: ModelStore["reservations"] = new Map();
	const entries: ModelStore["entries"] = [];
	const instances: ModelStore["instances"] = new Map();
	const log: ControlEntry[] = [];

	function append(kind: ControlKind, subject: string, payload: Record<string, unknown>): number {
		const seq = log.length + 1;
		log.push({ seq, kind, subject, payload });
		return seq;
	}

	const stateOf = (id: string, epoch: number) => instances.get(instanceKey(id, epoch))?.state;
	const isLive = (lease: ModelLease) => stateOf(lease.instance, lease.epoch) === "live";
	const restOf = (lease: ModelLease) => lease.granted - lease.returned - lease.settled;

	function heldElsewhere(budget: string, id: string, epoch: number): boolean {
		for (const lease of leases.values()) {
			const own = lease.instance === id && lease.epoch === epoch;
			if (lease.budget === budget && !own && lease.state === "open" && isLive(lease) && restOf(lease) > 0) return true;
		}
		return false;
	}

	function grantOne(id: string, epoch: number, request: GrantRequest, budget: ModelBudget, live: number): number {
		const known = operations.get(request.op);
		if (known) return known.amount;
		let amount: number = request.want;
		if (budget.limit !== null) {
			const available = budget.limit - budget.drawn;
			amount = Math.min(request.want, Math.max(request.min, Math.trunc(available / (2 * live))));
			if (amount > available || amount < request.min) amount = 0;
		}
		if (amount > 0 || request.again) {
			operations.set(request.op, { budget: budget.id, instance: id, epoch, kind: "grant", amount });
		}
		if (amount > 0) {
			leaseOf(budget.id, id, epoch).granted += amount;
			budget.drawn += amount;
		}
		return amount;
	}

	function leaseOf(budget: string, instance: string, epoch: number): ModelLease {
		const key = leaseKey(budget, instance, epoch);
		let lease = leases.get(key);
		if (!lease) {
			lease = { budget, instance, epoch, granted: 0, returned: 0, settled: 0, state: "open" };
			leases.set(key, lease);
		}
		return lease;
	}

	function flush(id: string, epoch: number, settledJson: string, openJson: string): "ok" | "late" {
		const state = stateOf(id, epoch);
		if (state === undefined || state === "left") return "late";
		const settled = JSON.parse(settledJson) as SettledEvent[];
		const fresh = new Map<string, SettledEvent>();
		for (const event of settled) {
			checkUsage(event, event.charged);
			if (!usage.has(event.id) && !fresh.has(event.id)) fresh.set(event.id, event);
		}
		const sums = new Map<string, number>();
		for (const event of fresh.values()) {
			for (const budget of [event.account, event.key]) sums.set(budget, (sums.get(budget) ?? 0) + event.charged);
		}
		for (const [budget, sum] of sums) {
			const lease = leases.get(leaseKey(budget, id, epoch));
			if (sum > 0 && lease && restOf(lease) < sum) throw new CheckViolated("lease_covers_settled");
		}
		for (const event of fresh.values()) usage.set(event.id, { ...event, instance: id, epoch });
		for (const [budget, sum] of sums) {
			const lease = leases.get(leaseKey(budget, id, epoch));
			if (lease) lease.settled += sum;
		}
		for (const event of settled) reservations.delete(event.id);
		for (const event of JSON.parse(openJson) as SettledEvent[]) {
			if (usage.has(event.id) || reservations.has(event.id)) continue;
			const { account, key, reserved } = event;
			reservations.set(event.id, { account, key, instance: id, epoch, reserved });
		}
		return "ok";
	}

	function settleLate(id: string, epoch: number, eventJson: string): void {
		const event = JSON.parse(eventJson) as SettledEvent;
		const known = usage.get(event.id);
		if (known && !(known.card === "" && known.charged === 0)) return;
		const touched = [event.account, event.key]
			.map((budget) => budgets.get(budget))
			.filter((budget) => budget !== undefined);
		let fit: number = event.charged;
		for (const { limit, drawn } of touched) if (limit !== null) fit = Math.min(fit, Math.max(0, limit - drawn));
		checkUsage(event, fit);
		const charged = nanoUsd(fit);
		usage.set(event.id, { ...event, charged, off: nanoUsd(event.off + event.charged - fit), instance: id, epoch });
		for (const budget of touched) {
			const lease = leases.get(leaseKey(budget.id, id, epoch)) ?? leaseOf(budget.id, id, epoch);
			if (lease.granted === 0) lease.state = "closed";
			lease.granted += fit;
			lease.settled += fit;
			if (fit > 0) {
				operations.set(`late ${event.id} ${budget.id}`, {
					budget: budget.id,
					instance: id,
					epoch,
					kind: "grant",
					amount: fit,
				});
			}
			budget.drawn += fit;
			if (budget.id === event.account) budget.writtenOff += event.charged - fit;
		}
		reservations.delete(event.id);
	}

	function close(id: string, epoch: number, journalLost: boolean): number {
		const instance = instances.get(instanceKey(id, epoch));
		if (!instance || instance.state === "left") return 0;
		let closed = 0;
		for (const lease of leases.values()) {
			if (lease.instance !== id || lease.epoch !== epoch || lease.state !== "open") continue;
			const budget = budgets.get(lease.budget);
			if (budget) budget.drawn -= restOf(lease);
			lease.state = "closed";
			closed += 1;
		}
		for (const [request, row] of reservations) {
			if (row.instance !== id || row.epoch !== epoch) continue;
			if (journalLost && !usage.has(request)) usage.set(request, lostUsage(request, row));
			reservations.delete(request);
		}
		instance.state = "left";
		return closed;
	}

	function book(
		account: string,
		kind: string,
		amount: number,
		ref: string,
		forced: boolean,
	): number | null | "refused" {
		const budget = budgets.get(account);
		if (budget?.kind !== "account" || budget.limit === null) throw new Error(`no account ${account}`);
		if (entries.some((entry) => entry.ref === ref)) return null;
		if (amount < 0 && budget.limit + amount < budget.drawn && !forced) return "refused";
		entries.push({ account, kind, amount, ref });
		budget.limit += amount;
		return append("budget", account, { lowered: amount < 0 });
	}

	return {
		budgets,
		leases,
		operations,
		usage,
		reservations,
		entries,
		instances,
		log,
		seq: () => log.length,
		append,
		join(id, ttlMs) {
			for (const instance of instances.values()) {
				const abandoned = instance.id === id && instance.state === "joining" && instance.leaseUntilMs < nowMs();
				if (abandoned) instance.state = "left";
			}
			let epoch = 1;
			while (instances.has(instanceKey(id, epoch))) epoch += 1;
			instances.set(instanceKey(id, epoch), {
				id,
				epoch,
				state: "joining",
				leaseUntilMs: nowMs() + ttlMs,
				appliedSeq: 0,
			});
			return epoch;
		},
		goLive(id, epoch, applied, ttlMs) {
			if (log.length !== applied) return log.length;
			const instance = instances.get(instanceKey(id, epoch));
			if (!instance || (instance.state !== "joining" && instance.state !== "live")) return null;
			instance.state = "live";
			instance.appliedSeq = applied;
			instance.leaseUntilMs = nowMs() + ttlMs;
			return applied;
		},
		heartbeat(id, epoch, applied, ttlMs) {
			const instance = instances.get(instanceKey(id, epoch));
			if (instance?.state !== "live") return null;
			instance.appliedSeq = Math.max(instance.appliedSeq, applied);
			instance.leaseUntilMs = nowMs() + ttlMs;
			return log.length;
		},
		leave(id, epoch) {
			const instance = instances.get(instanceKey(id, epoch));
			if (instance?.state === "live" || instance?.state === "joining") instance.state = "dead";
		},
		pending(seq, graceMs) {
			const lagging = () => [...instances.values()].filter((i) => i.state === "live" && i.appliedSeq < seq);
			for (const instance of lagging()) if (instance.leaseUntilMs < nowMs() - graceMs) instance.state = "dead";
			return lagging().map(({ id, epoch, leaseUntilMs }) => ({ id, epoch, leaseUntilMs }));
		},
		grant(id, epoch, requests) {
			if (stateOf(id, epoch) !== "live") throw new NotLive("the instance is not live");
			const live = [...instances.values()].filter((instance) => instance.state === "live").length;
			return [...requests].sort(byBudget).map((request) => {
				const budget = budgets.get(request.budget);
				if (!budget) return { op: request.op, amount: nanoUsd(0), available: nanoUsd(0), elsewhere: false, live };
				const amount = nanoUsd(grantOne(id, epoch, request, budget, live));
				const available = budget.limit === null ? null : nanoUsd(Math.max(0, budget.limit - budget.drawn));
				const elsewhere = live > 1 && heldElsewhere(budget.id, id, epoch);
				return { op: request.op, amount, available, elsewhere, live };
			});
		},
		giveBack(id, epoch, requests) {
			const state = stateOf(id, epoch);
			if (state === undefined || state === "left") return;
			const fresh = [...requests].sort(byBudget).filter((request) => !operations.has(request.op));
			for (const { budget, amount } of fresh) {
				const lease = leases.get(leaseKey(budget, id, epoch));
				if (lease?.state !== "open" || restOf(lease) < amount) throw new CheckViolated("lease_covers_settled");
			}
			for (const { op, budget, amount } of fresh) {
				operations.set(op, { budget, instance: id, epoch, kind: "return", amount });
				leaseOf(budget, id, epoch).returned += amount;
				const row = budgets.get(budget);
				if (row) row.drawn -= amount;
			}
		},
		flush,
		settleLate,
		close,
		book,
		creditUndelivered(requestId, delivered) {
			const event = usage.get(requestId);
			if (event?.basis !== "recovered" || event.charged <= delivered) return;
			book(event.account, "credit_note", event.charged - delivered, `recovered:${requestId}`, false);
		},
	};
}

function checkUsage({ reserved }: SettledEvent, charged: number): void {
	if (charged < 0 || charged > reserved) throw new CheckViolated("usage_charged_within_reserved");
}

function lostUsage(
	id: string,
	row: { account: string; key: string; instance: string; epoch: number; reserved: number },
): ModelUsage {
	const { account, key, instance, epoch, reserved } = row;
	const zero = nanoUsd(0);
	return {
		id,
		account,
		key,
		model: "",
		card: "",
		endpoint: "chat",
		streamed: false,
		reserved: nanoUsd(reserved),
		at: 0,
		charged: zero,
		off: zero,
		basis: "recovered",
		ending: "crashed",
		status: 500,
		prompt: 0,
		cached: 0,
		completion: 0,
		reasoning: 0,
		units: 0,
		replica: null,
		first: null,
		ms: 0,
		instance,
		epoch,
	};
}
