import { sleep } from "../../src/base/clock.ts";
import { checkAccess } from "../../src/keys/access.ts";
import type { KeyDigest } from "../../src/keys/digest.ts";
import type { KeyEntry } from "../../src/keys/key-entry.ts";
import { DiskFull } from "../../src/ledger/journal-disk.ts";
import type { Hold, Ledger } from "../../src/ledger/ledger.ts";
import type { Outcome } from "../../src/ledger/outcome.ts";
import type { Shortage } from "../../src/ledger/slices.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { checkShortage, coverage, hadHeldRows, isCalm } from "./invariants.ts";
import type { SimProcess } from "./process.ts";
import { addPending, Broken, type PendingDraw, type RequestRecord, type World } from "./world.ts";

/** As admission does it: more draws than this in a row are a defect. */
const DRAWS_MAX = 64;
const QUANTUM = 6;

/** One request from its arrival to its end, with an upstream that keeps its own count. */
export async function runRequest(world: World, process: SimProcess, key: string, account: string): Promise<void> {
	const { random } = world;
	const amount = random.int(4, 60);
	const cost = random.chance(0.04) ? amount + random.int(1, 30) : random.int(0, amount);
	const record: RequestRecord = {
		id: random.uuid(),
		host: process.host,
		account,
		key,
		amount,
		cost,
		epoch: 0,
		admitted: false,
		delivered: 0,
		bound: 0,
		known: 0,
		settled: undefined,
		acknowledged: false,
		admitAppended: false,
		settleAppended: false,
		excused: false,
		ended: false,
	};
	world.requests.set(record.id, record);
	try {
		const hold = await admit(world, process, record);
		if (hold) await deliver(world, process, record, hold);
	} catch (error) {
		if (error instanceof Broken) throw error;
		if (process.dead) return;
		if (!isFault(error)) throw error;
		world.count(`fault ${error.code}`);
	}
	record.ended = true;
}

function isFault(error: unknown): error is { code: string } {
	return (error as Error | null)?.name === "Fault";
}

async function admit(world: World, process: SimProcess, record: RequestRecord): Promise<Hold | undefined> {
	// Here a key is its own digest.
	const digest = record.key as KeyDigest;
	const known = process.keyring.peek(digest);
	const entry = known === undefined || known === "unknown" ? await process.keyring.load(digest) : known;
	if (!entry) throw new Broken(`key ${record.key} exists and was not found`);
	let outcome = attempt(world, process, record, entry);
	for (let draw = 0; draw < DRAWS_MAX; draw++) {
		if (outcome === undefined || "state" in outcome) return outcome;
		const shortage = await drawWatched(world, process, outcome, record);
		outcome = attempt(world, process, record, entry);
		if (outcome === undefined || "state" in outcome) return outcome;
		if (shortage) {
			world.count("refused");
			return undefined;
		}
	}
	throw new Broken(`request ${record.id} drew ${DRAWS_MAX} times in vain`);
}

/** No await in here, as in admission. */
function attempt(world: World, process: SimProcess, record: RequestRecord, entry: KeyEntry): Hold | Ledger | undefined {
	const ledger = process.instanceLease?.ledger();
	if (!ledger) {
		if (isCalm(world, world.timeline.nowMs())) throw new Broken(`${process.name} admits nothing in calm weather`);
		world.count("gate closed");
		return undefined;
	}
	checkAccess(entry, process.clock.wallMs());
	record.epoch = ledger.epoch;
	const { id, account, key } = record;
	const admitted = {
		id,
		account,
		key,
		model: "m",
		card: "c",
		endpoint: "chat",
		streamed: true,
		at: process.clock.wallMs(),
	} as const;
	const hold = ledger.reserve(admitted, nanoUsd(record.amount));
	if (!hold) return ledger;
	// A process that died while it wrote the record goes on here without effect.
	if (process.dead) return undefined;
	record.admitted = true;
	world.log?.(`${world.timeline.nowMs().toFixed(1)} ${process.name} admitted ${id} in epoch ${ledger.epoch}`);
	process.ledgers.add(ledger);
	world.count("admitted");
	if (world.revokedForSure.has(key)) {
		throw new Broken(`${process.name} admitted key ${key} after its revocation had returned`);
	}
	return hold;
}

