/** Alternating rounds over all gateways, so that ratios are computed within a round. */
import { directGateway, type Gateway } from "./gateways.ts";
import { cpuMicros } from "./process-usage.ts";
import { percentile } from "./statistics.ts";
import type { Answers, World } from "./world.ts";

/** Measures each gateway in each round and passes the result to `note`, except those of the warm-up round. */
export async function eachRound<T>(
	{ mode }: World,
	gateways: readonly Gateway[],
	measure: (gateway: Gateway, durationMs: number, isWarmUp: boolean) => Promise<T>,
	note: (gateway: Gateway, result: T) => void,
): Promise<void> {
	for (let round = 0; round <= mode.rounds; round++)
		for (const gateway of gateways) {
			const result = await measure(gateway, round === 0 ? mode.warmUpMs : mode.windowMs, round === 0);
			if (round > 0) note(gateway, result);
		}
}

/** As `eachRound`, with the same round's result of requests directly to the model server. */
export async function eachRoundOverDirect<T>(
	world: World,
	gateways: readonly Gateway[],
	measure: (gateway: Gateway, durationMs: number, isWarmUp: boolean) => Promise<T>,
	note: (gateway: Gateway, result: T, base: T) => void,
): Promise<void> {
	const direct = directGateway(world.upstreamPort);
	let base: T | undefined;
	await eachRound(world, [direct, ...gateways], measure, (gateway, result) => {
		if (gateway === direct) base = result;
		else note(gateway, result, base as T);
	});
}

/** Runs a load; adds the CPU time of the gateway and of Postgres in microseconds. */
export async function timed<T extends Answers>(
	world: World,
	gateway: Gateway,
	run: (begin: () => void) => Promise<T>,
): Promise<T & { cpu: number; postgresCpu: number }> {
	const usage = () => ({ cpu: cpuMicros(gateway.pids()), postgresCpu: cpuMicros(world.postgres.pids()) });
	let before = usage();
	const begin = () => {
		before = usage();
	};
	const result = await world.charged(gateway, () => run(begin));
	const after = usage();
	return { ...result, cpu: after.cpu - before.cpu, postgresCpu: after.postgresCpu - before.postgresCpu };
}

/** Microseconds that a quantile of milliseconds is above that of `base`. */
export const addedMicros = (ms: Float64Array, base: Float64Array, share: number) =>
	(percentile(ms, share) - percentile(base, share)) * 1000;
