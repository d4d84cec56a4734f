import type { Ledger } from "../../src/ledger/ledger.ts";
import { createRandom } from "../support/random.ts";
import type { SimDatabase } from "./database.ts";
import { createSimDisk, type SimDisk } from "./disk.ts";
import { watchLowerings } from "./lowered.ts";
import { createModelDatabase } from "./model-database.ts";
import { budgetsOf, createModelStore, leaseKey } from "./model-store.ts";
import type { Mutant } from "./mutants.ts";
import type { SimProcess } from "./process.ts";
import { createSimServer } from "./server.ts";
import { createTimeline } from "./timeline.ts";

/** Thrown when an invariant is violated, which means that the seed has found a fault. */
export class Violation extends Error {
	override readonly name = "Broken" as const;
}

/** What the simulation itself knows of a request, independently of the tested code. */
export interface RequestRecord {
	readonly id: string;
	readonly host: Host;
	readonly process: SimProcess;
	readonly account: string;
	readonly key: string;
	readonly amount: number;
	/** Output that the upstream would generate in total, as its cost. */
	readonly cost: number;
	/** Budgets at the request's admission other than those of account and key. */
	budgets: readonly string[] | undefined;
	epoch: number;
	admitted: boolean;
	delivered: number;
	bound: number;
	/** Delivered output according to the journal. */
	known: number;
	settled: { charged: number; off: number } | undefined;
	acknowledged: boolean;
	admitAppended: boolean;
	settleAppended: boolean;
	/** True if the simulation damaged the request's records or lost its disk, so that checks ignore it. */
	excused: boolean;
	ended: boolean;
	/** True if a failover may have lost the request's records. */
	forgotten: boolean;
}

/** One machine with a disk and an identity, which outlive its processes. */
export interface Host {
	readonly id: string;
	readonly disk: SimDisk;
	process: SimProcess | undefined;
	/** Other processes of the host: stopped ones that were replaced, or draining ones. */
	readonly others: Set<SimProcess>;
	/** True if the disk is lost and the loss has not been attested yet. */
	lost: boolean;
	/** Last time at which the disk was full. The host then deleted journals that it kept for a restore of Postgres. */
	fullUntilMs: number;
}

export interface SimKey {
	readonly id: string;
	readonly account: string;
	/** Project of the key, in worlds with projects. */
	readonly project: string | null;
	revoked: boolean;
	readonly limits: KeyLimitsOf;
}

/** A request and the time at which it was admitted. */
export interface Admission {
	readonly atMs: number;
	readonly record: RequestRecord;
}

/** Requests and tokens that a key may send a minute, and requests at once; null: no limit. */
export interface KeyLimitsOf {
	readonly requestsPerMinute: number | null;
	readonly concurrencyMax: number | null;
	readonly tokensPerMinute: number | null;
}

export const NO_LIMITS: KeyLimitsOf = { requestsPerMinute: null, concurrencyMax: null, tokensPerMinute: null };

/** Moments at which a revocation could most easily be missed. */
export type DelicateMoment = "renewal" | "go live" | "cut off";

export interface PendingDraw {
	readonly process: SimProcess;
	readonly budgets: readonly string[];
	readonly startedMs: number;
	readonly least: Map<string, number>;
}

export interface WorldTerms {
	readonly trafficMs: number;
	/** Milliseconds until all faults are repaired: leases end, requests end, processes restart. */
	readonly restMs: number;
	/** True if some keys have rate limits, of which instances have shares. */
	readonly isLimited: boolean;
	/** True if some of each account's keys have a third budget, their project's. */
	readonly hasProjects: boolean;
	/** True if limits are lowered again and again while many answers are slow, so that both overlap. */
	readonly hasCuts: boolean;
	/** True if the server once goes back to an earlier state. */
	readonly goesBack: boolean;
}

export const MODEL_TERMS: WorldTerms = {
	trafficMs: 45_000,
	restMs: 90_000,
	isLimited: false,
	hasProjects: false,
	hasCuts: false,
	goesBack: false,
};

/** The state of one run, which all parts of the simulation share. */
export type World = ReturnType<typeof createState> & { readonly database: SimDatabase };

