/**
 * Plays failovers under traffic and checks the books against the upstream's own count: `bun test/failover/run.ts`
 * prints one line per scenario. Exit code 1 if a claim fails.
 */
import postgres from "postgres";
import { revokeKey } from "../../src/keys/key-admin.ts";
import { batchesAt, chatLine, isOver, type ShownBatch } from "../batch/batch-service.ts";
import { type FleetMember, LEASE_TTL_MS, NANO_USD_A_PROMPT_TOKEN, NANO_USD_AN_OUTPUT_TOKEN } from "../chaos/fleet.ts";
import { waitFor } from "../support/wait.ts";
import { type FailoverWorld, startFailoverWorld } from "./failover-world.ts";

interface Scenario {
	readonly name: string;
	readonly env?: Readonly<Record<string, string>>;
	/** Commits wait for the standby. */
	readonly isSynchronous?: boolean;
	/** The standby lacks the last seconds. */
	readonly lags?: boolean;
	/** How often the primary goes back to a snapshot instead of a promotion. */
	readonly rollsBack?: number;
	/** Each request has an idempotency key and is repeated with it until it is answered. */
	readonly isIdempotent?: boolean;
	/** Lines of a batch that runs during the failover. */
	readonly lines?: number;
}

const SCENARIOS: readonly Scenario[] = [
	{ name: "planned, synchronous", isSynchronous: true },
	{ name: "asynchronous, lagging", lags: true },
	{ name: "lagging, JOURNAL=host", lags: true, env: { JOURNAL: "host" } },
	{ name: "lagging, WORKERS=2", lags: true, env: { WORKERS: "2" } },
	{ name: "lagging, idempotency keys", lags: true, isIdempotent: true },
	{ name: "lagging, during a batch", lags: true, lines: 2_000 },
	{ name: "two rollbacks in a row", rollsBack: 2 },
];

const LAG_MS = 3_000;
const AFTER_MS = 4_000;
const PAUSE_MS = 20;
/** Slow enough that the batch is running when the failover starts, and when replication ends before. */
const BATCH_ANSWER_MS = 300;
const BATCH_MS_MAX = 120_000;

interface Key {
	readonly id: string;
	readonly secret: string;
}

