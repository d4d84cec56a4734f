import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import connect from "postgres";
import { silentLog } from "../../src/base/log.ts";
import { migrate } from "../../src/db/migrate.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { runHere } from "../cli/run-here.ts";
import { atEnd, untilEnd } from "../support/at-end.ts";
import { LONG as AT_LENGTH } from "../support/long-form.ts";
import { nowMs, waitFor } from "../support/wait.ts";
import { type ChatRequest, type SentRequest, sendChat, uuidOf } from "./chat-client.ts";
import { type Arrival, startCountingUpstream } from "./counting-upstream.ts";
import { type Fleet, type FleetMember, startFleet } from "./fleet.ts";
import { withOwnPostgres } from "./own-postgres.ts";
import { costOf } from "./verdict.ts";

const SAMPLES = AT_LENGTH ? 8 : 1;
const STREAM: ChatRequest = { words: 8, stream: true, maxTokens: 60 };
const WHOLE: ChatRequest = { words: 8, stream: false, maxTokens: 60 };
const LONG: ChatRequest = { words: 400, stream: true, maxTokens: 500 };

/** Number of requests that end before the kill, and number that it interrupts. If the disk is lost, half as many. */
const [FINISHED, CUT] = AT_LENGTH ? [10, 12] : [4, 4];

type Mode = "process" | "host" | "remote";
/**
 * Without a power loss, `host` behaves like `process`. `ledger/journal.test.ts` and `ledger/ledger.test.ts` cover its
 * waits; `spent.test.ts` and `restore/restore.test.ts` cover `kill -9`; `outage.test.ts` covers a missing Postgres.
 */
const MODES: readonly Mode[] = AT_LENGTH ? ["process", "host", "remote"] : ["remote"];

/** One instance in one mode, with a database and a customer. */
interface Place {
	readonly mode: Mode;
	readonly fleet: Fleet;
	readonly member: FleetMember;
	readonly account: string;
	ask(what: ChatRequest): Promise<SentRequest>;
	rowOf(one: SentRequest): Promise<{ charged: number } | undefined>;
}

// A durable Postgres as in production, because the modes differ in what they wait for.
const postgres = await withOwnPostgres();
const upstream = untilEnd(await startCountingUpstream({ gapMsMax: 4, failures: 0 }));
const places = new Map<Mode, Place>();
const admin = connect(postgres.url, { max: 1, onnotice: () => {} });
await admin.unsafe("create database migrated");
await migrate({ log: silentLog }, databaseOf("migrated"));
// One after the other, because PostgreSQL cannot copy a database twice at once.
for (const mode of MODES) await admin.unsafe(`create database mode_${mode} template migrated`);
await admin.end();
await Promise.all(MODES.map(async (mode) => places.set(mode, await startPlace(mode))));
atEnd(() =>
	Promise.all(
		[...places.values()].map(async ({ fleet, member }) => {
			if (member.process()) await member.stop("SIGINT");
			await fleet.stop();
		}),
	),
);

function databaseOf(name: string): string {
	const url = new URL(postgres.url);
	url.pathname = `/${name}`;
	return url.href;
}

async function startPlace(mode: Mode): Promise<Place> {
	const databaseUrl = databaseOf(`mode_${mode}`);
	const fleet = await startFleet({ databaseUrl, upstreamUrl: upstream.url, instances: 1, env: { JOURNAL: mode } });
	const member = fleet.members[0] as FleetMember;
	const account = await fleet.account();
	const key = await fleet.key(account);
	return {
		mode,
		fleet,
		member,
		account,
		ask: (what) => sendChat(member, key, what),
		async rowOf(one) {
			// The client received nothing, not even a request id, so there is no row to look for.
			if (one.uuid === undefined) return undefined;
			const [row] = await fleet.sql`
				select charged_nano_usd::bigint as charged from usage_event where request_id = ${one.uuid}`;
			return row && { charged: Number(row.charged) };
		},
	};
}

/** Starts long streams and waits until each client has a token, because the mode's promise applies from then on. */
function begin(ask: Place["ask"], count: number) {
	let heard = 0;
	const onFirstToken = () => {
		heard += 1;
	};
	const running = Array.from({ length: count }, () => ask({ ...LONG, onFirstToken }));
	return { running, heard: () => heard };
}

/** Counts requests, after the first `since`, that have sent more than `tokens` tokens. */
const underWay = async (since: number, tokens: number): Promise<number> =>
	(await upstream.report()).slice(since).filter((one) => one.sent > tokens).length;

const arrivalOf = async (one: SentRequest): Promise<Arrival | undefined> =>
	(await upstream.report()).findLast((arrival) => uuidOf(arrival.requestId) === one.uuid);

