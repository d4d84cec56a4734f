/**
 * Two versions on one database, as during an upgrade and a rollback. The former version is the real program from the
 * Git history. Long form: `bun run upgrade`.
 */
import { expect, test } from "bun:test";
import { type ChatRequest, type SentRequest, sendChat } from "../chaos/chat-client.ts";
import { type CountingUpstream, startCountingUpstream } from "../chaos/counting-upstream.ts";
import { areJournalsReplayed, type Fleet, type FleetMember, LEASE_TTL_S_QUIET, startFleet } from "../chaos/fleet.ts";
import { type Load, type LoadKey, startLoad } from "../chaos/load.ts";
import { judgeBooks } from "../chaos/verdict.ts";
import { PROGRAM, type Program } from "../cli/run-cli.ts";
import { atEnd, testsMayTake } from "../support/at-end.ts";
import { createEmptyDatabase } from "../support/database.ts";
import { LONG } from "../support/long-form.ts";
import { createRandom } from "../support/random.ts";
import { waitFor } from "../support/wait.ts";
import { takeFormerVersion } from "./former-version.ts";

testsMayTake(180_000);

const former = takeFormerVersion();
console.log(`the former version: ${former.name}`);
atEnd(() => former.remove());

const PHASE_REQUESTS = 16;
const ANSWERS = 12;
/** Clients pause between requests: without pauses, instances that start and stop would lack CPU time. */
const REST_MS_MAX = LONG ? 100 : 200;
const RICH = 100_000_000_000;
const LONG_STREAM: ChatRequest = { words: 150, stream: true, maxTokens: 200 };

test(`an upgrade by kill -9${LONG ? " or in order" : ""} loses no request`, async () => {
	const old = former.program;
	await withFleet(old, async (fleet, upstream) => {
		const [first, second] = fleet.members as [FleetMember, FleetMember];
		const forth = [[first, PROGRAM] as const, [second, PROGRAM] as const];
		const back = [[first, old] as const, [second, old] as const];
		const rolled = LONG ? await roll(fleet, upstream, [...forth, ...back, [first, PROGRAM]]) : undefined;
		const load = await startLoad(fleet, createRandom(1), { users: 3, restMsMax: REST_MS_MAX, accounts: 6 });
		await served(load, fleet);
		// The newer version replays the older version's journal.
		await second.crash();
		await startAs(second, PROGRAM);
		await served(load, fleet);
		// The older version replays the newer version's journal. With LONG it starts while an instance of the newer version
		// is live, whose SQL functions it must not replace.
		const newer = LONG ? first : second;
		await newer.crash();
		await startAs(newer, old);
		await served(load, fleet);
		await load.stop();
		return {
			...load,
			sent: [...(rolled?.sent ?? []), ...load.sent],
			keys: [...(rolled?.keys ?? []), ...load.keys],
			accounts: new Map([...(rolled?.accounts ?? []), ...load.accounts]),
		};
	});
});

/** Replaces the instances one by one at a load balancer: no request is refused, and running streams end normally. */
async function roll(fleet: Fleet, upstream: CountingUpstream, steps: readonly (readonly [FleetMember, Program])[]) {
	const account = await fleet.account(RICH);
	const made = [await fleet.key(account), await fleet.key(account)];
	const keys = made.map((key): LoadKey => ({ ...key, account, cap: undefined, period: "lifetime", homes: [] }));
	const balanced = startBalanced(fleet, keys);
	const { sent } = balanced;
	const more = (from: number) => waitFor(() => sent.length >= from + ANSWERS, "requests to be served", 60_000);
	for (const [member, next] of steps) {
		await more(sent.length);
		const seen = (await upstream.report()).length;
		const long = [1, 2].map(() => balanced.send(member, LONG_STREAM));
		const running = async () => (await upstream.report()).slice(seen).filter(({ prompt }) => prompt > 100).length;
		await waitFor(async () => (await running()) === long.length, "long streams to run");
		await balanced.leave(member);
		expect(await member.stop()).toBe(0);
		await Promise.all(long);
		await startAs(member, next);
		await waitFor(async () => (await fetch(`${member.url}/readyz`)).status === 200, "it to be ready", 30_000);
		balanced.enter(member);
	}
	await more(sent.length);
	await balanced.stop();
	const failed = sent.filter(({ complete }) => !complete);
	expect(failed.map(({ member, status, code }) => ({ member, status, code }))).toEqual([]);
	return { sent, keys, accounts: new Map([[account, RICH]]) };
}

