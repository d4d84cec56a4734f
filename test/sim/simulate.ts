import { drainMicrotasks } from "bun:jsc";
import type { AppendedEntry } from "../../src/cluster/control-log.ts";
import { type FenceResult, waitUntilApplied } from "../../src/cluster/fence.ts";
import type { Call } from "./database.ts";
import { createFaults, type Faults } from "./faults.ts";
import { lockRowsAtRandom } from "./holds.ts";
import { checkAtRest, checkEnd, checkStep, hadHeldRows, isCalm } from "./invariants.ts";
import { lowerLimits } from "./lowered.ts";
import type { Mutant } from "./mutants.ts";
import { type Caller, callServer, createSimClock, type SimProcess } from "./process.ts";
import { runRequest } from "./request.ts";
import { GRACE_MS } from "./terms.ts";
import {
	addHost,
	createWorld,
	type KeyLimitsOf,
	MODEL_TERMS,
	NO_LIMITS,
	type RequestRecord,
	type SimKey,
	Violation,
	type World,
} from "./world.ts";

export interface SimResult {
	readonly seed: number;
	/** The invariant that was violated; undefined if all held. */
	readonly failure: string | undefined;
	readonly hash: number;
	readonly steps: number;
	readonly stats: Readonly<Record<string, number>>;
	readonly recent: readonly string[];
}

export interface SimOptions {
	mutant?: Mutant | undefined;
	log?: ((line: string) => void) | undefined;
	/** Uses three levels of budgets instead of two. The same seed then takes other steps. */
	projects?: boolean | undefined;
	/** Lowers limits all the time, with slow answers. The same seed then takes other steps. */
	cuts?: boolean | undefined;
	/** Lets the server go back in time. The same seed then takes other steps. */
	back?: boolean | undefined;
}

export const variant = ({
	projects,
	cuts,
	back,
	mutant,
}: SimOptions): Pick<World, "hasProjects" | "hasCuts" | "goesBack"> => ({
	hasProjects: projects ?? mutant?.projects ?? false,
	hasCuts: cuts ?? mutant?.cuts ?? false,
	goesBack: back ?? mutant?.back ?? false,
});

const STEPS_MAX = 400_000;
const LIMITS: Readonly<Record<number, KeyLimitsOf>> = {
	3: { ...NO_LIMITS, tokensPerMinute: 150 },
	4: { ...NO_LIMITS, concurrencyMax: 2 },
	5: { ...NO_LIMITS, requestsPerMinute: 12 },
};
const STOP_MS = 60_000;
/** Longest revocation in milliseconds while all instances are healthy, whichever rows are locked. */
const REVOKED_MS_MAX = 500;
/** Milliseconds after its revocation at which a key is tried again. */
const TRIALS_MS = [
	0, 1, 3, 10, 50, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000, 1_400, 2_500, 4_000, 5_500, 6_500, 9_000, 13_000,
];

/** Runs one seed to its end, or to the first violated invariant. The same seed always takes the same steps. */
export function simulate(seed: number, options: SimOptions = {}): SimResult {
	const terms = { ...MODEL_TERMS, ...variant(options) };
	const run = createRun(createWorld(seed, options.mutant, options.log, undefined, terms));
	try {
		for (const _ of run.script());
		return run.result(undefined);
	} catch (error) {
		return run.failed(error);
	}
}

/** Like `simulate`, for a database that takes real time: each step waits until the database is at rest. */
export async function simulateBeside(world: World, atRest: () => Promise<void>): Promise<SimResult> {
	const run = createRun(world);
	try {
		for (const _ of run.script()) await atRest();
		return run.result(undefined);
	} catch (error) {
		return run.failed(error);
	}
}

/** Runs the events up to a time; yields after each step. */
type RunUntil = (untilMs: number, stop?: () => boolean) => Generator<void, void, void>;

function createRun(world: World) {
	const { timeline, seed } = world;
	let steps = 0;
	let broken: unknown;
	const failLater = (error: unknown) => {
		broken ??= error;
	};

	function* runUntil(untilMs: number, stop?: () => boolean): Generator<void, void, void> {
		while (timeline.step(untilMs)) {
			steps += 1;
			yield;
			if (broken) throw broken;
			checkStep(world);
			if (steps > STEPS_MAX) throw new Violation("the run does not come to rest");
			if (stop?.()) return;
		}
		if (broken) throw broken;
	}

	function* script(): Generator<void, void, void> {
		const faults = createFaults(world);
		setUp(world, faults);
		drainMicrotasks();
		yield;
		yield* runUntil(3_000);
		const calmOnly = world.mutant?.world?.delicate === undefined && world.random.chance(0.2);
		startTraffic(world, failLater);
		if (world.hasCuts) lowerLimits(world, timeline.nowMs() + world.trafficMs);
		if (!calmOnly) startStorm(world, faults);
		if (world.random.chance(0.6)) lockRowsAtRandom(world, timeline.nowMs() + world.trafficMs);
		yield* runUntil(timeline.nowMs() + world.trafficMs);
		faults.heal();
		yield* finish(world, faults, runUntil);
	}

	const result = (failure: string | undefined): SimResult => {
		timeline.note(Number([...world.model.budgets.values()].reduce((sum, { drawn }) => sum + drawn, 0)));
		return { seed, failure, hash: timeline.hash(), steps, stats: world.stats, recent: timeline.recent() };
	};

	return {
		script,
		result,
		failed(error: unknown): SimResult {
			if (error instanceof Violation) return result(error.message);
			return result(error instanceof Error ? `${error.name}: ${error.message}\n${error.stack}` : String(error));
		},
	};
}

