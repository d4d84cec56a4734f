import type { Clock } from "../../src/base/clock.ts";
import type { Log } from "../../src/base/log.ts";
import { createGate } from "../../src/cluster/gate.ts";
import type { HeartbeatStore } from "../../src/cluster/heartbeat.ts";
import { DatabaseTimeout } from "../../src/db/outage.ts";
import type { KeyFields } from "../../src/keys/key-entry.ts";
import { createKeyring, type Keyring } from "../../src/keys/keyring.ts";
import { holdInstanceLease, type InstanceLease } from "../../src/ledger/instance-lease.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import { KEEP_NONE } from "../../src/ledger/lost-journal.ts";
import { plainKeyFields } from "../support/plain-key.ts";
import { createSimAdmission, type SimAdmission } from "./admission.ts";
import type { Appended } from "./disk.ts";
import { type Lowered, recordLowering } from "./lowered.ts";
import type { Statement } from "./server.ts";
import { EPOCH_MS, LEASE_TTL_MS } from "./terms.ts";
import type { Host, SimKey, World } from "./world.ts";

/** One process of an instance: its clocks, its connection, and the production code that it runs. */
export interface SimProcess extends SimAdmission {
	readonly host: Host;
	readonly name: string;
	dead: boolean;
	/** Time until which the process is paused while time continues for the others. */
	pausedUntilMs: number;
	/** True if the process is stopping, or has stopped, in order. */
	leaving: boolean;
	readonly link: { requests: boolean; replies: boolean };
	readonly clock: Clock & { wallOffsetMs: number };
	readonly log: Log;
	readonly keyring: Keyring;
	instanceLease: InstanceLease | undefined;
	/** Ledgers of this process's epochs from which requests have reserved. */
	readonly ledgers: Set<Ledger>;
	/** The last lowering that the process has applied, by budget. */
	readonly lowered: Map<string, Lowered>;
	call<T>(label: string, statement: Statement<T>): Promise<T>;
	start(): Promise<void>;
	/** Tells the process that the control log may have new entries, or that the connection was restored. */
	hear(): void;
	/** Time of the last server position that the process received. */
	heardMs: number;
	hearRecalls(): void;
}

/** Deadline of a statement in milliseconds, after which its outcome is unknown. */
const STATEMENT_DEADLINE_MS = 1_500;

/** Sender of statements: a process, or the operator, who has a clock and a connection too. */
export interface Caller {
	readonly dead: boolean;
	readonly pausedUntilMs: number;
	readonly link: { requests: boolean; replies: boolean };
	readonly clock: Clock;
}

export function createSimClock(
	world: World,
	caller: { dead: boolean; pausedUntilMs: number },
	name: string,
	rate: number,
) {
	const { timeline } = world;
	const clock = {
		wallOffsetMs: EPOCH_MS,
		wallMs: () => Math.floor(timeline.nowMs() + clock.wallOffsetMs),
		monotonicMs: () => timeline.nowMs() * rate,
		after(delayMs: number, run: () => void) {
			let cancelled = false;
			const arm = (inMs: number): void => {
				timeline.after(inMs, `${name}: timer`, () => {
					if (cancelled || caller.dead) return;
					if (caller.pausedUntilMs > timeline.nowMs()) arm(caller.pausedUntilMs - timeline.nowMs());
					else run();
				});
			};
			arm(delayMs / rate);
			return () => {
				cancelled = true;
			};
		},
	};
	return clock;
}

