/**
 * Runs failovers under traffic and checks the books against the upstream's count: `bun test/failover/run.ts` prints one
 * line per scenario. Exit code 1 if a claim fails.
 */
import postgres from "postgres";
import { migratedUrl } from "../../src/db/migrate.ts";
import { bodyOf, uuidOf } from "../chaos/chat-client.ts";
import { type FleetMember, LEASE_TTL_MS } from "../chaos/fleet.ts";
import { costOf } from "../chaos/verdict.ts";
import { runHere } from "../cli/run-here.ts";
import { postJson } from "../support/chat.ts";
import { type FailoverWorld, startFailoverWorld } from "./failover-world.ts";
import { type Customer, PAST_INSTANCE, payByCard, runBatch, sealDay, type WaitForWork } from "./work.ts";

interface Scenario {
	readonly name: string;
	readonly env?: Readonly<Record<string, string>>;
	/** Replication is synchronous: commits wait for the standby. */
	readonly isSynchronous?: boolean;
	/** A gateway dies together with the primary and starts again later. */
	readonly losesGateway?: boolean;
	/** Replication is asynchronous, and the standby lacks the last seconds. */
	readonly lags?: boolean;
	/** The primary goes back to a snapshot instead of a promotion of the standby. */
	readonly rollsBack?: boolean;
	/** Number of promotions or rollbacks; one by default. */
	readonly times?: number;
	/** Each promotion comes as soon as the former primary follows the new one. */
	readonly isHurried?: boolean;
	/** Each request has an idempotency key, with which it is repeated until it is answered. */
	readonly isIdempotent?: boolean;
	readonly work?: (world: FailoverWorld, customer: Customer) => Promise<WaitForWork>;
}

const SCENARIOS: readonly Scenario[] = [
	{ name: "planned, synchronous", isSynchronous: true },
	{ name: "asynchronous, lagging", lags: true },
	{ name: "lagging, with a gateway", lags: true, losesGateway: true },
	{ name: "lagging, JOURNAL=host", lags: true, env: { JOURNAL: "host" } },
	{ name: "lagging, WORKERS=2", lags: true, env: { WORKERS: "2" } },
	{ name: "lagging, idempotency keys", lags: true, isIdempotent: true },
	{ name: "lagging, during a batch", lags: true, work: runBatch },
	{ name: "lagging, Stripe's webhooks", lags: true, work: payByCard },
	{ name: "lagging, sealing of a day", lags: true, work: sealDay },
	{ name: "two promotions in a row", lags: true, times: 2 },
	{ name: "three promotions at once", lags: true, times: 3, isHurried: true },
	{ name: "two rollbacks in a row", rollsBack: true, times: 2 },
];

const LAG_MS = 3_000;
const AFTER_MS = 4_000;
const PAUSE_MS = 20;
/** Milliseconds per answer, so that a batch still runs when replication stops and when the failover starts. */
const BATCH_ANSWER_MS = 300;

type Key = Customer["key"];

/** Sends requests to both instances until it is stopped. */
function startTraffic(world: FailoverWorld, key: Key, isIdempotent: boolean) {
	const answered: string[] = [];
	const refusedAtMs: number[] = [];
	const unexpected: string[] = [];
	let stopped = false;
	const runs = world.members.map(async (member) => {
		let again: string | undefined;
		while (!stopped || again !== undefined) {
			const token = again ?? crypto.randomUUID();
			const headers: Record<string, string> = isIdempotent ? { "idempotency-key": token } : {};
			const body = bodyOf({ words: 4, stream: false, maxTokens: 12 });
			const sent = postJson(`${member.url}/v1/chat/completions`, key.secret, body, { headers });
			const response = await sent.catch(() => undefined);
			const id = uuidOf(response?.headers.get("x-request-id") ?? null);
			const text = await response?.text().catch(() => undefined);
			if (response?.status === 200 && text !== undefined && id !== undefined) {
				answered.push(id);
				again = undefined;
			} else {
				refusedAtMs.push(performance.now());
				if (response !== undefined && ![503, 409].includes(response.status))
					unexpected.push(`${response.status} ${text?.slice(0, 120)}`);
				if (isIdempotent) again = token;
			}
			await Bun.sleep(PAUSE_MS);
		}
	});
	return {
		answered,
		unexpected,
		refusedS: () => (refusedAtMs.length === 0 ? 0 : (Math.max(...refusedAtMs) - Math.min(...refusedAtMs)) / 1_000),
		async stop() {
			stopped = true;
			await Promise.all(runs);
		},
	};
}