async function startAs(member: FleetMember, program: Program): Promise<void> {
	member.become(program);
	await member.start();
}

/** Waits until each running instance has answered further requests. */
async function served(load: Load, fleet: Fleet): Promise<void> {
	const from = load.sent.length;
	const whole = (index: number) => load.sent.slice(from).filter((one) => one.complete && one.member === index).length;
	await waitFor(
		() => fleet.members.every(({ index }) => whole(index) >= PHASE_REQUESTS / 2),
		"requests to be served",
		60_000,
	);
}

async function withFleet(
	program: Program,
	steps: (fleet: Fleet, upstream: CountingUpstream) => Promise<Load>,
): Promise<void> {
	const database = await createEmptyDatabase();
	const upstream = await startCountingUpstream({ gapMsMax: 3, failures: 0 });
	const fleet = await startFleet({
		databaseUrl: database.url,
		upstreamUrl: upstream.url,
		instances: 2,
		env: { LEASE_TTL_S: LEASE_TTL_S_QUIET, DRAIN_S: "8" },
		program,
	});
	try {
		const load = await steps(fleet, upstream);
		await waitFor(() => areJournalsReplayed(fleet.members), "journals of crashes to be handed in", 30_000);
		// An instance that is fenced during its start learns it from its next heartbeat and settles its usage.
		const dead = () => fleet.sql`select 1 from instance_now where state = 'dead'`;
		await waitFor(async () => (await dead()).length === 0, "nobody to be fenced off", 60_000);
		expect(await Promise.all(fleet.members.map((member) => member.stop("SIGINT")))).toEqual([0, 0]);
		const findings = await judgeBooks(fleet, load, await upstream.report());
		const broken = findings.filter((finding) => finding.broken.length > 0);
		expect(broken.map(({ claim, broken: examples }) => `${claim}: ${examples.slice(0, 3).join(" | ")}`)).toEqual([]);
		// Requests may be refused only because of a limit, or by an instance that restarts.
		const codes = new Set(load.sent.flatMap(({ status, code }) => (status >= 500 ? [`${status} ${code}`] : [])));
		expect(
			[...codes].filter((code) => !/^50[234] (upstream_error|upstream_timeout|service_unavailable)$/.test(code)),
		).toEqual([]);
	} finally {
		await fleet.stop();
		await upstream.stop();
		await database.drop();
	}
}

const USERS = 4;
const SHORT: ChatRequest = { words: 6, stream: true, maxTokens: 30 };

/** A load balancer that uses the instances in turn and repeats no request. */
function startBalanced(fleet: Fleet, keys: readonly LoadKey[]) {
	const sent: SentRequest[] = [];
	const rotation = new Set(fleet.members);
	const short = new Map<FleetMember, number>(fleet.members.map((member) => [member, 0]));
	let stopping = false;
	let turn = 0;
	const send = async (member: FleetMember, ask: ChatRequest) => {
		const key = keys[turn++ % keys.length] as LoadKey;
		const answer = await sendChat(member, key, ask);
		sent.push(answer);
		return answer;
	};
	const users = Array.from({ length: USERS }, async () => {
		while (!stopping) {
			const member = [...rotation][turn % rotation.size] as FleetMember;
			short.set(member, (short.get(member) ?? 0) + 1);
			const answer = await send(member, SHORT);
			short.set(member, (short.get(member) ?? 0) - 1);
			// Leaves CPU time for instances that start.
			await Bun.sleep(answer.complete ? 50 : 100);
		}
	});
	return {
		sent,
		send,
		/** Waits until the requests in flight to the former address have ended. */
		async leave(member: FleetMember) {
			rotation.delete(member);
			await waitFor(() => short.get(member) === 0, "the last short answer", 30_000);
		},
		enter: (member: FleetMember) => void rotation.add(member),
		async stop() {
			stopping = true;
			await Promise.all(users);
		},
	};
}