/** Sends a statement over the caller's connection, with the connection's faults. */
export function callServer<T>(
	world: World,
	caller: Caller,
	name: string,
	statement: Statement<T>,
	onReply: () => void,
): Promise<T> {
	const { timeline, random, database } = world;
	return new Promise((resolve, reject) => {
		if (caller.dead) return;
		let answered = false;
		const answer = (give: () => void) => {
			if (answered || caller.dead) return;
			answered = true;
			cancelDeadline();
			give();
		};
		const cancelDeadline = caller.clock.after(STATEMENT_DEADLINE_MS, () =>
			answer(() => reject(new DatabaseTimeout(`${name}: no answer in time`))),
		);
		const deliver = (give: () => void): void => {
			timeline.after(latencyMs(world), `${name}: reply`, () => {
				if (caller.dead) return;
				if (!caller.link.replies) return;
				if (caller.pausedUntilMs > timeline.nowMs()) {
					timeline.after(caller.pausedUntilMs - timeline.nowMs(), `${name}: reply after the pause`, () => answer(give));
					return;
				}
				onReply();
				answer(give);
			});
		};
		const fate = world.stormy ? random.fraction() : 1;
		const send = (delayMs: number): void => {
			timeline.after(delayMs, `${name}: request`, () => {
				if (!caller.link.requests || fate < 0.02) {
					if (random.chance(0.5)) deliver(() => reject(away(`${name}: connection lost`)));
					return;
				}
				if (!database.up) return deliver(() => reject(away(`${name}: refused`)));
				const lost = (fate >= 0.02 && fate < 0.05) || (fate >= 0.07 && fate < 0.09);
				statement(
					(result) => {
						if (lost) deliver(() => reject(away(`${name}: connection reset`)));
						else deliver(() => resolve(result));
					},
					(error) => deliver(() => reject(error)),
				);
			});
		};
		// The request may stay in a buffer long after its deadline. It arrives twice only if the first reply was lost,
		// because a connection that answers repeats no request.
		send(fate >= 0.05 && fate < 0.07 ? 500 + random.fraction() * 6_000 : latencyMs(world));
		if (fate >= 0.07 && fate < 0.09) send(random.fraction() * 4_000);
	});
}

/** Creates the driver's error for a missing connection. */
function away(message: string): Error {
	return Object.assign(new Error(message), { code: "ECONNRESET" });
}

function latencyMs({ stormy, random }: World): number {
	return 0.1 + random.fraction() * (stormy && random.chance(0.05) ? 300 : 2);
}

export function createSimProcess(
	world: World,
	host: Host,
	name: string,
	crash: (process: SimProcess) => void,
): SimProcess {
	const { random, timeline, database } = world;
	const rate = 1 + (random.fraction() - 0.5) * 0.02;
	const state = { dead: false, pausedUntilMs: Number.NEGATIVE_INFINITY };
	const clock = createSimClock(world, state, name, rate);
	const link = { requests: true, replies: true };
	const log = simLog(world, name);

	/** Lets the process die at this point by chance: after it wrote a record, or before it receives a reply. */
	function dieAt(point: string, chance: number): void {
		if (!world.stormy || process.dead || !random.chance(chance)) return;
		world.fault(`kill ${point}`);
		crash(process);
	}

	const call = <T>(label: string, statement: Statement<T>) =>
		callServer(world, process, `${name}: ${label}`, statement, () => dieAt("between commit and reply", 0.0008));

	/** A half-open connection receives no announcements and gives no error. */
	const heard = (label: string, listener: () => void) => () => {
		if (process.dead || !link.replies || (world.stormy && random.chance(world.deafness))) return;
		timeline.after(latencyMs(world), `${name}: ${label}`, () => {
			if (!process.dead && process.pausedUntilMs <= timeline.nowMs()) listener();
		});
	};

	const keyring = createKeyring({ log, load: database.keyLoader(call) });

	function noted(store: HeartbeatStore): HeartbeatStore {
		const heard = <T>(position: T): T => {
			if (position !== null) process.heardMs = timeline.nowMs();
			return position;
		};
		return {
			...store,
			position: async () => heard(await store.position()),
			heartbeat: async (...args) => heard(await store.heartbeat(...args)),
		};
	}

	const bare: Omit<SimProcess, keyof SimAdmission> = {
		host,
		name,
		get dead() {
			return state.dead;
		},
		set dead(value) {
			state.dead = value;
		},
		get pausedUntilMs() {
			return state.pausedUntilMs;
		},
		set pausedUntilMs(value) {
			state.pausedUntilMs = value;
		},
		leaving: false,
		link,
		clock,
		log,
		keyring,
		instanceLease: undefined,
		ledgers: new Set(),
		lowered: new Map(),
		hear: () => {},
		heardMs: Number.NEGATIVE_INFINITY,
		hearRecalls: () => {},
		call,
		async start() {
			const gate = createGate({ clock });
			const storeFor = (id: string, epoch: number) => database.ledger(call, name, id, epoch);
			process.instanceLease = await holdInstanceLease(
				{
					clock,
					log,
					newUuid: random.uuid,
					gate: world.mutant?.gate?.(gate) ?? gate,
					heartbeats: noted(world.mutant?.heartbeats?.(database.heartbeats(call)) ?? database.heartbeats(call)),
					witness: database.fence(call),
					waitUntilSilent: async () => {},
					storeFor,
					timesOf: async () => ({}),
					kept: KEEP_NONE,
					journals: mutantHome(world, process, (record) => noteAppended(world, record, dieAt)),
					onMove: () => {},
					redoLostActs: async () => {},
					listen: async (onChange) => {
						process.hear = heard("notify", onChange);
						world.listeners.add(() => process.hear());
					},
					listenRecalls: async (onRecall) => {
						process.hearRecalls = heard("recall", onRecall);
						world.recallListeners.add(() => process.hearRecalls());
					},
					apply(entry) {
						keyring.apply(entry);
						recordLowering(world, process, entry);
					},
					reset: (seq) => keyring.clear(seq),
					onDiskFailed: () => {},
				},
				{
					instanceId: host.id,
					mode: world.mode,
					leaseTtlMs: LEASE_TTL_MS,
					flushIntervalMs: 50,
					// If the server goes back it loses data, so journals must be kept completely.
					...(world.goesBack ? { segmentBytesMax: 60_000, keepMs: 600_000 } : { segmentBytesMax: 3_000 }),
					idleReturnMs: 3_000,
					fencedDrainMs: 60_000,
				},
			);
		},
	};
	const instanceLease = { instanceId: host.id, present: () => process.instanceLease?.present() };
	const parts = { clock, log, shares: database.shares(call, instanceLease) };
	const process: SimProcess = Object.assign(
		bare,
		createSimAdmission(world, () => process, parts),
	);
	world.limitListeners.add((key) => heard("limits", () => process.keyLimits.recall(key))());
	return process;
}