/** Sends requests from both members until it is stopped. */
function startTraffic(world: FailoverWorld, key: Key, isIdempotent: boolean) {
	const answered: string[] = [];
	const refusedAtMs: number[] = [];
	const unexpected: string[] = [];
	let stopped = false;
	const runs = world.members.map(async (member) => {
		let again: string | undefined;
		while (!stopped || again !== undefined) {
			const token = again ?? crypto.randomUUID();
			const response = await fetch(`${member.url}/v1/chat/completions`, {
				method: "POST",
				headers: {
					"content-type": "application/json",
					authorization: `Bearer ${key.secret}`,
					...(isIdempotent ? { "idempotency-key": token } : {}),
				},
				body: JSON.stringify({ model: "test-model", max_tokens: 12, messages: [{ role: "user", content: "a b c d" }] }),
			}).catch(() => undefined);
			const id = response?.headers.get("x-request-id")?.replace(/^req_/, "").replaceAll("-", "");
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

async function startBatch(world: FailoverWorld, { secret }: Key, lines: number) {
	const batches = batchesAt(world.members[0].url);
	const names = Array.from({ length: lines }, (_, at) => `line-${at}`);
	const { id } = await batches.create(
		secret,
		await batches.upload(
			secret,
			names.map((name) => chatLine(name)),
		),
	);
	/** Waits for its end. Returns how many lines have an answer; lines with a second answer do not count. */
	return async (): Promise<number> => {
		let last: ShownBatch | undefined;
		const ended = async () => {
			last = await batches.get(secret, id).catch(() => undefined);
			return last !== undefined && isOver(last);
		};
		await waitFor(ended, "the batch to end", BATCH_MS_MAX);
		const answers = await batches.lines(secret, last?.output_file_id ?? null);
		return 2 * new Set(answers.map(({ custom_id }) => custom_id)).size - answers.length;
	};
}

async function play(scenario: Scenario) {
	const workers = Number(scenario.env?.WORKERS ?? 1);
	await using world = await startFailoverWorld({
		...(scenario.env ? { env: scenario.env } : {}),
		...(scenario.lines ? { batchAnswerMs: BATCH_ANSWER_MS } : {}),
		workers,
	});
	const { fleet, members, servers } = world;
	const account = await fleet.account();
	const [key, other] = [await fleet.key(account), await fleet.key(account)];
	await world.untilReady();
	if (scenario.isSynchronous) await servers.waitForStandby();
	if (scenario.rollsBack) await servers.snapshot();
	await world.untilReady();
	const batch = scenario.lines === undefined ? undefined : await startBatch(world, key, scenario.lines);
	const traffic = startTraffic(world, key, scenario.isIdempotent ?? false);
	await Bun.sleep(LAG_MS);
	if (scenario.lags) servers.cutReplication();
	await fleet.applied(await revokeKey(fleet.statements, other));
	await Bun.sleep(LAG_MS);
	let database = servers.primary.url;
	for (let times = scenario.rollsBack ?? 0; times > 0; times--) {
		await servers.rollBack();
		await world.untilReady();
		await Bun.sleep(AFTER_MS);
	}
	if (!scenario.rollsBack) {
		await servers.primary.crash();
		await servers.promote();
		world.aim(servers.standby);
		database = servers.standby.url;
	}
	const acts = await Promise.all(members.map((member) => untilRevoked(world, other, member)));
	await world.untilReady();
	await Bun.sleep(AFTER_MS);
	const lines = await batch?.();
	await traffic.stop();
	await world.untilReady();
	const sql = postgres(database, { max: 1, onnotice: () => {}, connection: { search_path: "public" } });
	try {
		return await judge(world, sql, { scenario, traffic, acts, lines });
	} finally {
		await sql.end();
	}
}

/** Whether the revoked key is refused a lease after the switch. */
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
		lines: number | undefined;
	},
) {
	const { traffic, scenario } = found;
	const truth = new Map<string, number>();
	for (const { requestId, prompt, sent } of await world.upstream.report()) {
		const id = requestId.replaceAll("-", "");
		const cost = prompt * NANO_USD_A_PROMPT_TOKEN + sent * NANO_USD_AN_OUTPUT_TOKEN;
		truth.set(id, (truth.get(id) ?? 0) + cost);
	}
	const read = async () =>
		new Map(
			(await sql`select request_id, charged_nano_usd + written_off_nano_usd as cost from usage_event`).map((row) => [
				String(row.request_id).replaceAll("-", ""),
				Number(row.cost),
			]),
		);
	let books = await read();
	// An answer that is repeated from its idempotency key names the first request.
	const ids = [...new Set(traffic.answered)];
	const missing = () => ids.filter((id) => truth.has(id) && books.get(id) !== truth.get(id)).length;
	for (let left = 40; left > 0 && missing() > 0; left--) {
		await Bun.sleep(250);
		books = await read();
	}
	const [paid] = await sql`
		select count(*)::integer as lines from usage_event u where batch_id is not null and charged_nano_usd > 0
			and not exists (select 1 from batch_lost_request l where l.request_id = u.request_id)
			and not exists (select 1 from ledger_entry c where c.source_ref = 'batch-lost:' || u.request_id)`;
	const twice = [...books].filter(([id, cost]) => cost > (truth.get(id) ?? 0)).length;
	const sum = (costs: Iterable<number>) => [...costs].reduce((all, cost) => all + cost, 0);
	const acts = found.acts.filter(Boolean).length;
	const ok =
		missing() === 0 &&
		twice === 0 &&
		acts === found.acts.length &&
		sum(books.values()) <= sum(truth.values()) &&
		traffic.unexpected.length === 0 &&
		found.lines === scenario.lines &&
		paid?.lines === (scenario.lines ?? 0);
	return {
		scenario: scenario.name,
		answers: ids.length + (found.lines ?? 0),
		lost: missing(),
		twice,
		acts: `${acts} of ${found.acts.length}`,
		refusedS: traffic.refusedS().toFixed(1),
		ok,
		note: traffic.unexpected[0] ?? `lines answered ${found.lines}, paid ${paid?.lines}`,
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
