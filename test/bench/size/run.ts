/**
 * What things cost in years of books: each beside the same at 1 % of the size, in time and in counts that another load
 * on the machine cannot change (statements, pages of 8 KB, bytes of log).
 *
 *     bun run bench:size                                  a hundred million settled requests, a million accounts: an hour, 60 GB
 *     bun run bench:size -- --rows 6000000 --accounts 100000
 *     … --folder FOLDER          fills and measures in this folder, and keeps it: a size that is filled there is not
 *                                filled again, so that filling (--fill) and measuring may be done apart
 *     … --only 1% | 100%         one of the two sizes
 *     … --steps console,books    some of the steps; figures of the others are those of the last run in this folder
 *
 * A day has as many requests at either size: the larger one has the longer history and more customers. Writes
 * `../results/size.md` if both sizes were measured.
 */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { describeMachine } from "../machine.ts";
import type { SizeFigures } from "./measure.ts";
import { measureSize, STEP_NAMES } from "./measure.ts";
import { filledServer } from "./server.ts";
import { sizeTable } from "./table.ts";

const { values: flags } = parseArgs({
	options: {
		rows: { type: "string", default: "100000000" },
		accounts: { type: "string", default: "1000000" },
		folder: { type: "string" },
		only: { type: "string" },
		steps: { type: "string", default: STEP_NAMES.join(",") },
		fill: { type: "boolean", default: false },
	},
});
const ROWS_PER_DAY = 100_800;
const SHARES = { "1%": 0.01, "100%": 1 } as const;
const startedMs = performance.now();
const say = (line: string) =>
	process.stderr.write(`${((performance.now() - startedMs) / 1000).toFixed(0).padStart(5)} s  ${line}\n`);
const folder = flags.folder ?? mkdtempSync(join(tmpdir(), "tollgate-size-"));
chmodSync(folder, 0o755);
const measured: Partial<Record<keyof typeof SHARES, SizeFigures>> = {};
try {
	for (const [name, share] of Object.entries(SHARES) as [keyof typeof SHARES, number][]) {
		if (flags.only !== undefined && flags.only !== name) continue;
		const size = {
			usageRows: Number(flags.rows) * share,
			rowsPerDay: ROWS_PER_DAY,
			accounts: Math.round(Number(flags.accounts) * share),
		};
		say(
			`${name}: ${size.usageRows.toLocaleString("en-US")} settled requests, ${size.accounts.toLocaleString("en-US")} accounts`,
		);
		const own = join(folder, name.replace("%", ""));
		const server = await filledServer(own, size, say);
		try {
			if (flags.fill) continue;
			const steps = STEP_NAMES.filter((step) => flags.steps.split(",").includes(step));
			const figures = withKept(own, await measureSize(server.filled, server, own, say, steps));
			measured[name] = figures;
			await Bun.write(join(own, "figures.json"), JSON.stringify(figures));
		} finally {
			await server.stop();
		}
	}
} finally {
	if (flags.folder === undefined) rmSync(folder, { recursive: true, force: true });
}
for (const name of Object.keys(SHARES) as (keyof typeof SHARES)[]) {
	const kept = Bun.file(join(folder, name.replace("%", ""), "figures.json"));
	if (flags.folder !== undefined && measured[name] === undefined && (await kept.exists()))
		measured[name] = await kept.json();
}
const [small, large] = [measured["1%"], measured["100%"]];
if (small !== undefined && large !== undefined) {
	const run = { at: new Date().toISOString(), machine: describeMachine(), small, large };
	await Bun.write(join(import.meta.dir, "../results/size.md"), sizeTable(run));
	process.stdout.write(sizeTable(run));
}

function withKept(own: string, figures: SizeFigures): SizeFigures {
	const path = join(own, "figures.json");
	if (!existsSync(path)) return figures;
	const kept = JSON.parse(readFileSync(path, "utf8")) as SizeFigures;
	return { ...figures, costs: { ...kept.costs, ...figures.costs }, notes: { ...kept.notes, ...figures.notes } };
}
