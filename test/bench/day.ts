/**
 * A day in the life, in a minute: people talk with a model through the product as it is deployed, a fiftieth of them hang
 * up, and meanwhile settlements cannot be written for five seconds, a key is revoked, and the gateway's process is
 * replaced. What each of them felt, beside the same people without a gateway and before the floors.
 */
import { systemClock } from "../../src/base/clock.ts";
import { waitEverywhere } from "../../src/cluster/wait-everywhere.ts";
import { revokeKey } from "../../src/keys/key-admin.ts";
import { childrenWithRole } from "../support/processes.ts";
import { waitFor } from "../support/wait.ts";
import type { Figures } from "./figures.ts";
import type { Gateway } from "./gateways.ts";
import { directGateway } from "./gateways.ts";
import { peopleOf } from "./people.ts";
import { cpuMicros, residentBytes } from "./process-usage.ts";
import { sharedMs } from "./shared-clock.ts";
import type { Felt, Talk, TalkOptions, Verdict } from "./talk-client.ts";
import { startTalk } from "./talk-client.ts";
import type { Isolated, World } from "./world.ts";

const HANG_UPS = 0.02;
const OUTAGE_MS = 5_000;
const REVOKE_DEADLINE_MS = 30_000;
const REPLACED_DEADLINE_MS = 60_000;
const MEMORY_EVERY_MS = 500;
const PERCENTILES = [
	["p50", 0.5],
	["p99", 0.99],
	["p99.9", 0.999],
] as const;
const ABOVE_MIN = 3;
/** The key that is revoked: a place in the list of secrets. */
const VICTIM = 0;
const NEVER = Number.POSITIVE_INFINITY;

/** Milliseconds of the parts of a run. */
interface Plan {
	readonly rampMs: number;
	readonly calmMs: number;
	/** Between one thing that happens and the next. */
	readonly restMs: number;
}

export async function day(world: World, figures: Figures): Promise<void> {
	const { mode } = world;
	const plan = mode.quick
		? { rampMs: 2_000, calmMs: 3_000, restMs: 2_000 }
		: { rampMs: 6_000, calmMs: 15_000, restMs: 8_000 };
	const compared = world.gateways.filter(({ name }) => name === "bare Bun" || name === "nginx");
	for (const gateway of [directGateway(world.upstreamPort), ...compared]) {
		const talk = startTalk({ ...talkOf(world, gateway, world.secrets, plan), durationMs: NEVER });
		await Bun.sleep(plan.rampMs);
		await felt(figures, gateway.name, gateway, talk, plan.calmMs);
		talk.cut();
		const { failures, firstFailure } = await talk.ended;
		check(world, `${gateway.name}: no failure`, failures === 0, `${failures}, first: ${firstFailure}`);
	}
	const one = await world.isolated("day", { env: { ROLE: "all" } });
	await dayOf(world, figures, one, plan);
}

function talkOf(
	world: World,
	gateway: Gateway,
	secrets: readonly string[],
	plan: Plan,
): Omit<TalkOptions, "durationMs"> {
	const request = peopleOf(gateway, secrets);
	const { streams } = world.mode;
	return { port: gateway.port, streams, rampMs: plan.rampMs, hangUpShare: HANG_UPS, seed: 3, request };
}

