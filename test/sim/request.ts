import type { Admitted } from "../../src/admission/admission.ts";
import { CreditFault } from "../../src/admission/credit-fault.ts";
import { sleep } from "../../src/base/clock.ts";
import type { ServeDeps, ServedRequest } from "../../src/gateway/serve/context.ts";
import type { Relay } from "../../src/gateway/serve/endpoint.ts";
import { RunningStream } from "../../src/gateway/serve/streaming.ts";
import type { KeyDigest } from "../../src/keys/secret.ts";
import type { RequestEnding } from "../../src/ledger/event.ts";
import { DiskFull } from "../../src/ledger/journal-disk.ts";
import type { Outcome } from "../../src/ledger/outcome.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { boundOfAmount, MODEL, usesAnotherDay } from "./admission.ts";
import { hadHeldRows, isCalm } from "./invariants.ts";
import type { SimProcess } from "./process.ts";
import { type RequestRecord, Violation, type World } from "./world.ts";

const QUANTUM = 6;

/** Runs one request from its arrival to its end, with an upstream that counts tokens independently. */
export async function runRequest(world: World, process: SimProcess, key: string, account: string): Promise<void> {
	const { random } = world;
	const amount = random.int(4, 60);
	const cost = random.chance(0.04) ? amount + random.int(1, 30) : random.int(0, amount);
	const record: RequestRecord = {
		id: random.uuid(),
		host: process.host,
		process,
		account,
		key,
		amount,
		cost,
		budgets: undefined,
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
		forgotten: false,
	};
	world.requests.set(record.id, record);
	try {
		const admitted = await admit(world, process, record);
		// If the process died while it wrote the record, its code continues without effect.
		if (admitted && !process.dead) await deliver(world, process, record, admitted);
	} catch (error) {
		if (error instanceof Violation) throw error;
		if (process.dead) return;
		if (!isFault(error)) throw error;
		world.count(`fault ${error.code}`);
	}
	record.ended = true;
}

/** True if no fault may keep the request from its credit. */
const isFair = (world: World, { process, account }: RequestRecord, sinceMs: number) =>
	isCalm(world, sinceMs) && !usesAnotherDay(world, process) && !hadHeldRows(world, account, sinceMs);

function isFault(error: unknown): error is { code: string; private?: string } {
	return (error as Error | null)?.name === "Fault";
}

async function admit(world: World, process: SimProcess, record: RequestRecord): Promise<Admitted | undefined> {
	// The simulation uses a key's id as its digest.
	const digest = record.key as KeyDigest;
	const startedMs = world.timeline.nowMs();
	const known = process.keyring.peek(digest);
	const entry = known === undefined || known === "unknown" ? await process.keyring.load(digest) : known;
	if (!entry) throw new Violation(`key ${record.key} exists and was not found`);
	try {
		return await process.admission.admit({
			id: record.id,
			key: entry,
			model: MODEL,
			endpoint: "chat",
			streamed: true,
			upperBound: boundOfAmount(record.amount),
			choices: 1,
			isAgain: false,
		});
	} catch (error) {
		if (error instanceof CreditFault) world.count("refused");
		else if (isFault(error) && error.code === "overloaded")
			throw new Violation(`request ${record.id} drew for credit in vain again and again`);
		else if (isFault(error) && error.code === "service_unavailable" && isFair(world, record, startedMs))
			throw new Violation(`request ${record.id} heard ${error.private} in calm weather`);
		else throw error;
		return undefined;
	}
}

async function deliver(world: World, process: SimProcess, record: RequestRecord, admitted: Admitted): Promise<void> {
	const { random } = world;
	const { hold } = admitted;
	const { ledger } = hold;
	let ending: Outcome["ending"] = "finished";
	const chunks = random.int(0, 5);
	const slow = random.chance(world.hasCuts ? 0.4 : 0.05) ? 3_000 : 300;
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
					promptTokens: 1,
					completionTokens: chunk,
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
			throw new Violation(`request ${record.id} delivered ${next}, its journal says ${record.bound}`);
	}
	if (process.dead) return;
	if (ending === "finished") record.delivered = record.cost;
	if (chunks === 0 && ending === "finished") record.bound = record.cost;
	await endAnswer(world, process, record, admitted, ending);
	if (process.dead) return;
	if (!record.settled) throw new Violation(`request ${record.id} ended and was not settled`);
	await ledger.settledDurable(hold);
	if (process.dead) return;
	record.acknowledged = true;
	world.count("settled");
}

/**
 * Ends an answer through the product's stream code. One kind of end comes first; others may come at the same moment, or
 * while an excess is being covered. The stream decides which of them settles the request.
 */
async function endAnswer(
	world: World,
	process: SimProcess,
	record: RequestRecord,
	admitted: Admitted,
	ending: RequestEnding,
): Promise<void> {
	const { random, timeline } = world;
	const open: { shutDown(): void }[] = [];
	const streaming = streamOf(process, record, admitted, ending, open);
	streaming.listen();
	streaming.enter("streaming");
	const others = [
		() => streaming.leave(),
		() => open[0]?.shutDown(),
		() => void streaming.settle("upstream_died", 502),
	];
	const atOnce = random.chance(0.1) ? random.pick(others) : undefined;
	if (random.chance(0.3)) {
		const late = random.pick(others.slice(0, 2));
		timeline.after(random.fraction() * random.pick([1, 10, 400]), `${process.name}: another end`, () => {
			if (!process.dead) late();
		});
	}
	atOnce?.();
	if (streaming.state === "streaming") await streaming.settle(ending, 200);
	else await untilSettled(world, process, streaming);
}

/** Waits, because another call of `endAnswer` is drawing credit for the excess. */
async function untilSettled(world: World, process: SimProcess, streaming: RunningStream<never>): Promise<void> {
	world.count("ended by another end");
	while (streaming.state !== "settled" && !process.dead)
		await new Promise<void>((resolve) => process.clock.after(5, resolve));
}

/** A stream that has delivered what `record` contains, with only the members that its end needs. */
function streamOf(
	process: SimProcess,
	record: RequestRecord,
	admitted: Admitted,
	ending: RequestEnding,
	open: { shutDown(): void }[],
): RunningStream<never> {
	const usage = { promptTokens: 1, completionTokens: 1, cachedTokens: 0, reasoningTokens: 0, units: 0 };
	const basis = ending === "finished" ? "exact" : "estimated";
	const deps = {
		admission: process.admission,
		catalog: { limits: () => ({}) },
		clock: process.clock,
		telemetry: { log: process.log },
		clients: {
			openStreams: { add: (one: { shutDown(): void }) => void open.push(one), delete: () => void open.splice(0) },
		},
	};
	const context = {
		startedMs: process.clock.monotonicMs(),
		requestId: record.id,
		key: undefined,
		connection: { request: { signal: new AbortController().signal }, setIdleTimeout() {} },
	};
	const relay = { bill: () => ({ ...usage, cost: nanoUsd(record.delivered), basis }), fail: () => "" };
	const streaming = new RunningStream<never>(
		deps as unknown as ServeDeps,
		{ context, admitted } as unknown as ServedRequest,
		relay as unknown as Relay<never>,
	);
	streaming.delivery.firstMs = 1;
	streaming.abort = new AbortController();
	return streaming;
}
