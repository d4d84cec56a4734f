/** Plays a trace to gateways that know nothing of each other, with simulated servers. */
import { createTimeline } from "../sim/timeline.ts";
import { createRandom, type Random } from "../support/random.ts";
import { nowS, type Served, type ServerKind, SimulatedServer } from "./servers.ts";
import type { TraceRequest } from "./trace.ts";

export interface Cell extends ServerKind {
	readonly servers: number;
	readonly gateways: number;
	/** Factor by which arrivals are faster than in the trace. */
	readonly speed: number;
}

/** The information that a policy of one gateway may use. Only the oracle looks at the servers. */
export interface PolicyWorld {
	readonly servers: readonly SimulatedServer[];
	readonly cacheBlocks: number;
	nowS(): number;
	readonly random: Random;
}

/** The choices of one gateway. */
export interface Policy {
	/** Returns the server's index. `busy`: running requests of this gateway by server. */
	choose(request: TraceRequest, busy: readonly number[]): number;
	/** Called after `choose`; returns the functions to call at the request's first token and end. */
	sent?(): { first(): void; over(cachedTokens: number): void };
}

export interface Result {
	/** Mean number of seconds to the first token. */
	readonly mean: number;
	readonly p50: number;
	readonly p99: number;
	/** Share of the prompt tokens that were in caches. */
	readonly hit: number;
	/** Prefill time of the busiest server, divided by the mean of all servers. */
	readonly imbalance: number;
	/** Mean share of the time in which servers prefill. */
	readonly load: number;
}

export function simulate(
	trace: readonly TraceRequest[],
	cell: Cell,
	createPolicy: (world: PolicyWorld) => Policy,
	seed = 1,
): Result {
	const time = createTimeline();
	const random = createRandom(seed);
	const servers = Array.from({ length: cell.servers }, (_, at) => new SimulatedServer(time, cell, at === 0));
	const world = { servers, cacheBlocks: cell.cacheBlocks, nowS: () => nowS(time), random };
	const gateways = Array.from({ length: cell.gateways }, () => ({
		policy: createPolicy(world),
		busy: servers.map(() => 0),
	}));
	const firstS: number[] = [];
	const startS = trace[0]?.atS ?? 0;
	for (const request of trace)
		time.after(((request.atS - startS) / cell.speed) * 1000, "arrival", () => {
			const { policy, busy } = random.pick(gateways);
			const chosen = policy.choose(request, busy);
			const note = policy.sent?.();
			const sentS = nowS(time);
			busy[chosen] = (busy[chosen] as number) + 1;
			const served: Served = {
				request,
				cachedTokens: 0,
				first() {
					firstS.push(nowS(time) - sentS);
					note?.first();
				},
				over() {
					busy[chosen] = (busy[chosen] as number) - 1;
					note?.over(served.cachedTokens);
				},
			};
			(servers[chosen] as SimulatedServer).send(served);
		});
	while (time.step(Number.POSITIVE_INFINITY));
	return resultOf(firstS, servers, trace, ((trace.at(-1)?.atS ?? 0) - startS) / cell.speed);
}

function resultOf(
	firstS: number[],
	servers: readonly SimulatedServer[],
	trace: readonly TraceRequest[],
	lastsS: number,
): Result {
	firstS.sort((a, b) => a - b);
	const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);
	const at = (share: number) => firstS[Math.floor(firstS.length * share)] ?? 0;
	const busyS = servers.map((server) => server.busyS);
	const meanS = sum(busyS) / servers.length;
	return {
		mean: sum(firstS) / firstS.length,
		p50: at(0.5),
		p99: at(0.99),
		hit: sum(servers.map(({ hitTokens }) => hitTokens)) / sum(trace.map(({ promptTokens }) => promptTokens)),
		imbalance: Math.max(...busyS) / meanS,
		load: meanS / lastsS,
	};
}