function createState(
	seed: number,
	mutant: Mutant | undefined,
	log: ((line: string) => void) | undefined,
	terms: WorldTerms,
) {
	const random = createRandom(seed);
	const timeline = createTimeline();
	const serverWallMs = (): number => timeline.nowMs() + state.serverAheadMs;
	const baseModel = createModelStore(serverWallMs);
	const model = mutant?.model ? mutant.model(baseModel) : baseModel;
	const state = {
		seed,
		mode: random.pick(["process", "process", "host", "remote"] as const),
		timeline,
		random,
		model,
		hosts: [] as Host[],
		keys: new Map<string, SimKey>(),
		requests: new Map<string, RequestRecord>(),
		/** Keys whose revocation was reported as effective, so no request with them may be admitted. */
		revokedForSure: new Set<string>(),
		revoking: 0,
		/** Charges that are in memory and not yet in the database, by lease. */
		pendingCharges: new Map<string, number>(),
		ceilings: new Map<string, number>(),
		/** By entry number of a lowered limit: the total grants of the budget's leases at that time. */
		lowerings: watchLowerings(model),
		/** Draws in progress, each with the least credit that was available since it began. */
		draws: new Set<PendingDraw>(),
		mutant,
		listeners: new Set<() => void>(),
		/** Ample credit, one host at first, few faults except disconnections: no later control entry replaces a lost one. */
		lonely: mutant?.world?.lonely ?? random.chance(0.25),
		/** Probability that an announcement is lost while faults happen. */
		deafness: mutant?.world?.deafness ?? random.pick([0.1, 0.3, 0.9]),
		/** Locked rows by account: how many, and when the last one was unlocked. */
		heldRows: new Map<string, { rows: number; untilMs: number }>(),
		/** Milliseconds by which the server's wall clock is ahead. */
		serverAheadMs: 0,
		recallListeners: new Set<() => void>(),
		/** Called with a key when an instance needs a larger share of its limits. */
		limitListeners: new Set<(key: string) => void>(),
		/** Admissions of requests, by key with a per-minute limit. */
		admissions: new Map<string, readonly Admission[]>(),
		hadFaults: false,
		/** Amounts that running requests had reserved when their process died, by lease. */
		heldAtDeath: new Map<string, number>(),
		/** True if a statement was executed since the last check. */
		storeChanged: true,
		...terms,
		stormy: false,
		lastFaultMs: Number.NEGATIVE_INFINITY,
		/** True if late settlements may be written off, because an attestation was false or a journal was damaged. */
		mayWriteOff: false,
		/** Number of promoted standbys, each of which may lack its predecessor's last data. */
		failovers: 0,
		/** Time of the snapshot to which the server goes back. */
		copiedMs: Number.NEGATIVE_INFINITY,
		/** Ledgers of epochs that began before a standby's promotion, which may lack some of their grants. */
		overtaken: new WeakSet<Ledger>(),
		/** Ledgers of epochs that a rolled-back server has lost in part, without having a position by which to notice. */
		unaware: new WeakSet<Ledger>(),
		/** Called at moments at which a revocation is easily missed. */
		onDelicate: (_kind: DelicateMoment) => {},
		stats: {} as Record<string, number>,
		count(what: string): void {
			state.stats[what] = (state.stats[what] ?? 0) + 1;
		},
		fault(what: string): void {
			state.lastFaultMs = timeline.nowMs();
			state.hadFaults = true;
			state.count(`fault: ${what}`);
			log?.(`${timeline.nowMs().toFixed(1)} FAULT ${what}`);
		},
		log,
	};
	return state;
}

export function createWorld(
	seed: number,
	mutant: Mutant | undefined,
	log: ((line: string) => void) | undefined,
	databaseOf: (world: Omit<World, "database">) => SimDatabase = modelDatabase,
	terms: WorldTerms = MODEL_TERMS,
): World {
	const state = createState(seed, mutant, log, terms);
	const world: World = Object.assign(state, { database: databaseOf(state) });
	watchUsage(world);
	return world;
}

function modelDatabase(world: Omit<World, "database">): SimDatabase {
	const { model, random, timeline, mutant } = world;
	let announcedSeq = 0;
	let announcedTicket = 0;
	/** Announces as NOTIFY does: once for each commit that appended to the log. */
	function announce(): void {
		world.storeChanged = true;
		const ticket = model.recalls.at(-1)?.ticket ?? 0;
		if (ticket > announcedTicket) {
			announcedTicket = ticket;
			for (const listener of world.recallListeners) listener();
		}
		if (model.seq() === announcedSeq) return;
		announcedSeq = model.seq();
		for (const listener of world.listeners) listener();
	}
	const wallMs = () => timeline.nowMs() + world.serverAheadMs;
	const server = createSimServer(
		{ model, timeline, random, wallMs, onCommit: announce, onDelicate: (kind) => world.onDelicate(kind) },
		{
			commitMsMax: (delicate) =>
				!world.stormy ? 1 : delicate ? random.pick([1, 600, 600]) : random.chance(0.04) ? 1_500 : 1,
			flaws: mutant?.flaws ?? {},
		},
	);
	return createModelDatabase(world, server);
}

/** Stops counting a request as pending when the database's model stores its usage. */
function watchUsage(world: Omit<World, "database">): void {
	const { usage } = world.model;
	const set = usage.set.bind(usage);
	usage.set = (id, row) => {
		const record = world.requests.get(id);
		world.log?.(
			`${world.timeline.nowMs().toFixed(1)} usage ${id} ${row.basis} ${row.charged}+${row.off} of ${row.instance}|${row.epoch} excused ${record?.excused}`,
		);
		if (!usage.has(id) && record?.settled) addPending(world, record, -record.settled.charged);
		return set(id, row);
	};
}

export function addPending(world: Pick<World, "pendingCharges">, record: RequestRecord, amount: number): void {
	for (const budget of budgetsOf(record)) {
		const key = leaseKey(budget, record.host.id, record.epoch);
		world.pendingCharges.set(key, (world.pendingCharges.get(key) ?? 0) + amount);
	}
}

export function addHost(world: World): Host {
	const host: Host = {
		id: `host${world.hosts.length + 1}`,
		disk: createSimDisk(),
		process: undefined,
		others: new Set(),
		lost: false,
		fullUntilMs: Number.NEGATIVE_INFINITY,
	};
	world.hosts.push(host);
	return host;
}