for (const mode of MODES) {
	describe(`a gateway with JOURNAL=${mode}`, () => {
		const { fleet, member, ask, rowOf } = places.get(mode) as Place;

		test("answers complete and streamed requests", async () => {
			let known = 0;
			for (let at = 0; at < SAMPLES; at++) {
				const [stream, answer] = [await ask(STREAM), await ask(WHOLE)];
				expect([stream.complete, answer.complete]).toEqual([true, true]);
				// Reads Postgres as soon as the client has the last byte of the answer.
				if (await rowOf(answer)) known += 1;
			}
			if (mode === "remote") expect(known).toBe(SAMPLES);
		}, 60_000);

		test("delays the first byte as the mode promises, and never the call to the model", async () => {
			await waitFor(async () => (await ask(WHOLE)).complete, "the instance to admit");
			const before = (await upstream.report()).length;
			member.proxy.freeze();
			const asking = ask(STREAM);
			let thawedAtMs: number;
			try {
				await waitFor(async () => (await upstream.report()).length > before, "the upstream to be asked", 10_000);
				const askedAtMs = nowMs();
				// Waits for longer than the whole answer takes, and for much less than the lease.
				await waitFor(() => nowMs() - askedAtMs > 600, "a while");
			} finally {
				thawedAtMs = nowMs();
				member.proxy.thaw(true);
			}
			const answer = await asking;
			expect(answer).toMatchObject({ status: 200, complete: true });
			const waited = (answer.firstByteMs ?? 0) > thawedAtMs;
			// The other modes do not wait for Postgres. `host` waits for the disk, which takes much less time.
			expect(waited).toBe(mode === "remote");
			await waitFor(async () => (await rowOf(answer)) !== undefined, "its usage to be in Postgres");
		}, 30_000);

		test("charges what it delivered before kill -9, except for at most 64 tokens", async () => {
			const finished = await Promise.all(Array.from({ length: FINISHED }, () => ask(WHOLE)));
			const arrivals = (await upstream.report()).length;
			const { running, heard } = begin(ask, CUT);
			await waitFor(async () => heard() >= CUT / 2 && (await underWay(arrivals, 100)) >= CUT / 2, "streams to run");
			await member.crash();
			const cut = await Promise.all(running);
			expect(cut.some((one) => one.tokens > 0 && !one.complete)).toBe(true);
			await member.start();
			// Running instances have replayed the journal, so every request has a row.
			const recorded = async () =>
				(await Promise.all([...finished, ...cut].filter(({ uuid }) => uuid !== undefined).map(rowOf))).every(Boolean);
			await waitFor(recorded, "the journal to be handed in", 20_000);
			for (const one of finished) expect((await rowOf(one))?.charged).toBe(Math.round((one.usage?.cost ?? 0) * 1e9));
			for (const one of cut) {
				if (one.uuid === undefined) {
					expect(one.tokens).toBe(0);
					continue;
				}
				const [row, arrival] = [await rowOf(one), (await arrivalOf(one)) as Arrival];
				const sent = costOf(arrival.prompt, arrival.sent);
				const got = one.tokens === 0 ? 0 : costOf(arrival.prompt, one.tokens);
				expect(row?.charged).toBeGreaterThanOrEqual(got - costOf(0, 64));
				expect(row?.charged).toBeLessThanOrEqual(sent);
			}
			expect((await reconcile(fleet.statements)).checks.filter((check) => !check.ok)).toEqual([]);
		}, 60_000);
	});
}

test("a gateway that loses its disk loses only what its JOURNAL mode permits", async () => {
	// All modes at the same time, because each waits for the end of a lease.
	const acted = [...places.values()];
	const finished = await Promise.all(
		acted.map(({ ask }) => Promise.all(Array.from({ length: FINISHED }, () => ask(WHOLE)))),
	);
	const arrivals = (await upstream.report()).length;
	const begun = acted.map(({ ask }) => begin(ask, CUT / 2));
	await waitFor(
		async () =>
			begun.every(({ heard }) => heard() === CUT / 2) && (await underWay(arrivals, 50)) >= (CUT / 2) * begun.length,
		"streams to run",
	);
	const running = begun.map((place) => place.running);
	await Promise.all(acted.map(({ member }) => member.crash()));
	for (const { member } of acted) rmSync(join(member.dataDir, "journal"), { recursive: true });
	await Promise.all(
		acted.map(async (place, at) => loseDisk(place, finished[at] ?? [], await Promise.all(running[at] ?? []))),
	);
}, 90_000);

/** Recovers an instance whose disk was removed. */
async function loseDisk(place: Place, finished: readonly SentRequest[], cut: readonly SentRequest[]): Promise<void> {
	const { mode, fleet, member, account, ask, rowOf } = place;
	const live = () => fleet.sql`select 1 from instance_now where state = 'live' and lease_until > clock_timestamp()`;
	await waitFor(async () => (await live()).length === 0, "the lease to end", 30_000);
	const held = async () => {
		const shown = await runHere(["account", "show", account, "--json"], fleet.env);
		return Number(shown.json<{ held_usd: string }>().held_usd);
	};
	expect(await held()).toBeGreaterThan(0);
	const recovered = await runHere(["instance", "recover", "i0", "--journal-lost", "--json"], fleet.env);
	expect([recovered.exitCode, recovered.stderr]).toEqual([0, ""]);
	expect([finished.length, cut.length]).toEqual([FINISHED, CUT / 2]);
	if (mode === "remote") expect(await Promise.all([...finished, ...cut].map(rowOf))).not.toContain(undefined);
	expect((await reconcile(fleet.statements)).checks.filter((check) => !check.ok)).toEqual([]);
	expect(await held()).toBe(0);
	await member.start();
	await waitFor(async () => (await ask(WHOLE)).complete, "it to serve again");
}
