/**
 * One stream that goes on for half an hour beside many short requests: what of the journal it keeps, what memory, and
 * whether its charge is exact. `bun run bench:long-stream -- [--minutes 30] [--rate 400]`
 *
 * A minute of the load alone goes before and one comes after. Writes `../results/long-stream.{json,md}` unless
 * `--minutes` is less than 30. Exit code 1 if a check does not hold.
 */
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { UpstreamCount } from "../fast-upstream.ts";
import type { Gateway } from "../gateways.ts";
import { startPortPrinter } from "../gateways.ts";
import { describeMachine } from "../machine.ts";
import { residentBytes } from "../process-usage.ts";
import type { BenchDatabase } from "../product.ts";
import { chargeOf, startBenchPostgres, startProduct } from "../product.ts";
import { chatBody, SMALL_PROMPT_BYTES, streamBody } from "../prompts.ts";
import type { RawConnection } from "../raw-connection.ts";
import { chatRequestBytes, openConnection } from "../raw-connection.ts";

const { values: flags } = parseArgs({
	options: { minutes: { type: "string", default: "30" }, rate: { type: "string", default: "400" } },
});
const MINUTES = Number(flags.minutes);
const RATE = Number(flags.rate);
const LOOK_MS = 60_000;
const TICK_MS = 10;
const CONNECTIONS = 32;
const KEYS = 8;
const MB = 1024 * 1024;
/** A stream of 30 tokens a second reserves for all that it may say. */
const MAX_TOKENS = 200_000;
/** Four segments that running requests may keep, the one that is written, and one that is not yet in Postgres. */
const SEGMENTS_MAX = 6;
const GROWN_MB_MAX = 64;

interface Look {
	readonly minute: number;
	readonly served: number;
	readonly tokens: number;
	readonly segments: number;
	readonly journalMb: number;
	readonly residentMb: number;
}

const folder = mkdtempSync(join(tmpdir(), "tollgate-long-stream-"));
// Postgres runs as a user of its own and must reach its directory.
chmodSync(folder, 0o755);
const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
try {
	await run();
} finally {
	for (const end of ends.reverse()) await end();
}

async function run(): Promise<void> {
	const postgres = await startBenchPostgres(folder);
	ends.push(() => postgres.stop());
	const database = await postgres.database("long_stream");
	ends.push(() => database.close());
	const upstream = await startPortPrinter("the upstream", [
		process.execPath,
		join(import.meta.dir, "../fast-upstream.ts"),
	]);
	ends.push(() => upstream.stop());
	const many = await database.customer(KEYS);
	const talker = await database.customer(1);
	const gateway = await startProduct({
		command: [process.execPath, join(import.meta.dir, "../../../src/main.ts")],
		databaseUrl: database.url,
		upstreamPort: upstream.port,
		folder: join(folder, "gateway"),
		pinned: false,
		limits: "  total_s: 86400",
	});
	let isUp = true;
	ends.push(() => (isUp ? gateway.stop() : undefined));
	const journal = join(folder, "gateway/data/journal");
	const load = await startLoad(gateway, many.secrets);
	const looks: Look[] = [];
	const stream = { tokens: 0, status: undefined as number | undefined, reason: "" };
	const look = () => {
		looks.push({
			minute: looks.length + 1,
			served: load.served(),
			tokens: stream.tokens,
			...kept(journal),
			residentMb: Math.round(residentBytes(gateway.pids()) / MB),
		});
		process.stderr.write(`${JSON.stringify(looks.at(-1))}\n`);
	};
	await Bun.sleep(LOOK_MS);
	look();
	const ended = startStream(gateway, talker.secrets[0] ?? "", stream);
	for (let minute = 0; minute < MINUTES; minute++) {
		await Bun.sleep(LOOK_MS);
		look();
	}
	await fetch(`http://127.0.0.1:${upstream.port}/release`, { method: "POST" });
	await ended;
	await Bun.sleep(LOOK_MS);
	look();
	await load.stop();
	const count = (await (await fetch(`http://127.0.0.1:${upstream.port}/count`)).json()) as UpstreamCount;
	await gateway.stop();
	isUp = false;
	await report({ database, keyId: talker.keyIds[0] ?? "", count, looks, stream, load });
}

/** So many requests a second by the clock; what finds no free connection is counted, not made up for. */
async function startLoad(gateway: Gateway, secrets: readonly string[]) {
	const body = chatBody("plain", SMALL_PROMPT_BYTES);
	const requests = secrets.map((secret) => chatRequestBytes(gateway, secret, body));
	const free: RawConnection[] = [];
	const failures: string[] = [];
	let [sent, served, late] = [0, 0, 0];
	for (let index = 0; index < CONNECTIONS; index++) {
		const connection: RawConnection = await openConnection(gateway.port, {
			answered(status) {
				served += 1;
				if (status !== 200) failures.push(`status ${status}`);
				free.push(connection);
			},
			broke: (reason) => void failures.push(reason),
		});
		free.push(connection);
	}
	const startedMs = performance.now();
	const timer = setInterval(() => {
		const due = ((performance.now() - startedMs) / 1000) * RATE;
		for (; sent + late < due; ) {
			const connection = free.shift();
			if (connection === undefined) late += 1;
			else connection.send(requests[sent++ % requests.length] as Uint8Array);
		}
	}, TICK_MS);
	return {
		served: () => served,
		late: () => late,
		failures,
		async stop() {
			clearInterval(timer);
			while (served < sent && failures.length === 0) await Bun.sleep(TICK_MS);
			for (const connection of free) connection.close();
		},
	};
}