async function play(scenario: Scenario) {
	const { env = {}, times = 1 } = scenario;
	const workers = Number(scenario.env?.WORKERS ?? 1);
	const slow = scenario.work === runBatch ? { batchAnswerMs: BATCH_ANSWER_MS } : {};
	await using world = await startFailoverWorld({ env, workers, ...slow });
	const { fleet, members, servers } = world;
	const account = await fleet.account();
	const [key, ...others] = await Promise.all(Array.from({ length: times + 1 }, () => fleet.key(account)));
	if (key === undefined) throw new Error("no key was made");
	await world.untilReady();
	if (scenario.isSynchronous) await servers.waitForStandby();
	if (scenario.rollsBack) await servers.snapshot();
	await world.untilReady();
	const endOfWork = await scenario.work?.(world, { account, key });
	const traffic = startTraffic(world, key, scenario.isIdempotent ?? false);
	let [present, next] = [servers.primary, servers.standby];
	const acts: boolean[] = [];
	const revoked: Key[] = [];
	for (const other of others) {
		if (other !== others[0] && !scenario.rollsBack) await servers.follow();
		const isHurried = scenario.isHurried && other !== others[0];
		if (!isHurried) await Bun.sleep(LAG_MS);
		if (scenario.lags) servers.cutReplication();
		if (!isHurried) {
			const operator = {
				...fleet.env,
				DATABASE_URL: present.url,
				DATA_DIR: `${fleet.folder}/operator-${present.port}`,
			};
			const { exitCode, stderr } = await runHere(["key", "revoke", other.id], operator);
			if (exitCode !== 0) throw new Error(`the key was not revoked: ${stderr}`);
			revoked.push(other);
			await Bun.sleep(LAG_MS);
		}
		if (scenario.rollsBack) await servers.rollBack();
		else {
			await Promise.all([present.crash(), scenario.losesGateway && members[0].crash()]);
			await servers.promote();
			world.aim(next);
			[present, next] = [next, present];
			if (scenario.losesGateway) {
				await Bun.sleep(AFTER_MS);
				await members[0].start();
			}
		}
		if (scenario.isHurried && other !== others.at(-1)) continue;
		for (const one of revoked)
			acts.push(...(await Promise.all(members.map((member) => untilRevoked(world, one, member)))));
		await world.untilReady();
		await Bun.sleep(AFTER_MS);
	}
	const sql = postgres((await migratedUrl(present.url)) ?? "", { max: 1, onnotice: () => {} });
	try {
		const work = (await endOfWork?.(sql)) ?? { answers: 0, problems: [] };
		await traffic.stop();
		await world.untilReady();
		return await judge(world, sql, { scenario, traffic, acts, work });
	} finally {
		await sql.end();
	}
}

/** Waits until the revoked key is refused after the switch. False at the deadline. */
async function untilRevoked(world: FailoverWorld, key: Key, member: FleetMember): Promise<boolean> {
	const untilMs = performance.now() + LEASE_TTL_MS;
	for (;;) {
		const { code } = await world.ask(key, member);
		if (code === "api_key_revoked") return true;
		if (performance.now() > untilMs) return false;
		await Bun.sleep(PAUSE_MS);
	}
}

async function judge(
	world: FailoverWorld,
	sql: postgres.Sql,
	found: {
		scenario: Scenario;
		traffic: ReturnType<typeof startTraffic>;
		acts: readonly boolean[];
		work: Awaited<ReturnType<WaitForWork>>;
	},
) {
	const { traffic, scenario } = found;
	const truth = new Map<string, number>();
	for (const { requestId, prompt, sent } of await world.upstream.report()) {
		const id = uuidOf(requestId) ?? requestId;
		truth.set(id, (truth.get(id) ?? 0) + costOf(prompt, sent));
	}
	const read = async () => {
		const rows = await sql`
			select request_id, charged_nano_usd + written_off_nano_usd as cost from usage_event where instance_id <> ${PAST_INSTANCE}`;
		return new Map(rows.map((row) => [String(row.request_id), Number(row.cost)]));
	};
	let books = await read();
	// Removes duplicates: an answer that is replayed from its idempotency key has the first request's id.
	const ids = [...new Set(traffic.answered)];
	const missing = () => ids.filter((id) => truth.has(id) && books.get(id) !== truth.get(id)).length;
	for (let left = 40; left > 0 && missing() > 0; left--) {
		await Bun.sleep(250);
		books = await read();
	}
	const twice = [...books].filter(([id, cost]) => cost > (truth.get(id) ?? 0)).length;
	const sum = (costs: Iterable<number>) => [...costs].reduce((all, cost) => all + cost, 0);
	const acts = found.acts.filter(Boolean).length;
	const problems = [...traffic.unexpected, ...found.work.problems];
	const ok =
		missing() === 0 &&
		twice === 0 &&
		acts === found.acts.length &&
		sum(books.values()) <= sum(truth.values()) &&
		problems.length === 0;
	return {
		scenario: scenario.name,
		answers: ids.length + found.work.answers,
		lost: missing(),
		twice,
		acts: `${acts} of ${found.acts.length}`,
		refusedS: traffic.refusedS().toFixed(1),
		ok,
		note: problems.slice(0, 3).join("; "),
	};
}

const only = process.argv[2];
let failed = false;
console.log(
	"| scenario | answers | lost | charged twice | acts in force | seconds with 503 |\n|---|--:|--:|--:|--:|--:|",
);
for (const scenario of SCENARIOS.filter(({ name }) => only === undefined || name.includes(only))) {
	const { scenario: name, answers, lost, twice, acts, refusedS, ok, note } = await play(scenario);
	failed ||= !ok;
	console.log(`| ${name} | ${answers} | ${lost} | ${twice} | ${acts} | ${refusedS} |${ok ? "" : ` FAILED ${note}`}`);
}
process.exit(failed ? 1 : 0);
