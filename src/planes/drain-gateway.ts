import type { Cleanup } from "../base/cleanup.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { nextTurn } from "../base/time-slice.ts";
import type { BodyReads } from "../gateway/body/body-reads.ts";
import type { OpenStreams } from "../gateway/serve/open-streams.ts";
import type { InstanceLease } from "../ledger/instance-lease.ts";
import type { Upstreams } from "../upstream/upstreams.ts";
import { drainListener } from "./drain-listener.ts";

/** Time after the drain for settlements to reach Postgres. */
export const FORCED_STOP_MS = 2_000;

/** Waiting clients get their error within this time. Slow readers are not waited for. */
const LAST_ANSWERS_MS_MAX = 500;
const LOOK_MS = 5;

interface Stops {
	stop(now?: boolean): Promise<unknown>;
}

/** Drains a gateway: running requests are served until the deadline, then all credit is handed back. */
export async function drainGateway(
	plane: {
		clock: Clock;
		log: Log;
		cleanup: Cleanup;
		batches: Stops;
		server: Stops & { readonly pendingRequests: number };
		internalServer: Stops | undefined;
		instanceLease: InstanceLease;
		openStreams: OpenStreams;
		upstreams: Pick<Upstreams, "letGo">;
		bodyReads: Pick<BodyReads, "letGo">;
	},
	{ drainEndMs }: { drainEndMs: number },
): Promise<void> {
	const { clock, log, server, instanceLease } = plane;
	const leftMs = () => Math.max(0, drainEndMs - clock.monotonicMs());
	void plane.batches.stop();
	await drainListener(server);
	// Credit is handed back after the last request: a body still arriving when the listener closed is served normally.
	// The internal server stops after the public one, because consoles send requests for clients that wait there.
	const closed = server.stop().then(() => plane.internalServer?.stop());
	await Promise.race([closed, Bun.sleep(leftMs())]);
	const drained = instanceLease.stop(leftMs() + FORCED_STOP_MS);
	await Promise.race([drained, Bun.sleep(leftMs())]);
	// The remaining clients get an error event with the usage so far, or an error answer.
	plane.openStreams.shutDown();
	plane.upstreams.letGo();
	plane.bodyReads.letGo();
	// Their last writes leave with the next turn.
	await nextTurn();
	for (const deadline = performance.now() + LAST_ANSWERS_MS_MAX; server.pendingRequests > 0; await Bun.sleep(LOOK_MS))
		if (performance.now() >= deadline) break;
	await server.stop(true);
	// A clean stop: nothing is lost while the journal exists, but an operator who removes the volume must know.
	if (!(await drained))
		log.warn("some settlements are not in the database: the journal keeps them for the next start on this DATA_DIR");
	await plane.cleanup.run();
}
