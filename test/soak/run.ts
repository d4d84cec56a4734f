/**
 * A million requests and 100,000 aborted ones on the shipped product, then a check of its memory, open files and books.
 *
 *     bun run soak                                        some minutes
 *     bun run soak -- --requests 100000 --aborts 10000    shorter
 *
 * Prints a table and, with the full numbers, writes it to `test/bench/results/soak.md`. Exit code 1 for leftovers.
 */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { UpstreamCount } from "../bench/fast-upstream.ts";
import { startPortPrinter } from "../bench/gateways.ts";
import { describeMachine } from "../bench/machine.ts";
import { startBenchPostgres, startProduct } from "../bench/product.ts";
import { buildBinary } from "../packaging/build-binary.ts";
import { megabytes, type Reading, runSoak, type SoakPlan, type SoakReport } from "./soak.ts";

const FULL = { requests: 1_000_000, aborts: 100_000 };
const KEYS = 16;
const GROWTH_BYTES_MAX = 48 * 1024 * 1024;

const { values: flags } = parseArgs({
	options: {
		requests: { type: "string", default: String(FULL.requests) },
		aborts: { type: "string", default: String(FULL.aborts) },
	},
});
const plan: SoakPlan = {
	requests: Number(flags.requests),
	aborts: Number(flags.aborts),
	warmUpShare: 0.1,
	connections: 64,
	growthBytesMax: GROWTH_BYTES_MAX,
	seed: 20_261_121,
};
const at = new Date().toISOString();
const folder = mkdtempSync(join(tmpdir(), "tollgate-soak-"));
chmodSync(folder, 0o755);
const ends: (() => Promise<unknown> | unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
let ok = false;
try {
	const report = await soak();
	ok = report.checks.every((check) => check.ok);
	const text = markdownOf(report);
	process.stdout.write(text);
	const full = plan.requests === FULL.requests && plan.aborts === FULL.aborts;
	if (full) await Bun.write(join(import.meta.dir, "../bench/results/soak.md"), text);
} finally {
	for (const end of ends.reverse()) await end();
}
process.exit(ok ? 0 : 1);

async function soak(): Promise<SoakReport> {
	const command = [await buildBinary(join(folder, "tollgate"))];
	const postgres = await startBenchPostgres(join(folder, "postgres"));
	ends.push(() => postgres.stop());
	const database = await postgres.database("soak");
	ends.push(() => database.close());
	const { secrets } = await database.customer(KEYS);
	const upstream = await startPortPrinter("the upstream", [
		process.execPath,
		join(import.meta.dir, "../bench/fast-upstream.ts"),
	]);
	ends.push(() => upstream.stop());
	const gateway = await startProduct({
		command,
		databaseUrl: database.url,
		upstreamPort: upstream.port,
		folder: join(folder, "service"),
		pinned: false,
	});
	ends.push(() => gateway.stop());
	const upstreamCount = async () =>
		(await (await fetch(`http://127.0.0.1:${upstream.port}/count`)).json()) as UpstreamCount;
	return runSoak({ gateway, database, secrets, upstreamCount }, plan, (line) => process.stderr.write(`${line}\n`));
}

function markdownOf({ before, after, seconds, answered, checks }: SoakReport): string {
	const machine = describeMachine();
	const row = (name: string, of: (reading: Reading) => string) => `| ${name} | ${of(before)} | ${of(after)} |`;
	const rows = [
		row("resident memory", (reading) => megabytes(reading.residentBytes)),
		row("JavaScript heap", (reading) => megabytes(reading.heapBytes)),
		row("open files", (reading) => String(reading.files)),
		row("running requests", (reading) => String(reading.running)),
		row("queued settlements", (reading) => String(reading.queued)),
		row("open streams, to clients and upstream", (reading) => `${reading.streams}, ${reading.upstreamOpen}`),
	];
	const results = checks.map(
		(check) => `- ${check.ok ? "holds" : "**does not hold**"}: ${check.name} (${check.detail})`,
	);
	return `# Soak

${at}, ${seconds.toFixed(0)} s, ${machine.cpu}, ${machine.cores} cores, Linux ${machine.kernel}, Bun ${machine.bun}.
${answered.toLocaleString("en-US")} requests answered, one in eight of them streamed, and ${(plan.aborts * (1 + plan.warmUpShare)).toLocaleString("en-US")} clients that hung up, a tenth of both before the first reading.

| | after the warm-up | at the end |
|---|--:|--:|
${rows.join("\n")}

${results.join("\n")}
`;
}
