import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { reconcile } from "../../src/ledger/reconcile.ts";
import { runCli } from "../cli/run-cli.ts";
import { waitFor } from "../support/wait.ts";
import type { Ask, Sent } from "./chat-client.ts";
import { nowMs, sendChat, uuidOf } from "./chat-client.ts";
import type { Arrival, CountingUpstream } from "./counting-upstream.ts";
import { startCountingUpstream } from "./counting-upstream.ts";
import { summaryOf } from "./figures.ts";
import type { Fleet, FleetMember } from "./fleet.ts";
import { startFleet } from "./fleet.ts";
import type { OwnPostgres } from "./own-postgres.ts";
import { startOwnPostgres } from "./own-postgres.ts";
import { costOf } from "./verdict.ts";

const SAMPLES = Number(process.env.SAMPLES ?? 40);
const STREAM: Ask = { words: 8, stream: true, maxTokens: 60 };
const WHOLE: Ask = { words: 8, stream: false, maxTokens: 60 };
const LONG: Ask = { words: 400, stream: true, maxTokens: 500 };

let postgres: OwnPostgres;
let upstream: CountingUpstream;

beforeAll(async () => {
	// Durable as in production: what a mode waits for is what it costs.
	postgres = await startOwnPostgres();
	upstream = await startCountingUpstream({ gapMsMax: 4, failures: 0 });
}, 60_000);
afterAll(async () => {
	await upstream?.stop();
	await postgres?.destroy();
}, 30_000);