async function dayOf(world: World, figures: Figures, one: Isolated, plan: Plan): Promise<void> {
	const { gateway } = one;
	const [pid] = gateway.pids() as [number];
	const idleBytes = residentBytes(gateway.pids());
	let mostBytes = 0;
	const watch = setInterval(() => {
		mostBytes = Math.max(mostBytes, residentBytes(gateway.pids()));
	}, MEMORY_EVERY_MS);
	const revocation = { beganMs: NEVER, returnedMs: NEVER };
	const durationMs = plan.rampMs + plan.calmMs + OUTAGE_MS + 3 * plan.restMs;
	const verdict = (status: number, owner: number, sentAtMs: number): Verdict => {
		if (owner !== VICTIM || sharedMs() < revocation.beganMs)
			return status === 200 ? "fine" : { wrong: `status ${status}` };
		if (status === 401) return "refused";
		if (sentAtMs > revocation.returnedMs) return { wrong: `a revoked key was answered with ${status}` };
		return status === 200 ? "fine" : { wrong: `status ${status}` };
	};
	const talk = startTalk({ ...talkOf(world, gateway, one.secrets, plan), durationMs, verdict });
	await Bun.sleep(plan.rampMs);
	await felt(figures, "tollgate, calm", gateway, talk, plan.calmMs);
	const eventful = measured(gateway, talk);
	const waiting = await settlementsWait(one);
	check(world, "settlements waited for five seconds", waiting > 0, `${waiting} statements before a lock`);
	await Bun.sleep(plan.restMs);
	revocation.beganMs = sharedMs();
	await revoke(world, one);
	revocation.returnedMs = sharedMs();
	await Bun.sleep(plan.restMs);
	await replaceGateway(pid);
	await Bun.sleep(plan.restMs);
	eventful.add(figures, "tollgate, all that happens");
	const result = await talk.ended;
	clearInterval(watch);
	const mb = (bytes: number) => bytes / 1024 / 1024;
	figures.add("day", "memory before, all processes", "MB", "tollgate, calm", mb(idleBytes));
	figures.add("day", "most memory, all processes", "MB", "tollgate, all that happens", mb(mostBytes));
	await one.stop({ loose: true });
	const { failures, firstFailure, refused, streams, hungUp } = result;
	const { requests } = await one.database.books();
	check(world, "no failure", failures === 0, `${failures} of ${streams}, first: ${firstFailure}`);
	check(world, "the revoked key was refused", refused > 0, `${refused} times`);
	check(world, "people hung up", hungUp > 0, `${hungUp} of ${streams}`);
	const settled = streams - refused;
	check(world, "every stream is a row in Postgres, once", requests === settled, `${requests} of ${settled}`);
}

function check(world: World, name: string, ok: boolean, detail: string): void {
	world.checks.push({ name: `day: ${name}`, ok, detail });
}

async function felt(figures: Figures, row: string, gateway: Gateway, talk: Talk, durationMs: number): Promise<void> {
	const during = measured(gateway, talk);
	await Bun.sleep(durationMs);
	during.add(figures, row);
}

/** From now on; `add` says what was. */
function measured(gateway: Gateway, talk: Talk) {
	talk.felt();
	const from = { micros: cpuMicros(gateway.pids()), tokens: talk.tokens(), atMs: performance.now() };
	return {
		add(figures: Figures, row: string): void {
			const micros = cpuMicros(gateway.pids()) - from.micros;
			const tokens = talk.tokens() - from.tokens;
			const elapsedMs = performance.now() - from.atMs;
			addFelt(figures, row, talk.felt());
			figures.add("day", "tokens a second", "1/s", row, (1000 * tokens) / elapsedMs);
			if (gateway.pids().length === 0) return;
			figures.add("day", "CPU per 1,000 tokens", "ms", row, micros / tokens);
			figures.add("day", "core used", "%", row, micros / (10 * elapsedMs));
		},
	};
}

function addFelt(figures: Figures, row: string, { firstToken, token, gap }: Felt): void {
	for (const [label, share] of PERCENTILES) {
		// A percentile that fewer lie above is chance.
		if (firstToken.count() * (1 - share) < ABOVE_MIN) continue;
		figures.add("day", `time to first token, ${label}`, "µs", row, firstToken.percentileMicros(share));
	}
	for (const [label, share] of PERCENTILES)
		figures.add("day", `a token's way, ${label}`, "µs", row, token.percentileMicros(share));
	for (const [label, share] of PERCENTILES)
		figures.add("day", `gap between tokens, ${label}`, "ms", row, gap.percentileMicros(share) / 1000);
}

/** Nobody can write a row of usage for so long. Gives how many statements wait at the end. */
async function settlementsWait({ database }: Isolated): Promise<number> {
	return database.sql.begin(async (transaction) => {
		await transaction`lock table usage_event in access exclusive mode`;
		await Bun.sleep(OUTAGE_MS);
		const [row] = await transaction<{ waiting: string }[]>`select count(*) as waiting from pg_locks where not granted`;
		return Number(row?.waiting);
	});
}

async function revoke(world: World, { database, keyIds }: Isolated): Promise<void> {
	const entry = await revokeKey(database.statements, { id: keyIds[VICTIM] as string });
	const deps = { liveness: database.liveness, clock: systemClock };
	const { effective, elapsedMs } = await waitEverywhere(deps, entry, REVOKE_DEADLINE_MS);
	check(world, "the key was revoked everywhere", effective, `after ${elapsedMs} ms`);
}

/** A new process serves, its forerunner takes no more. */
async function replaceGateway(parent: number): Promise<void> {
	const [former] = childrenWithRole(parent, "gateway");
	process.kill(parent, "SIGUSR2");
	const isReplaced = () => childrenWithRole(parent, "gateway").some((pid) => pid !== former);
	await waitFor(isReplaced, "the gateway's process to be replaced", REPLACED_DEADLINE_MS);
}
