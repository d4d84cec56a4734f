import { expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runChaos } from "./chaos.ts";

/** A run that is found broken is repeated with `CHAOS_SEED`; the long form is `bun run chaos`. */
const SEED = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 31));
const FOR_MS = 15_000;
const LOGS = join(tmpdir(), `tollgate-chaos-logs-${SEED}`);

test(`four counts agree to the nano-dollar after ${FOR_MS / 1_000} seconds of faults (seed ${SEED})`, async () => {
	const result = await runChaos({ seed: SEED, forMs: FOR_MS, users: 12, logFolder: LOGS });
	const broken = result.findings.filter((finding) => finding.broken.length > 0);
	expect(broken.map(({ claim, broken: examples }) => `${claim}: ${examples.slice(0, 3).join(" | ")}`)).toEqual([]);
	// A run in which nothing happened proves nothing.
	expect(Object.keys(result.faults).length).toBeGreaterThanOrEqual(4);
	expect(result.answers["200 whole"]).toBeGreaterThan(50);
	expect(result.findings.every((finding) => finding.checked > 0 || finding.claim.includes("recovered"))).toBe(true);
}, 120_000);