for (const mode of ["process", "host", "remote"] as const) {
	describe(`JOURNAL=${mode}`, () => {
		let fleet: Fleet;
		let member: FleetMember;
		let account: string;
		let key: { id: string; secret: string };

		beforeAll(async () => {
			fleet = await startFleet({
				databaseUrl: postgres.url,
				upstreamUrl: upstream.url,
				instances: 1,
				env: { JOURNAL: mode, INSTANCE_ID: mode },
			});
			member = fleet.members[0] as FleetMember;
			account = await fleet.account();
			key = await fleet.key(account);
		}, 60_000);
		afterAll(async () => {
			if (member?.process()) await member.stop();
			await fleet?.stop();
		}, 30_000);

		const ask = (what: Ask) => sendChat({ member: 0, url: member.url }, key, what);
		const rowOf = async (one: Sent) => {
			const [row] = await fleet.sql`
				select charged_nano_usd::bigint as charged, basis, ending, coalesce(l.amount_nano_usd, 0)::bigint as credited
				from usage_event u left join ledger_entry l on l.source_ref = 'recovered:' || u.request_id where request_id = ${one.uuid ?? ""}`;
			return row && { ...row, charged: Number(row.charged), credited: Number(row.credited) };
		};
		const arrivalOf = async (one: Sent): Promise<Arrival | undefined> =>
			(await upstream.report()).findLast((arrival) => uuidOf(arrival.requestId) === one.uuid);

		test("answers whole and in streams; how long the first byte and the whole answer take", async () => {
			for (let warm = 0; warm < 5; warm++) await ask(STREAM);
			const first: number[] = [];
			const whole: number[] = [];
			let known = 0;
			for (let at = 0; at < SAMPLES; at++) {
				const [stream, answer] = [await ask(STREAM), await ask(WHOLE)];
				expect([stream.complete, answer.complete]).toEqual([true, true]);
				// What Postgres knows in the very moment in which the client has the last byte.
				if (await rowOf(answer)) known += 1;
				const { arrivedAtMs } = (await arrivalOf(stream)) as Arrival;
				first.push((stream.firstByteMs ?? 0) - arrivedAtMs);
				whole.push((answer.endMs ?? 0) - answer.sentAtMs);
			}
			const [ttft, total] = [summaryOf(first), summaryOf(whole)];
			console.log(
				`${mode}: upstream's start to first byte p50 ${ttft.p50} ms p99 ${ttft.p99} ms, unary p50 ${total.p50} ms p99 ${total.p99} ms, already in Postgres ${known}/${SAMPLES}`,
			);
			if (mode === "remote") expect(known).toBe(SAMPLES);
		}, 60_000);

		test("the first byte waits for what the mode promises, and the upstream does not", async () => {
			await waitFor(async () => (await ask(WHOLE)).complete, "the instance to admit");
			const before = (await upstream.report()).length;
			member.proxy.freeze();
			const asking = ask(STREAM);
			let thawedAtMs: number;
			try {
				await waitFor(async () => (await upstream.report()).length > before, "the upstream to be asked", 2_000);
				const askedAtMs = nowMs();
				// Long enough for the whole answer, far shorter than the lease.
				await waitFor(() => nowMs() - askedAtMs > 600, "a while");
			} finally {
				thawedAtMs = nowMs();
				member.proxy.thaw(true);
			}
			const answer = await asking;
			expect(answer).toMatchObject({ status: 200, complete: true });
			const waited = (answer.firstByteMs ?? 0) > thawedAtMs;
			// Postgres does not matter to the other modes; the disk is asked in `host`, which took well below this.
			expect(waited).toBe(mode === "remote");
			await waitFor(async () => (await rowOf(answer)) !== undefined, "its usage to be in Postgres");
		}, 30_000);

		test("kill -9 in the middle of streams: what was delivered is charged, what was not is credited", async () => {
			const finished = await Promise.all(Array.from({ length: 10 }, () => ask(WHOLE)));
			const arrivals = (await upstream.report()).length;
			const running = Array.from({ length: 12 }, () => ask(LONG));
			await waitFor(
				async () => (await upstream.report()).slice(arrivals).filter((one) => one.sent > 100).length >= 6,
				"streams to run",
			);
			await member.crash();
			const cut = await Promise.all(running);
			expect(cut.some((one) => one.tokens > 0 && !one.complete)).toBe(true);
			await member.start();
			for (const one of finished) expect((await rowOf(one))?.charged).toBe(Math.round((one.usage?.cost ?? 0) * 1e9));
			const over: number[] = [];
			for (const one of cut) {
				const [row, arrival] = [await rowOf(one), (await arrivalOf(one)) as Arrival];
				const sent = costOf(arrival.prompt, arrival.sent);
				const got = one.tokens === 0 ? 0 : costOf(arrival.prompt, one.tokens);
				expect(row?.charged).toBeGreaterThanOrEqual(got);
				expect(row?.charged).toBeLessThanOrEqual(sent + costOf(0, 64));
				expect((row?.charged ?? 0) - (row?.credited ?? 0)).toBeLessThanOrEqual(sent);
				over.push((row?.charged ?? 0) - got);
			}
			console.log(
				`${mode}: kill -9 of ${cut.length} streams, charged beyond what arrived: at most ${Math.max(...over) / costOf(0, 1)} tokens before the credit note`,
			);
			expect((await reconcile(fleet.hot)).checks.filter((check) => !check.ok)).toEqual([]);
		}, 60_000);

		test("loss of the disk with the process", async () => {
			const finished = await Promise.all(Array.from({ length: 10 }, () => ask(WHOLE)));
			const arrivals = (await upstream.report()).length;
			const running = Array.from({ length: 6 }, () => ask(LONG));
			await waitFor(
				async () => (await upstream.report()).slice(arrivals).filter((one) => one.sent > 50).length >= 6,
				"streams to run",
			);
			await member.crash();
			const cut = await Promise.all(running);
			rmSync(join(member.dataDir, "journal"), { recursive: true });
			await waitFor(
				async () =>
					(await fleet.sql`select 1 from instance where state = 'live' and lease_until > clock_timestamp()`).length ===
					0,
				"the lease to end",
			);
			const held = await runCli(["account", "show", account, "--json"], fleet.env);
			expect(Number(held.json<{ held_usd: string }>().held_usd)).toBeGreaterThan(0);
			const recovered = await runCli(["instance", "recover", "i0", "--journal-lost", "--json"], fleet.env);
			expect([recovered.exitCode, recovered.stderr]).toEqual([0, ""]);
			const known = await Promise.all(finished.map(rowOf));
			const lost = known.filter((row) => row === undefined).length;
			const unpaid = await Promise.all(cut.map(rowOf));
			console.log(
				`${mode}: disk lost: ${lost} of ${finished.length} finished requests unknown, ${unpaid.filter(Boolean).length} of ${cut.length} running ones on record, charged ${unpaid.map((row) => row?.charged ?? 0).join(" ")}`,
			);
			if (mode === "remote") {
				expect(lost).toBe(0);
				expect(unpaid.every((row) => row !== undefined)).toBe(true);
			}
			expect((await reconcile(fleet.hot)).checks.filter((check) => !check.ok)).toEqual([]);
			const after = await runCli(["account", "show", account, "--json"], fleet.env);
			expect(Number(after.json<{ held_usd: string }>().held_usd)).toBe(0);
			await member.start();
			expect((await ask(WHOLE)).complete).toBe(true);
		}, 60_000);
	});
}
