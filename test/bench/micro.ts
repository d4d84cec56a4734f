/**
 * The price of the single steps of a request, so that a regression has an address.
 *
 *     bun run bench:micro                 all steps
 *     bun run bench:micro -- sse ledger   those whose name holds one of these words
 *
 * Each figure is the median of 25 samples of about 10 ms in this process alone, and the fastest of them.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSteps } from "./micro-steps.ts";
import { spreadOf } from "./statistics.ts";
import type { Step } from "./step.ts";

const SAMPLES = 25;
const SAMPLE_MS = 10;

const folder = mkdtempSync(join(tmpdir(), "tollgate-micro-"));
/** Kept, so that no step can be optimised away. */
let sink: unknown;

const wanted = process.argv.slice(2);
try {
	const chosen = ({ name }: Step) => wanted.length === 0 || wanted.some((word) => name.includes(word));
	const steps = (await createSteps(folder)).filter(chosen);
	const lines = [];
	for (const step of steps) lines.push(await measure(step));
	process.stdout.write(`| step | median | fastest |\n|---|--:|--:|\n${lines.join("\n")}\n`);
} finally {
	rmSync(folder, { recursive: true, force: true });
}
process.exit(sink === undefined ? 1 : 0);

/** Microseconds of one. */
async function measure({ name, per, run, after }: Step): Promise<string> {
	const time = async (calls: number) => {
		const startedMs = performance.now();
		for (let call = 0; call < calls; call++) {
			sink = run();
			if (sink instanceof Promise) await sink;
		}
		const elapsedMs = performance.now() - startedMs;
		// Whatever the step left to timers and to the collector happens between the samples.
		if (after) await after();
		else await Bun.sleep(0);
		return elapsedMs;
	};
	let calls = 1;
	while ((await time(calls)) < SAMPLE_MS) calls *= 2;
	const samples = [];
	for (let sample = 0; sample < SAMPLES; sample++) samples.push(((await time(calls)) * 1000) / calls / per);
	const { median, min } = spreadOf(samples);
	const text = (micros: number) => (micros >= 100 ? micros.toFixed(0) : micros.toFixed(3));
	return `| ${name} | ${text(median)} µs | ${text(min)} µs |`;
}
