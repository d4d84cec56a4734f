import type { ControlEntry } from "../../src/cluster/control-log.ts";
import type { LogPosition } from "../../src/cluster/heartbeat.ts";
import type { SettledEvent } from "../../src/ledger/event.ts";
import { NO_USAGE } from "../../src/ledger/outcome.ts";
import type { FlushResult, GrantReply, GrantRequest, RecallRequest, ReturnRequest } from "../../src/ledger/store.ts";
import { InstanceNotLive } from "../../src/ledger/store.ts";
import { type NanoUsd, nanoUsd } from "../../src/money/nano-usd.ts";
import { DAY_AHEAD_MS, DAY_BEHIND_MS, EPOCH_MS } from "./terms.ts";

/** Thrown where the database schema has a constraint. The statement has no effect. */
export class CheckViolated extends Error {
	override readonly name = "CheckViolated" as const;
}

/** Thrown if a row that the statement needs is locked. The statement has no effect. */
export class RowHeld extends Error {
	override readonly name = "RowHeld" as const;
}

export interface ModelBudget {
	readonly id: string;
	readonly kind: "account" | "key" | "project";
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
	recalled: number;
}

export type ModelState = "joining" | "live" | "silent" | "dead" | "closing" | "left";

/** Newest row of an epoch in `instance_beat`. */
export interface ModelInstance {
	readonly id: string;
	readonly epoch: number;
	beat: number;
	state: ModelState;
	ttlMs: number;
	leaseUntilMs: number;
	appliedSeq: number;
}

export interface ModelRecall {
	readonly budget: string;
	readonly ticket: number;
	readonly instance: string;
	readonly epoch: number;
	readonly atMs: number;
}

/** All leases, also indexed by budget, because the check after each step reads the leases of one budget. */
class LeasesByBudget extends Map<string, ModelLease> {
	readonly #byBudget = new Map<string, Map<string, ModelLease>>();

	of(budget: string): Iterable<ModelLease> {
		return this.#byBudget.get(budget)?.values() ?? [];
	}

	override set(key: string, lease: ModelLease): this {
		const own = this.#byBudget.get(lease.budget) ?? new Map();
		this.#byBudget.set(lease.budget, own.set(key, lease));
		return super.set(key, lease);
	}

	override delete(key: string): boolean {
		const lease = this.get(key);
		if (lease) this.#byBudget.get(lease.budget)?.delete(key);
		return super.delete(key);
	}

	override clear(): void {
		this.#byBudget.clear();
		super.clear();
	}
}

/** A row of `usage_event`. If the settlement was late, `off` and `charged` may differ from those that were sent. */
export type ModelUsage = SettledEvent & { readonly instance: string; readonly epoch: number };

interface Operation {
	readonly budget: string;
	readonly instance: string;
	readonly epoch: number;
	readonly kind: "grant" | "return";
	readonly amount: number;
}

interface ModelReservation {
	readonly account: string;
	readonly key: string;
	readonly instance: string;
	readonly epoch: number;
	readonly reserved: number;
}

export type ModelStore = ReturnType<typeof createModelStore>;

export const leaseKey = (budget: string, instance: string, epoch: number) => `${budget}|${instance}|${epoch}`;
export const instanceKey = (id: string, epoch: number) => `${id}|${epoch}`;

/** Ids of all budgets from which a request reserves. */
export const budgetsOf = ({ account, key, budgets = [] }: Pick<SettledEvent, "account" | "key" | "budgets">) => [
	account,
	key,
	...budgets,
];

/** Milliseconds for which a budget counts as contested after a recall. */
const CONTESTED_MS = 5_000;
const RECALL_MS = 60_000;

/**
 * The tables and SQL functions of the ledger and the cluster, in memory. Each method is one atomic statement.
 * `test/ledger/store-contract.ts` compares this model with Postgres.
 */
