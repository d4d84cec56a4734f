/**
 * Real processes under faults for some minutes: `bun run chaos -- --minutes 5 --seed 42`. Without a seed it draws one
 * and prints it. Exit code 1 if a claim does not hold.
 *
 * `bun run chaos -- --midnight --minutes 5`: waits so that a midnight of some time zone, which comes every full hour,
 * is in the middle of the run; daily caps end there.
 *
 * `bun run chaos -- --locks [--only NAME]`: locks each table of the schema, then silences each connection of an
 * instance, for twice a lease; prints a line of effects each (about 20 minutes for all).
 *
 * `bun run upgrade -- --minutes 5`: the same with the former version; instances switch between both.
 */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { takeFormerVersion } from "../versions/former-version.ts";
import { type ChaosResult, runChaos } from "./chaos.ts";
import { runLocks } from "./locks.ts";
import { type Midnight, nextMidnight } from "./midnight.ts";

const { values } = parseArgs({
	args: process.argv.slice(2).filter((argument) => argument !== "--"),
	options: {
		minutes: { type: "string", default: "5" },
		seed: { type: "string" },
		users: { type: "string", default: "24" },
		midnight: { type: "boolean", default: false },
		former: { type: "boolean", default: false },
		locks: { type: "boolean", default: false },
		only: { type: "string" },
	},
});
if (values.locks) process.exit(await tryLocks());
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
const former = values.former ? takeFormerVersion() : undefined;
console.log(`seed ${seed}, ${values.minutes} minutes${former ? `, former version: ${former.name}` : ""}`);
const forMs = Number(values.minutes) * 60_000;
const midnight = values.midnight ? await beforeMidnight(forMs / 2) : undefined;
const startedMs = performance.now();
const result = await runChaos({
	seed,
	forMs,
	users: Number(values.users),
	...(former ? { former: former.program } : {}),
	...(midnight ? { midnight } : {}),
	logFolder: join(tmpdir(), `tollgate-chaos-logs-${seed}`),
	onFault: (name) => console.log(`${((performance.now() - startedMs) / 1_000).toFixed(1).padStart(7)} s  ${name}`),
});
former?.remove();
show(result);
process.exit(result.findings.every((finding) => finding.broken.length === 0) ? 0 : 1);

async function beforeMidnight(beforeMs: number): Promise<Midnight> {
	const midnight = nextMidnight(Date.now() + beforeMs);
	const { timeZone, atMs } = midnight;
	console.log(`the day ends in ${timeZone} at ${new Date(atMs).toISOString()}`);
	await Bun.sleep(atMs - beforeMs - Date.now());
	return midnight;
}

async function tryLocks(): Promise<number> {
	const { reports, broken } = await runLocks({
		only: values.only,
		onReport: ({ what, seen, breached }) => {
			const { served, refused, closedMs, revocationsMs, recoveredMs } = seen;
			const revoked = revocationsMs.map((ms) => ms ?? "given up").join(" ");
			const others = Object.entries(refused).map(([code, count]) => `, ${count} heard ${code}`);
			const gates = closedMs > 0 ? `, gates closed ${closedMs} ms, all well ${recoveredMs} ms after` : "";
			console.log(
				`${breached.length === 0 ? "   holds" : "  BROKEN"}  ${what}: ${served} served${others.join("")}${gates}, revoked in ms: ${revoked}`,
			);
			for (const breach of breached) console.log(`            ${breach}`);
		},
	});
	for (const name of broken) console.log(`  BROKEN  ${name}`);
	return broken.length + reports.filter(({ breached }) => breached.length > 0).length === 0 ? 0 : 1;
}

function show(chaos: ChaosResult): void {
	const table = (title: string, counts: Readonly<Record<string, number>>) => {
		console.log(`\n${title}`);
		for (const [name, count] of Object.entries(counts).sort()) console.log(`${String(count).padStart(8)}  ${name}`);
	};
	table("faults", chaos.faults);
	table("answers", chaos.answers);
	table("refusals of customers to whom nothing was done", chaos.refusals);
	table("endings", chaos.endings);
	const sorted = [...chaos.closings].sort((a, b) => a - b);
	const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)]?.toFixed(1) ?? "-";
	console.log(`\n${chaos.requests} requests, ${chaos.tokens} tokens, charged ${chaos.chargedNanoUsd} nano-dollars`);
	console.log(`${sorted.length} revocations and suspensions: median ${at(0.5)} ms, longest ${at(1)} ms`);
	console.log(`\nclaims (seed ${chaos.seed})`);
	for (const { claim, checked, broken } of chaos.findings) {
		console.log(`${broken.length === 0 ? "   holds" : "  BROKEN"}  ${claim} (${checked})`);
		for (const example of broken.slice(0, 5)) console.log(`            ${example}`);
		if (broken.length > 5) console.log(`            and ${broken.length - 5} more`);
	}
}
