/**
 * `bun run alerts`: fires each alert by a fault in a real run with Prometheus and feeds each dashboard. Writes
 * `results/alerts.md` and `results/dashboard.svg`. Takes four minutes; needs Prometheus on the PATH. `bun run alerts --
 * ALERT…` runs only these alerts and writes nothing.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { reply } from "../../support/upstream-server.ts";
import { chat, FAULTS, newCustomer } from "./faults.ts";
import { type PanelResult, startPrometheus } from "./prometheus.ts";
import { startWorld } from "./world.ts";

const COLUMNS = 3;
const WIDTH = 400;
const HEIGHT = 190;
const LEFT = 12;
const TOP = 30;
const BOTTOM = 44;
const COLOURS = ["#0969da", "#cf222e", "#1a7f37", "#9a6700", "#8250df", "#bf3989", "#57606a", "#0a3069"];
const LEGENDS_MAX = 4;

function dashboardSvg(pictures: readonly PanelResult[]): string {
	const rows = Math.ceil(pictures.length / COLUMNS);
	const times = pictures.flatMap(({ lines }) => lines.flatMap(({ sample }) => sample.values.map(([at]) => at)));
	const span = { from: Math.min(...times), to: Math.max(...times) };
	const panels = pictures.map((picture, at) => {
		const [x, y] = [(at % COLUMNS) * WIDTH, Math.floor(at / COLUMNS) * HEIGHT];
		return `<g transform="translate(${x} ${y})">${panelOf(picture, span)}</g>`;
	});
	return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${COLUMNS * WIDTH} ${rows * HEIGHT}" font-family="system-ui, sans-serif" font-size="10" fill="#24292f">
<title>The dashboard's queries over a run, as Prometheus answered them</title>
<rect width="100%" height="100%" fill="#ffffff"/>
${panels.join("\n")}
</svg>
`;
}

function panelOf({ title, unit, lines }: PanelResult, { from, to }: { from: number; to: number }): string {
	const known = lines.map(({ legend, sample }) => ({
		legend,
		points: sample.values
			.map(([at, value]) => [at, Number(value)] as const)
			.filter(([, value]) => Number.isFinite(value)),
	}));
	const most = Math.max(1e-9, ...known.flatMap(({ points }) => points.map(([, value]) => value)));
	const place = ([at, value]: readonly [number, number]) => {
		const x = LEFT + ((at - from) / Math.max(1, to - from)) * (WIDTH - 2 * LEFT);
		const y = HEIGHT - BOTTOM - (Math.max(0, value) / most) * (HEIGHT - TOP - BOTTOM);
		return `${x.toFixed(1)},${y.toFixed(1)}`;
	};
	const paths = known.map(({ points }, nth) => {
		const colour = COLOURS[nth % COLOURS.length];
		return `<polyline points="${points.map(place).join(" ")}" fill="none" stroke="${colour}" stroke-width="1.2"/>`;
	});
	const legends = known.slice(0, LEGENDS_MAX).map(({ legend }, nth) => {
		const colour = COLOURS[nth % COLOURS.length];
		return `<text x="${LEFT + (nth % 2) * 190}" y="${HEIGHT - 24 + 12 * Math.floor(nth / 2)}" fill="${colour}">${escaped(legend)}</text>`;
	});
	const more = known.length > LEGENDS_MAX ? ` (${known.length} series)` : "";
	return `<rect x="4" y="4" width="${WIDTH - 8}" height="${HEIGHT - 8}" fill="none" stroke="#d0d7de"/>
<text x="${LEFT}" y="20" font-weight="600">${escaped(title)}${more}</text>
<text x="${WIDTH - LEFT}" y="20" text-anchor="end">to ${numberText(most)} ${unit}</text>
${paths.join("\n")}
${legends.join("\n")}`;
}

const numberText = (value: number) => (value >= 1_000 ? value.toExponential(1) : String(Number(value.toPrecision(3))));
const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

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
	// Prometheus computes increases only from the second scrape of a series on.
	await Bun.sleep(12_000);
	for (const { what, alerts, run, mend } of faults) {
		const atMs = Date.now();
		// An alert that already fires before its fault proves nothing.
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
the rules of \`deploy/prometheus\`, scraped every other second and evaluated each second. \`for\` is 2 s and windows are 30 s there; three limits
differ from production, because a run does not reach the real ones: memory (50 MB), age of the books' check (20 s), free disk (always too little).

| alert | what was done | fired after, s |
|---|---|--:|
${rows.join("\n")}

${unfired.length === 0 ? `All ${prometheus.alerts.length} fired.` : `Not fired: ${unfired.join(", ")}.`}

${pictures.length} pictures of \`deploy/grafana\` with ${queries} series over ${seconds(startedMs)} s; ${empty.length === 0 ? "each of their queries had an answer" : `without an answer: ${empty.join("; ")}`}:

![The dashboard's queries over the run, drawn from Prometheus' answers](dashboard.svg)
	`,
	);
}