function setUp(world: World, faults: Faults): void {
	const { database, random } = world;
	for (const account of ["acc1", "acc2"]) {
		database.addAccount(account, world.lonely ? 100_000 : random.int(300, 3_000));
		const project = world.hasProjects ? addProject(world, account) : null;
		for (let number = 1; number <= 5; number++) {
			const id = `${account}-key${number}`;
			const limit = number === 1 || world.lonely ? null : random.int(50, 800);
			const limits = (world.isLimited ? LIMITS[number] : undefined) ?? NO_LIMITS;
			// The last two accounts have caps that renew at midnight, which is in the middle of the run.
			const daily = number >= 4;
			// Projects without a cap, with a lifetime cap, and with a daily cap. Two keys have no project.
			const ofProject = number === 3 || number === 5 ? null : project;
			database.addKey(id, account, limit, limits, daily, ofProject);
			world.keys.set(id, { id, account, project: ofProject, revoked: false, limits });
			world.ceilings.set(id, (daily ? null : limit) ?? Number.POSITIVE_INFINITY);
		}
	}
	for (let count = world.lonely ? 1 : random.int(1, 3); count > 0; count--) faults.startProcess(addHost(world));
}

/** Adds a project, with a lifetime cap, a daily cap or none. */
function addProject({ database, random, ceilings, lonely }: World, account: string): string {
	const id = `proj_${account}`;
	const limit = lonely || random.chance(0.1) ? null : random.int(100, 1_000);
	const daily = random.chance(0.5);
	database.addProject(id, account, limit, daily);
	ceilings.set(id, (daily ? null : limit) ?? Number.POSITIVE_INFINITY);
	return id;
}

function startTraffic(world: World, failLater: (error: unknown) => void): void {
	const { random, timeline, trafficMs } = world;
	const untilMs = timeline.nowMs() + trafficMs;
	const meanMs = random.pick([40, 100, 250]);
	const operator: Caller = createOperator(world);
	const arrive = (): void => {
		if (timeline.nowMs() >= untilMs) return;
		timeline.after(-Math.log(1 - random.fraction()) * meanMs, "arrival", arrive);
		const { process } = random.pick(world.hosts);
		const key = random.pick([...world.keys.values()]);
		const burst = random.chance(0.05) ? random.int(2, 25) : 1;
		for (let count = 0; count < burst; count++) send(process, key);
	};
	const send = (process: SimProcess | undefined, key: SimKey): void => {
		if (!process || process.dead || process.pausedUntilMs > timeline.nowMs()) return;
		runRequest(world, process, key.id, key.account).catch(failLater);
	};
	const sendEverywhere = (key: SimKey): void => {
		for (const { process } of world.hosts) send(process, key);
	};
	arrive();
	const provoked = world.mutant?.world?.delicate;
	const delicate = provoked ?? random.pick(["renewal", "go live", "cut off"] as const);
	let revocations = provoked ? world.keys.size : random.int(2, 9);
	const revokeSoon = (inMs: number): void => {
		if (revocations === 0 || timeline.nowMs() >= untilMs) return;
		revocations -= 1;
		const key = random.pick([...world.keys.values()]);
		// Uses the key before its revocation, so that every instance has it in memory.
		for (const delayMs of [0, 1, 4]) timeline.after(delayMs, "use", () => sendEverywhere(key));
		timeline.after(inMs, "operator: revoke", () => {
			// Tries the revoked key at every instance; all must refuse it.
			for (const delayMs of TRIALS_MS) {
				timeline.after(delayMs, "trial", () => sendEverywhere(key));
			}
			revoke(world, operator, key).catch(failLater);
		});
	};
	// Revokes some keys at any time, others while an instance goes live or just after one was cut off.
	const anyTime = world.lonely && delicate === "renewal" ? 0 : random.int(1, 3);
	for (let count = anyTime; count > 0; count--) revokeSoon(random.fraction() * trafficMs);
	world.onDelicate = (kind) => {
		if (kind === delicate && random.chance(0.9)) revokeSoon(5 + random.fraction() * random.pick([2, 30, 300]));
	};
	for (let count = world.lonely ? 0 : random.int(2, 8); count > 0; count--) {
		timeline.after(random.fraction() * trafficMs, "operator: money", () => moveMoney(world));
	}
}

function createOperator(world: World): Caller {
	const state = { dead: false, pausedUntilMs: Number.NEGATIVE_INFINITY };
	return { ...state, link: { requests: true, replies: true }, clock: createSimClock(world, state, "operator", 1) };
}