export function createModelStore(nowMs: () => number) {
	const budgets = new Map<string, ModelBudget>();
	/** Daily caps by the id of the key or project. */
	const dailyCaps = new Map<string, number | null>();
	const leases = new LeasesByBudget();
	const operations = new Map<string, Operation>();
	const usage = new Map<string, ModelUsage>();
	const reservations = new Map<string, ModelReservation>();
	const entries: { account: string; kind: string; amount: number; ref: string }[] = [];
	const instances = new Map<string, ModelInstance>();
	const log: ControlEntry[] = [];
	/** Locked rows (`budget x`, `lease x|i|1`, `reservation r`). A statement reports items that need one as busy. */
	const held = new Set<string>();
	const recalls: ModelRecall[] = [];
	let tickets = 0;
	/** Number of appends so far, never decreased, so that two entries with the same number differ. */
	let appends = 0;

	function append(kind: ControlEntry["kind"], subject: string, payload: Record<string, unknown>): number {
		const seq = log.length + 1;
		appends += 1;
		log.push({ seq, atMicros: appends, kind, subject, payload });
		return seq;
	}

	const stateOf = (id: string, epoch: number) => instances.get(instanceKey(id, epoch))?.state;
	/** True if idle credit of the lease can come back: its epoch is closing, or its instance has a newer epoch. */
	function mayComeBack({ instance, epoch }: ModelLease): boolean {
		const state = stateOf(instance, epoch);
		if (state === "live" || state === "closing") return true;
		for (let later = epoch + 1; ; later++) {
			const next = stateOf(instance, later);
			if (next === undefined || next === "live" || next === "silent") return next !== undefined;
		}
	}
	const restOf = (lease: ModelLease) => lease.granted - lease.returned - lease.settled;
	const isHeld = (kind: "budget" | "lease" | "reservation", name: string) => held.has(`${kind} ${name}`);

	/** Adds a heartbeat row if the epoch's state is one of `from`. */
	function stand(id: string, epoch: number, from: readonly ModelState[], to: ModelState, ttlMs?: number): boolean {
		const instance = instances.get(instanceKey(id, epoch));
		if (!instance || !from.includes(instance.state)) return false;
		instance.beat += 1;
		instance.state = to;
		if (ttlMs !== undefined) {
			instance.ttlMs = ttlMs;
			instance.leaseUntilMs = nowMs() + ttlMs;
		}
		return true;
	}

	const laggingOf = ({ id, epoch, beat, ttlMs, leaseUntilMs }: ModelInstance) => ({
		id,
		epoch,
		beat,
		ttlMs,
		leaseUntilMs,
	});

	const ownerOf = (budget: string) => /^(.*):day:/.exec(budget)?.[1];
	const dayAt = (atMs: number) => new Date(EPOCH_MS + atMs).toISOString().slice(0, 10);
	const isTimely = (budget: string) => {
		const day = budget.slice(-10);
		return day <= dayAt(nowMs() + DAY_AHEAD_MS) && day >= dayAt(nowMs() - DAY_BEHIND_MS);
	};

	function open(id: string): ModelBudget | "untimely" | undefined {
		const owner = ownerOf(id);
		const whose = owner === undefined ? undefined : budgets.get(owner);
		if (!whose) return undefined;
		const limit = dailyCaps.get(whose.id);
		if (limit === null || limit === undefined || !isTimely(id)) return "untimely";
		const budget: ModelBudget = { id, kind: whose.kind, account: whose.account, limit, drawn: 0, writtenOff: 0 };
		budgets.set(id, budget);
		return budget;
	}

	function grantOne(id: string, epoch: number, request: GrantRequest, live: number): GrantReply {
		const { op } = request;
		const reply = {
			op,
			amount: nanoUsd(0),
			available: nanoUsd(0),
			unanswered: 0,
			lent: null,
			contested: false,
			busy: false,
			untimely: false,
		};
		const budget = budgets.get(request.budget) ?? open(request.budget);
		if (budget === "untimely") {
			if (request.again && !operations.has(op))
				operations.set(op, { budget: request.budget, instance: id, epoch, kind: "grant", amount: 0 });
			return { ...reply, untimely: true };
		}
		if (!budget) return reply;
		const key = leaseKey(budget.id, id, epoch);
		if (isHeld("budget", budget.id) || (leases.has(key) && isHeld("lease", key))) return { ...reply, busy: true };
		const others = recalls.filter(
			(recall) =>
				recall.budget === budget.id &&
				(recall.instance !== id || recall.epoch !== epoch) &&
				recall.atMs > nowMs() - CONTESTED_MS,
		);
		const contested = others.length > 0;
		let amount = operations.get(op)?.amount;
		let untimely = false;
		if (amount === undefined) {
			untimely = ownerOf(budget.id) !== undefined && !isTimely(budget.id);
			amount = untimely ? 0 : request.want;
			if (budget.limit !== null && !untimely) {
				const available = budget.limit - budget.drawn;
				const fair = Math.max(request.min, Math.trunc(available / (2 * live)));
				amount = Math.min(contested ? request.min : request.want, fair);
				if (amount > available || amount < request.min) amount = 0;
			}
			if (amount > 0 || request.again) {
				operations.set(op, { budget: budget.id, instance: id, epoch, kind: "grant", amount });
			}
			if (amount > 0) {
				const lease = leaseOf(budget.id, id, epoch);
				const newest = Math.max(0, ...others.map(({ ticket }) => ticket));
				if (lease.state === "closed") lease.recalled = Math.max(lease.recalled, newest);
				lease.state = "open";
				lease.granted += amount;
				budget.drawn += amount;
			}
		}
		if (budget.limit === null) return { ...reply, amount: nanoUsd(amount), available: null, contested, untimely };
		const available = nanoUsd(Math.max(0, budget.limit - budget.drawn));
		const refusal = amount > 0 ? {} : refusalOf(budget.id, budget.limit, id, epoch, request, available);
		return { ...reply, amount: nanoUsd(amount), available, ...refusal, contested, untimely };
	}

	function refusalOf(
		budget: string,
		limit: number,
		id: string,
		epoch: number,
		{ min, ticket }: GrantRequest,
		available: number,
	): Pick<GrantReply, "unanswered" | "lent"> {
		let elsewhere = 0;
		let unanswered = 0;
		let lent = -limit;
		for (const lease of leases.values()) {
			if (lease.budget === budget) lent += lease.granted;
			const own = lease.instance === id && lease.epoch === epoch;
			if (lease.budget !== budget || own || lease.state !== "open" || !mayComeBack(lease)) continue;
			elsewhere += restOf(lease);
			if (lease.recalled < (ticket ?? Number.POSITIVE_INFINITY)) unanswered += 1;
		}
		if (available + elsewhere < min) return { unanswered: 0, lent: null };
		return { unanswered, lent: unanswered === 0 ? BigInt(lent) : null };
	}

	function leaseOf(budget: string, instance: string, epoch: number): ModelLease {
		const key = leaseKey(budget, instance, epoch);
		let lease = leases.get(key);
		if (!lease) {
			lease = { budget, instance, epoch, granted: 0, returned: 0, settled: 0, state: "closed", recalled: 0 };
			leases.set(key, lease);
		}
		return lease;
	}

	function flush(id: string, epoch: number, settled: readonly SettledEvent[], openJson: string): FlushResult {
		const state = stateOf(id, epoch);
		const busy = new Set<string>();
		if (state === undefined || state === "closing" || state === "left") return { late: true, fresh: 0, busy };
		for (const event of settled) {
			const { id: request, charged } = event;
			for (const budget of charged > 0 ? budgetsOf(event) : []) {
				const lease = leaseKey(budget, id, epoch);
				if (leases.has(lease) && isHeld("lease", lease)) busy.add(budget);
			}
			if (reservations.has(request) && isHeld("reservation", request)) busy.add(request);
		}
		const taken = settled.filter((event) => ![event.id, ...budgetsOf(event)].some((name) => busy.has(name)));
		const fresh = new Map<string, SettledEvent>();
		for (const event of taken) {
			checkUsage(event, event.charged);
			if (!usage.has(event.id) && !fresh.has(event.id)) fresh.set(event.id, event);
		}
		const sums = new Map<string, number>();
		for (const event of fresh.values()) {
			if (event.charged === 0) continue;
			for (const budget of budgetsOf(event)) sums.set(budget, (sums.get(budget) ?? 0) + event.charged);
		}
		for (const [budget, sum] of sums) {
			const lease = leases.get(leaseKey(budget, id, epoch));
			if (lease?.state !== "open" || restOf(lease) < sum) throw new CheckViolated("lease_covers_settled");
		}
		for (const event of fresh.values()) usage.set(event.id, { ...event, instance: id, epoch });
		for (const [budget, sum] of sums) {
			const lease = leaseOf(budget, id, epoch);
			lease.settled += sum;
			if (restOf(lease) === 0) lease.state = "closed";
		}
		for (const event of taken) reservations.delete(event.id);
		for (const event of JSON.parse(openJson) as SettledEvent[]) {
			if (usage.has(event.id) || reservations.has(event.id)) continue;
			const { account, key, reserved } = event;
			reservations.set(event.id, { account, key, instance: id, epoch, reserved });
		}
		return { late: false, fresh: fresh.size, busy };
	}

	function settleLate(id: string, epoch: number, eventJson: string): NanoUsd | undefined {
		const event = JSON.parse(eventJson) as SettledEvent;
		const known = usage.get(event.id);
		if (known && !(known.card === "" && known.charged === 0)) return undefined;
		if (budgetsOf(event).some((budget) => isHeld("budget", budget))) throw new RowHeld("a budget is held");
		const touched = budgetsOf(event)
			.map((budget) => budgets.get(budget))
			.filter((budget) => budget !== undefined);
		// If the server lacks one of the request's budgets, its usage is written off.
		let fit: number = touched.length === budgetsOf(event).length ? event.charged : 0;
		const closing = stateOf(id, epoch) === "closing";
		/** Credit left in the request's own lease of a budget, which closing would return. */
		const ownOf = (budget: string) => {
			const lease = leases.get(leaseKey(budget, id, epoch));
			return closing && lease?.state === "open" ? restOf(lease) : 0;
		};
		for (const { id: budget, limit, drawn } of touched)
			if (limit !== null) fit = Math.min(fit, Math.max(0, limit - drawn) + ownOf(budget));
		checkUsage(event, fit);
		const charged = nanoUsd(fit);
		const off = nanoUsd(event.off + event.charged - fit);
		usage.set(event.id, { ...event, charged, off, instance: id, epoch });
		for (const budget of touched) {
			const lease = leaseOf(budget.id, id, epoch);
			const own = Math.min(fit, ownOf(budget.id));
			lease.granted += fit - own;
			lease.settled += fit;
			if (restOf(lease) === 0) lease.state = "closed";
			if (fit > own) {
				operations.set(`late ${event.id} ${budget.id}`, {
					budget: budget.id,
					instance: id,
					epoch,
					kind: "grant",
					amount: fit - own,
				});
			}
			budget.drawn += fit - own;
			if (budget.id === event.account) budget.writtenOff += event.charged - fit;
		}
		reservations.delete(event.id);
		return off;
	}

	function close(
		id: string,
		epoch: number,
		journalLost: boolean,
		limit: number,
		keep: readonly string[] = [],
	): { closed: number; done: boolean } {
		const state = stateOf(id, epoch);
		if (state === undefined || state === "left") return { closed: 0, done: true };
		stand(id, epoch, ["joining", "live", "silent", "dead"], "closing");
		let closed = 0;
		const own = (row: { instance: string; epoch: number }) => row.instance === id && row.epoch === epoch;
		for (const [key, lease] of leases) {
			if (!own(lease) || lease.state !== "open" || closed === limit) continue;
			if (keep.includes(lease.budget) || isHeld("lease", key) || isHeld("budget", lease.budget)) continue;
			const budget = budgets.get(lease.budget);
			if (budget) budget.drawn -= restOf(lease);
			lease.state = "closed";
			closed += 1;
		}
		if (keep.length > 0) return { closed, done: false };
		let removed = 0;
		for (const [request, row] of reservations) {
			if (!own(row) || removed === limit || isHeld("reservation", request)) continue;
			if (journalLost && !usage.has(request)) usage.set(request, lostUsage(request, row));
			reservations.delete(request);
			removed += 1;
		}
		const done =
			![...leases.values()].some((lease) => own(lease) && lease.state === "open") &&
			![...reservations.values()].some(own);
		if (done) stand(id, epoch, ["closing"], "left");
		return { closed, done };
	}

	/** Copies all tables. The returned function restores the copy. */
	function snapshot(): () => void {
		const maps: Map<string, unknown>[] = [budgets, dailyCaps, leases, operations, usage, reservations, instances];
		const lists: unknown[][] = [entries, log, recalls];
		const copies = structuredClone({ maps: maps.map((map) => [...map]), lists: lists.map((list) => [...list]) });
		const at = store.snapshots;
		store.snapshots += 1;
		return () => {
			store.snapshots = at;
			for (const [place, map] of maps.entries()) {
				map.clear();
				const set = map === leases ? leases.set.bind(leases) : Map.prototype.set.bind(map);
				for (const [key, row] of copies.maps[place] ?? []) set(key, row as never);
			}
			for (const [place, list] of lists.entries()) list.splice(0, list.length, ...(copies.lists[place] ?? []));
		};
	}

	/**
	 * Books an entry. Returns its sequence number; null if `ref` was booked before; "refused" if the credit is too low.
	 */
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

	const store = {
		budgets,
		dailyCaps,
		/** Daily budgets of an owner from which credit can be granted now. */
		daysOf: (owner: string): ModelBudget[] =>
			[...budgets.values()].filter(({ id }) => ownerOf(id) === owner && isTimely(id)),
		leases,
		operations,
		usage,
		reservations,
		entries,
		instances,
		log,
		held,
		recalls,
		/** Identity of the server: system identifier and timeline. */
		server: "1/1",
		seq: () => log.length,
		position: (): LogPosition => ({ seq: log.length, server: `${store.server} ${store.snapshots}` }),
		/** Position of the server, which grows with each snapshot. */
		snapshots: 0,
		snapshot,
		append,
		join(id: string, ttlMs: number, after = 0) {
			for (const instance of instances.values()) {
				if (instance.id === id && instance.leaseUntilMs < nowMs()) stand(id, instance.epoch, ["joining"], "left");
			}
			let epoch = after + 1;
			while (instances.has(instanceKey(id, epoch))) epoch += 1;
			instances.set(instanceKey(id, epoch), {
				id,
				epoch,
				beat: 1,
				state: "joining",
				ttlMs,
				leaseUntilMs: nowMs() + ttlMs,
				appliedSeq: 0,
			});
			return epoch;
		},
		goLive(id: string, epoch: number, applied: number, ttlMs: number) {
			if (log.length !== applied) return log.length;
			if (!stand(id, epoch, ["joining", "live", "silent"], "live", ttlMs)) return null;
			const instance = instances.get(instanceKey(id, epoch));
			if (instance) instance.appliedSeq = Math.max(instance.appliedSeq, applied);
			return applied;
		},
		heartbeat(id: string, epoch: number, applied: number, ttlMs: number): LogPosition | null {
			if (applied > log.length) {
				stand(id, epoch, ["live", "silent"], "dead");
				return null;
			}
			if (!stand(id, epoch, ["live", "silent"], "live", ttlMs)) return null;
			const instance = instances.get(instanceKey(id, epoch));
			if (instance) instance.appliedSeq = Math.max(instance.appliedSeq, applied);
			return store.position();
		},
		leave: (id: string, epoch: number) => void stand(id, epoch, ["joining", "live", "silent", "dead"], "dead"),
		/** Live instances that have not applied the entry. Silent ones among them are fenced off first. */
		lagging(seq: number) {
			if (log[seq - 1]?.seq !== seq) throw new Error("the control log has no such entry");
			const lagging = [...instances.values()].filter(({ appliedSeq }) => appliedSeq < seq);
			for (const { id, epoch } of lagging) stand(id, epoch, ["silent"], "dead");
			return lagging.filter(({ state }) => state === "live").map(laggingOf);
		},
		/** Sets a joining, live or silent epoch to dead, if `beat` is its newest heartbeat. */
		fenceOff(id: string, epoch: number, beat: number) {
			if (instances.get(instanceKey(id, epoch))?.beat === beat) stand(id, epoch, ["joining", "live", "silent"], "dead");
		},
		live: () => [...instances.values()].filter(({ state }) => state === "live").map(laggingOf),
		/** Sets a live epoch to silent, if `beat` is its newest heartbeat. */
		silent(id: string, epoch: number, beat: number) {
			if (instances.get(instanceKey(id, epoch))?.beat === beat) stand(id, epoch, ["live"], "silent");
		},
		grant(id: string, epoch: number, requests: readonly GrantRequest[]) {
			const state = stateOf(id, epoch);
			if (state !== "live" && state !== "silent") throw new InstanceNotLive("the instance is not live");
			const live = Math.max(1, [...instances.values()].filter((instance) => instance.state === "live").length);
			return requests.map((request) => grantOne(id, epoch, request, live));
		},
		giveBack(id: string, epoch: number, requests: readonly ReturnRequest[]): ReadonlySet<string> {
			const busy = new Set<string>();
			const state = stateOf(id, epoch);
			if (state === undefined || state === "closing" || state === "left") return busy;
			const fresh = requests.filter(({ op, budget, amount }) => {
				if (amount > 0 && operations.has(op)) return false;
				const lease = leaseKey(budget, id, epoch);
				const isBusy = (amount > 0 && isHeld("budget", budget)) || (leases.has(lease) && isHeld("lease", lease));
				if (isBusy) busy.add(op);
				return !isBusy;
			});
			const left = new Map<string, number>();
			for (const { budget, amount } of fresh) {
				const lease = leases.get(leaseKey(budget, id, epoch));
				if (amount === 0) continue;
				const rest = (left.get(budget) ?? (lease ? restOf(lease) : 0)) - amount;
				if (lease?.state !== "open" || rest < 0) throw new CheckViolated("lease_covers_settled");
				left.set(budget, rest);
			}
			for (const { op, budget, amount, recall } of fresh) {
				const lease = leases.get(leaseKey(budget, id, epoch));
				if (!lease) continue;
				lease.returned += amount;
				lease.recalled = Math.max(lease.recalled, recall ?? 0);
				if (restOf(lease) === 0) lease.state = "closed";
				if (amount === 0) continue;
				operations.set(op, { budget, instance: id, epoch, kind: "return", amount });
				const row = budgets.get(budget);
				if (row) row.drawn -= amount;
			}
			return busy;
		},
		recall(id: string, epoch: number, asked: readonly string[]) {
			tickets += 1;
			while ((recalls[0]?.atMs ?? Number.POSITIVE_INFINITY) < nowMs() - RECALL_MS) recalls.shift();
			for (const budget of new Set(asked)) {
				recalls.push({ budget, ticket: tickets, instance: id, epoch, atMs: nowMs() });
			}
			return tickets;
		},
		recalled(id: string, epoch: number): RecallRequest[] {
			const newest = new Map<string, number>();
			for (const { budget, ticket, instance, epoch: of } of recalls) {
				const lease = leases.get(leaseKey(budget, id, epoch));
				if ((instance === id && of === epoch) || lease?.state !== "open" || lease.recalled >= ticket) continue;
				newest.set(budget, Math.max(newest.get(budget) ?? 0, ticket));
			}
			return [...newest].map(([budget, ticket]) => ({ budget, ticket }));
		},
		flush,
		settleLate,
		close,
		mayComeBack,
		book,
	};
	return store;
}

function checkUsage({ reserved }: SettledEvent, charged: number): void {
	if (charged < 0 || charged > reserved) throw new CheckViolated("usage_charged_within_reserved");
}

function lostUsage(id: string, { account, key, instance, epoch, reserved }: ModelReservation): ModelUsage {
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
		...NO_USAGE,
		replica: null,
		first: null,
		ms: 0,
		instance,
		epoch,
	};
}