function mutantHome(world: World, process: SimProcess, onAppend: (record: Appended) => void) {
	const home = process.host.disk.journalRootOf(process, onAppend, (label, done) => {
		process.clock.after(world.random.fraction() * 3, () => {
			world.timeline.note(label.length);
			done();
		});
	});
	return world.mutant?.home?.(home) ?? home;
}

function noteAppended(world: World, record: Appended, dieAt: (point: string, chance: number) => void): void {
	const request = world.requests.get(record.id);
	if (!request) return;
	if (record.kind === 1) request.admitAppended = true;
	else if (record.kind === 2) {
		request.bound = Math.max(request.bound, record.bound);
		request.known = Math.max(request.known, record.delivered);
	} else request.settleAppended = true;
	dieAt(["", "after ADMIT", "after PROGRESS", "after SETTLE"][record.kind] as string, 0.003);
}

/** `cap`: the daily cap; undefined for a key without one. */
export const keyFields = (
	{ id, account, project, revoked }: Pick<SimKey, "id" | "account" | "project" | "revoked">,
	cap: number | null | undefined,
): KeyFields =>
	plainKeyFields(id, {
		accountId: account,
		projectId: project,
		state: revoked ? "revoked" : "active",
		...(cap === undefined ? {} : { capNanoUsd: cap, capPeriod: "day" }),
	});

function simLog(world: World, name: string): Log {
	const at = (level: string) => (message: string, fields?: Readonly<Record<string, unknown>>) => {
		if (!world.log) return;
		const text =
			fields?.error instanceof Error ? `: ${fields.error.message}` : fields ? ` ${JSON.stringify(fields)}` : "";
		world.log(`${world.timeline.nowMs().toFixed(1)} ${name} ${level} ${message}${text}`);
	};
	const log: Log = {
		debug: at("debug"),
		info: at("info"),
		warn: at("warn"),
		error: at("error"),
		with: () => log,
		isOn: () => true,
	};
	return log;
}
