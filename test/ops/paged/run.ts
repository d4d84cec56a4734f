/**
 * `bun run alerts`: fires each alert by a fault in a real run with Prometheus and feeds each dashboard. Writes
 * `results/alerts.md` and `results/dashboard.svg`. Takes four minutes; needs Prometheus on the PATH. `bun run alerts --
 * ALERT…` runs only these alerts and writes nothing.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { reply } from "../../support/upstream-server.ts";
import { chat, FAULTS, newCustomer } from "./faults.ts";
import { dashboardSvg } from "./picture.ts";
import { startPrometheus } from "./prometheus.ts";
import { startWorld } from "./world.ts";

const RESULTS = join(import.meta.dir, "results");
const FAULT_MS_MAX = 70_000;
const LOAD_MS = 100;

const asked = process.argv.slice(2);
const faults = FAULTS.filter(({ alerts }) => asked.length === 0 || alerts.some((alert) => asked.includes(alert)));
const world = await startWorld();
const prometheus = await startPrometheus([world.url, world.second.url].map((url) => new URL(url).host));
const startedMs = Date.now();
const seconds = (sinceMs: number) => ((Date.now() - sinceMs) / 1_000).toFixed(0);
const rows: string[] = [];
const fired = new Set<string>();
let pictures: Awaited<ReturnType<typeof prometheus.pictures>> = [];
try {
	Object.assign(world, await newCustomer(world));
	let turn = 0;
	const load = setInterval(() => {
		turn += 1;
		const stream = turn % 2 === 0;
		if (stream) world.steady.next(reply().text("a b c d e").trickle(30));
		void chat(world, "steady", world.secret, { stream });
	}, LOAD_MS);
	const others = setInterval(() => void chat(world, "shaky"), 10 * LOAD_MS);
	// Prometheus counts growth only from a series' second scrape.
	await Bun.sleep(12_000);
	for (const { what, alerts, run, mend } of faults) {
		const atMs = Date.now();
		// An alert that fires before its fault proves nothing.
		const before = what.startsWith("nothing") ? new Set<string>() : await prometheus.firing();
		const doing = run(world).catch((error) => console.log(`  ${what}: ${error}`));
		const missing = new Set(alerts);
		while (missing.size > 0 && Date.now() - atMs < FAULT_MS_MAX) {
			await Bun.sleep(500);
			const firing = await prometheus.firing();
			for (const alert of missing) {
				if (!firing.has(alert)) continue;
				missing.delete(alert);
				fired.add(alert);
				const already = before.has(alert) ? ", and before" : "";
				rows.push(`| ${alert} | ${what} | ${seconds(atMs)}${already} |`);
				console.log(`${seconds(startedMs).padStart(5)} s  ${alert}: ${what}${already}`);
			}
		}
		for (const alert of missing) {
			rows.push(`| ${alert} | ${what} | **did not fire** |`);
			console.log(`${seconds(startedMs).padStart(5)} s  ${alert} DID NOT FIRE: ${what}`);
		}
		await mend?.(world);
		await doing;
	}
	clearInterval(load);
	clearInterval(others);
	await Bun.sleep(3_000);
	pictures = await prometheus.pictures(startedMs);
} finally {
	await prometheus.stop();
	await world.stop();
}
const wanted = prometheus.alerts.filter((alert) => asked.length === 0 || asked.includes(alert));
const unfired = wanted.filter((alert) => !fired.has(alert));
const empty = pictures.flatMap((picture) => picture.empty.map((expr) => `${picture.title}: ${expr}`));
if (asked.length === 0) writeResults();
console.log(
	unfired.length + empty.length === 0 ? "all fired, all pictures have data" : `unfired ${unfired} empty ${empty}`,
);
process.exit(unfired.length + empty.length === 0 ? 0 : 1);

function writeResults(): void {
	mkdirSync(RESULTS, { recursive: true });
	writeFileSync(join(RESULTS, "dashboard.svg"), dashboardSvg(pictures));
	const queries = pictures.length === 0 ? 0 : pictures.reduce((sum, { lines }) => sum + lines.length, 0);
	writeFileSync(
		join(RESULTS, "alerts.md"),
		`# Alerts in a real run

By \`bun run alerts\`: two instances (one with two workers and a console), PostgreSQL, model servers, and Prometheus with
the rules of \`deploy/prometheus\`, scraped every other second and evaluated each second. \`for\` is 2 s and windows are 30 s there; two limits
are lower, since no run reaches them: memory (50 MB) and the age of the books' check (20 s).

| alert | what was done | fired after, s |
|---|---|--:|
${rows.join("\n")}

${unfired.length === 0 ? `All ${prometheus.alerts.length} fired.` : `Not fired: ${unfired.join(", ")}.`}

${pictures.length} pictures of \`deploy/grafana\` with ${queries} series over ${seconds(startedMs)} s; ${empty.length === 0 ? "each of their queries had an answer" : `without an answer: ${empty.join("; ")}`}:

![The dashboard's queries over the run, drawn from Prometheus' answers](dashboard.svg)
	`,
	);
}
