/**
 * A rolling upgrade behind a balancer, from the former version to this one and back, one of three instances at a time:
 * nobody is refused, nothing is lost, and streams that run when an instance is told to stop come to their end.
 */
import { afterAll, expect, test } from "bun:test";
import type { Ask, Sent } from "../chaos/chat-client.ts";
import { sendChat } from "../chaos/chat-client.ts";
import { startCountingUpstream } from "../chaos/counting-upstream.ts";
import type { Fleet, FleetMember } from "../chaos/fleet.ts";
import { LEASE_TTL_S_QUIET, startFleet } from "../chaos/fleet.ts";
import type { LoadKey } from "../chaos/load.ts";
import { judge } from "../chaos/verdict.ts";
import { PROGRAM, type Program } from "../cli/run-cli.ts";
import { createEmptyDatabase } from "../support/database.ts";
import { waitFor } from "../support/wait.ts";
import { takeFormerVersion } from "./former-version.ts";

const taken = takeFormerVersion();
const former = "program" in taken ? taken : undefined;
if ("missing" in taken) console.log(`the former version cannot be run beside this one: ${taken.missing}`);
afterAll(() => former?.remove());

const RICH = 100_000_000_000;
const USERS = 4;
const SHORT: Ask = { words: 6, stream: true, maxTokens: 30 };
const LONG: Ask = { words: 150, stream: true, maxTokens: 200 };
/** Between two replacements. */
const ANSWERS = 12;

/** As a balancer: it knows who is in rotation, asks them in turn, and repeats nothing. */
function startBalanced(fleet: Fleet, keys: readonly LoadKey[]) {
	const sent: Sent[] = [];
	const rotation = new Set(fleet.members);
	const short = new Map<FleetMember, number>(fleet.members.map((member) => [member, 0]));
	let stopping = false;
	let turn = 0;
	const send = async (member: FleetMember, ask: Ask) => {
		const key = keys[turn++ % keys.length] as LoadKey;
		const answer = await sendChat({ member: member.index, url: member.url }, key, ask);
		sent.push(answer);
		return answer;
	};
	const users = Array.from({ length: USERS }, async () => {
		while (!stopping) {
			const member = [...rotation][turn % rotation.size] as FleetMember;
			short.set(member, (short.get(member) ?? 0) + 1);
			const answer = await send(member, SHORT);
			short.set(member, (short.get(member) ?? 0) - 1);
			// Leaves the machine something for who is starting.
			await Bun.sleep(answer.complete ? 50 : 100);
		}
	});
	return {
		sent,
		send,
		/** Whoever had its address before has been served. */
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

test.skipIf(former === undefined)(
	"three instances from the former version to this one and back: none refused, none lost",
	async () => {
		const database = await createEmptyDatabase();
		const upstream = await startCountingUpstream({ gapMsMax: 3, failures: 0 });
		const program = former?.program as Program;
		const fleet = await startFleet({
			databaseUrl: database.url,
			upstreamUrl: upstream.url,
			instances: 3,
			program,
			env: { LEASE_TTL_S: LEASE_TTL_S_QUIET },
		});
		try {
			const account = await fleet.account(RICH);
			const made = [await fleet.key(account), await fleet.key(account)];
			const keys: LoadKey[] = made.map((key) => ({
				...key,
				account,
				cap: undefined,
				period: "lifetime" as const,
				homes: [],
			}));
			const balanced = startBalanced(fleet, keys);
			const outlasting: Sent[] = [];
			const more = (from: number) =>
				waitFor(() => balanced.sent.length >= from + ANSWERS, "requests to be served", 60_000);
			for (const [member, next] of [PROGRAM, program].flatMap((next) =>
				fleet.members.map((one) => [one, next] as const),
			)) {
				await more(balanced.sent.length);
				const seen = (await upstream.report()).length;
				const long = [1, 2].map(() => balanced.send(member, LONG));
				const running = async () => (await upstream.report()).slice(seen).filter(({ prompt }) => prompt > 100).length;
				await waitFor(async () => (await running()) === long.length, "long streams to run");
				await balanced.leave(member);
				expect(await member.stop()).toBe(0);
				outlasting.push(...(await Promise.all(long)));
				member.become(next);
				await member.start();
				await waitFor(async () => (await fetch(`${member.url}/readyz`)).status === 200, "it to be ready", 30_000);
				balanced.enter(member);
			}
			await more(balanced.sent.length);
			await balanced.stop();
			const failed = balanced.sent.filter(({ complete }) => !complete);
			expect(failed.map(({ member, status, code }) => ({ member, status, code }))).toEqual([]);
			expect(await Promise.all(fleet.members.map((member) => member.stop("SIGINT")))).toEqual([0, 0, 0]);
			const load = { ...balanced, keys, accounts: new Map([[account, RICH]]), closed: [] };
			const broken = (await judge(fleet, load, await upstream.report())).filter((finding) => finding.broken.length > 0);
			expect(broken.map(({ claim, broken: examples }) => `${claim}: ${examples.slice(0, 3).join(" | ")}`)).toEqual([]);
			console.log(
				`${balanced.sent.length} requests through six replacements, ${outlasting.length} streams outlasted their instance's stop: none refused, none lost`,
			);
		} finally {
			await fleet.stop();
			await upstream.stop();
			await database.drop();
		}
	},
	180_000,
);