/** Revokes a key as the console does: repeats the statement until its effect is known, then waits for all instances. */
async function revoke(world: World, operator: Caller, key: SimKey): Promise<void> {
	const { database, timeline } = world;
	const startedMs = timeline.nowMs();
	world.revoking += 1;
	const call: Call = (_label, statement) => callServer(world, operator, "operator", statement, () => {});
	const asked = database.fence(call);
	let failovers = 0;
	const store = {
		...asked,
		lagging(entry: AppendedEntry) {
			failovers = world.failovers;
			return asked.lagging(entry);
		},
	};
	const options = { deadlineMs: 120_000, graceMs: GRACE_MS };
	let applied: FenceResult | undefined;
	// Repeats the wait until the revocation is effective, as the command line advises.
	while (!applied) {
		let entry: AppendedEntry | undefined;
		while (!entry) entry = await database.revoke(call, key.id).catch(() => undefined);
		applied = await waitUntilApplied({ store, clock: operator.clock }, entry, options).catch(() => undefined);
	}
	if (!applied.effective) throw new Violation(`the revocation of ${key.id} did not come into force`);
	const tookMs = timeline.nowMs() - startedMs;
	if (isCalm(world, startedMs) && tookMs > REVOKED_MS_MAX)
		throw new Violation(`the revocation of ${key.id} took ${tookMs.toFixed(0)} ms in calm weather`);
	// After a failover, the current server may lack a revocation that was effective.
	if (failovers === world.failovers) world.revokedForSure.add(key.id);
	world.revoking -= 1;
	world.count("revoked");
}

/** Books top-ups and refunds and changes caps. Each is atomic in the database. */
function moveMoney(world: World): void {
	const { model, random, database, timeline } = world;
	if (!database.up) return;
	const budget = random.pick([...model.budgets.values()].filter(({ id }) => !id.includes(":")));
	// Skips the change, because the real statement would wait for the locked row.
	if (hadHeldRows(world, budget.account, timeline.nowMs())) return;
	const moved = () => world.count("money moved");
	if (budget.kind !== "account") {
		database.setCap(budget.id, () => (random.chance(0.2) ? null : random.int(0, 1_500)), moved);
		return;
	}
	const amount = () => (random.chance(0.7) ? random.int(100, 1_000) : -random.int(10, 200));
	database.adjust(budget.id, amount, moved);
}

function startStorm(world: World, faults: Faults): void {
	const { random, timeline, trafficMs } = world;
	const fromMs = timeline.nowMs() + random.fraction() * 10_000;
	const untilMs = fromMs + random.int(8_000, trafficMs - 10_000);
	const meanMs = random.pick([500, 2_000, 5_000]);
	const blow = (): void => {
		if (timeline.nowMs() >= untilMs) {
			world.fault("end of the storm");
			world.stormy = false;
			return;
		}
		faults.strike();
		timeline.after(-Math.log(1 - random.fraction()) * meanMs, "strike", blow);
	};
	timeline.after(fromMs - timeline.nowMs(), "storm", () => {
		world.stormy = true;
		blow();
	});
}

/** Waits until the world is at rest, stops all processes in order, replays the journals, and checks the books. */
function* finish(world: World, faults: Faults, runUntil: RunUntil): Generator<void, void, void> {
	const { timeline, hosts } = world;
	yield* runUntil(timeline.nowMs() + world.restMs);
	checkAtRest(world);
	if (world.revoking > 0) throw new Violation(`${world.revoking} revocations have not returned`);
	for (const record of world.requests.values()) {
		if (record.admitted && !record.ended && !isGone(record)) {
			throw new Violation(`request ${record.id} never ended`);
		}
	}
	yield* stopAll(world, runUntil);
	for (const host of hosts) faults.startProcess(host);
	yield* runUntil(timeline.nowMs() + 10_000);
	yield* stopAll(world, runUntil);
	if (world.failovers > 0) {
		// Attests epochs whose end the server has forgotten.
		for (const host of hosts) faults.attest(host);
		yield* runUntil(timeline.nowMs() + 20_000);
	}
	checkEnd(world);
}

/** True if the request's epoch has ended, so that its outcome is in a journal. */
const isGone = ({ process, epoch }: RequestRecord) => process.dead || process.instanceLease?.present()?.epoch !== epoch;

function* stopAll(world: World, runUntil: RunUntil): Generator<void, void, void> {
	const { hosts, timeline } = world;
	const outcomes: boolean[] = [];
	const stopping = hosts.map((host) => {
		const { process } = host;
		if (!process?.instanceLease) throw new Violation(`${host.id} is not running`);
		void process.keyLimits.stop();
		void process.instanceLease.stop(STOP_MS).then((clean) => outcomes.push(clean));
		return { host, process };
	});
	drainMicrotasks();
	yield* runUntil(timeline.nowMs() + STOP_MS + 1_000, () => outcomes.length === stopping.length);
	if (outcomes.length < stopping.length || outcomes.includes(false))
		throw new Violation("an instance did not stop cleanly");
	for (const { host, process } of stopping) {
		process.dead = true;
		host.disk.releaseAll(process);
		host.process = undefined;
	}
}