async function drawWatched(
	world: World,
	process: SimProcess,
	ledger: Ledger,
	record: RequestRecord,
): Promise<Shortage | null> {
	const budgets = [record.account, record.key];
	const least = new Map(budgets.map((budget) => [budget, coverage(world, budget, process)]));
	const draw: PendingDraw = { process, budgets, startedMs: world.timeline.nowMs(), least };
	world.draws.add(draw);
	try {
		const shortage = await ledger.draw(record.account, record.key, nanoUsd(record.amount));
		if (shortage) checkShortage(world, draw, shortage);
		return shortage;
	} catch (error) {
		// Only what befalls its own account, or everybody, may keep a request from its credit.
		if (isCalm(world, draw.startedMs) && !hadHeldRows(world, record.account, draw.startedMs))
			throw new Broken(`${process.name} got no credit of ${record.account} in calm weather: ${String(error)}`);
		world.count("unproved");
		throw error;
	} finally {
		world.draws.delete(draw);
	}
}

async function deliver(world: World, process: SimProcess, record: RequestRecord, hold: Hold): Promise<void> {
	const { random } = world;
	const { ledger } = hold;
	let ending: Outcome["ending"] = "finished";
	const chunks = random.int(0, 5);
	const slow = random.chance(0.05) ? 3_000 : 300;
	for (let chunk = 1; chunk <= chunks; chunk++) {
		await sleep(process.clock, random.fraction() * slow);
		if (random.chance(0.05)) {
			ending = random.pick(["client_left", "upstream_died"] as const);
			break;
		}
		const next = Math.floor((record.cost * chunk) / chunks);
		try {
			if (next > hold.bound) {
				ledger.progress(hold, {
					delivered: nanoUsd(record.delivered),
					bound: nanoUsd(next + random.int(0, QUANTUM)),
					prompt: 1,
					completion: chunk,
				});
			}
			if (chunk === 1) await ledger.durable(hold);
		} catch (error) {
			if (!(error instanceof DiskFull)) throw error;
			ending = "shutdown";
			break;
		}
		if (process.dead) return;
		record.delivered = next;
		world.log?.(
			`${world.timeline.nowMs().toFixed(1)} ${process.name} delivered ${record.id} ${next} of ${record.cost}, bound ${record.bound}`,
		);
		if (record.bound < next)
			throw new Broken(`request ${record.id} delivered ${next}, its journal says ${record.bound}`);
	}
	if (process.dead) return;
	if (ending === "finished") record.delivered = record.cost;
	if (chunks === 0 && ending === "finished") record.bound = record.cost;
	await settle(world, process, record, hold, ending);
}

async function settle(
	world: World,
	process: SimProcess,
	record: RequestRecord,
	hold: Hold,
	ending: Outcome["ending"],
): Promise<void> {
	const outcome: Outcome = {
		costNanoUsd: nanoUsd(record.delivered),
		basis: ending === "finished" ? "exact" : "estimated",
		ending,
		status: 200,
		prompt: 1,
		cached: 0,
		completion: 1,
		reasoning: 0,
		units: 0,
		replica: null,
		first: 1,
		ms: 1,
	};
	const event = hold.ledger.settle(hold, outcome);
	if (process.dead) return;
	if (!record.settleAppended && process.host.disk.room < 1_000) record.excused = true;
	record.settled = { charged: event.charged, off: event.off };
	if (!world.model.usage.has(record.id)) addPending(world, record, event.charged);
	if (event.charged + event.off !== record.delivered)
		throw new Broken(`request ${record.id} was not charged what it cost`);
	await hold.ledger.settledDurable(hold);
	if (process.dead) return;
	record.acknowledged = true;
	world.count("settled");
}