async function startStream(
	gateway: Gateway,
	secret: string,
	seen: { tokens: number; status: number | undefined; reason: string },
): Promise<void> {
	const { promise, resolve } = Promise.withResolvers<void>();
	const text = JSON.parse(streamBody("trickle")) as Record<string, unknown>;
	const body = JSON.stringify({ ...text, max_tokens: MAX_TOKENS });
	let rest = "";
	const connection = await openConnection(gateway.port, {
		body(bytes) {
			const events = (rest + bytes.toString("latin1")).split("\n\n");
			rest = events.pop() ?? "";
			seen.tokens += events.filter((event) => event.includes('"content":"')).length;
		},
		answered(status) {
			seen.status = status;
			resolve();
		},
		broke(reason) {
			seen.reason = reason;
			resolve();
		},
	});
	connection.send(chatRequestBytes(gateway, secret, body));
	await promise;
	connection.close();
}

/** The journal on the disk. */
function kept(root: string): { segments: number; journalMb: number } {
	const sizes = readdirSync(root, { recursive: true, encoding: "utf8" })
		.filter((name) => name.endsWith(".log"))
		.map((name) => statSync(join(root, name), { throwIfNoEntry: false })?.size ?? 0);
	return { segments: sizes.length, journalMb: Math.round(sizes.reduce((sum, size) => sum + size, 0) / MB) };
}

interface Done {
	readonly database: BenchDatabase;
	readonly keyId: string;
	readonly count: UpstreamCount;
	readonly looks: readonly Look[];
	readonly stream: { tokens: number; status: number | undefined; reason: string };
	readonly load: Awaited<ReturnType<typeof startLoad>>;
}

async function report({ database, keyId, count, looks, stream, load }: Done): Promise<void> {
	const rows = await database.sql<
		{ charged: string; prompt: number; completion: number; ending: string; basis: string; ms: number }[]
	>`select charged_nano_usd as charged, prompt_tokens as prompt, completion_tokens as completion, ending, basis, duration_ms as ms
		from usage_event where key_id = ${keyId}`;
	const [row] = rows;
	const books = await database.books();
	const during = looks.slice(1, -1);
	const most = (of: (look: Look) => number) => Math.max(...during.map(of));
	const [alone, last] = [looks[0], during.at(-1)] as [Look, Look];
	const early = during[Math.min(4, during.length - 1)] as Look;
	const grownMb = last.residentMb - early.residentMb;
	const isExact =
		rows.length === 1 &&
		row?.ending === "finished" &&
		row.basis === "exact" &&
		row.completion === stream.tokens &&
		Number(row.charged) === chargeOf(row);
	const checks: [string, boolean, string][] = [
		[
			"every request was answered",
			load.failures.length === 0 && stream.status === 200,
			`${load.failures[0] ?? stream.reason}`,
		],
		[
			"the stream's charge is its tokens, to the nano-dollar",
			isExact,
			`${JSON.stringify(rows)}, ${stream.tokens} tokens arrived`,
		],
		[
			"all charges are the upstream's count",
			books.charged === chargeOf(count),
			`${books.charged} of ${chargeOf(count)}`,
		],
		["the books reconcile", books.reconciled, books.broken.join("; ")],
		[
			"the journal stays within its segments",
			most(({ segments }) => segments) <= SEGMENTS_MAX,
			`${most(({ segments }) => segments)} segments`,
		],
		["memory stays where it was", grownMb <= GROWN_MB_MAX, `${grownMb} MB more than in its fifth minute`],
	];
	const lines = [
		"# A stream of half an hour beside short requests",
		"",
		`${new Date().toISOString().slice(0, 10)}, ${describeMachine().cpu}, ${describeMachine().cores} cores beside other work; one instance from source, \`JOURNAL=process\`. \`bun run bench:long-stream\` makes it.`,
		"",
		`${RATE} requests a second were due beside it (${load.late()} found no free connection); ${load.served().toLocaleString("en-US")} were served. The stream: ${stream.tokens.toLocaleString("en-US")} tokens in ${Math.round((row?.ms ?? 0) / 1000)} s, USD ${Number(row?.charged) / 1e9}.`,
		"",
		"| minute | served | tokens of the stream | segments | journal, MB | resident, MB |",
		"|--:|--:|--:|--:|--:|--:|",
		...looks
			.filter((one) => one.minute <= 2 || one.minute % 5 === 0 || one.minute > looks.length - 2)
			.map(
				(one) =>
					`| ${one.minute} | ${one.served} | ${one.tokens} | ${one.segments} | ${one.journalMb} | ${one.residentMb} |`,
			),
		"",
		`Before it: ${alone.segments} segments, ${alone.journalMb} MB. At most while it ran: ${most(({ segments }) => segments)} segments, ${most(({ journalMb }) => journalMb)} MB.`,
		"",
		...checks.map(([name, ok, detail]) => `- ${ok ? "holds" : "BROKEN"}: ${name}${ok ? "" : ` (${detail})`}`),
		"",
	];
	const text = lines.join("\n");
	process.stdout.write(text);
	const results = join(import.meta.dir, "../results");
	if (MINUTES >= 30) {
		await Bun.write(join(results, "long-stream.md"), text);
		await Bun.write(
			join(results, "long-stream.json"),
			`${JSON.stringify({ rate: RATE, looks, row, checks }, null, "\t")}\n`,
		);
	}
	if (checks.some(([, ok]) => !ok)) process.exitCode = 1;
}
