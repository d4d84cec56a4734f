import type { Cleanup } from "../base/cleanup.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { nextTurn } from "../base/time-slice.ts";
import type { BodyReads } from "../gateway/body/body-reads.ts";
import type { OpenStreams } from "../gateway/serve/open-streams.ts";
import type { InstanceLease } from "../ledger/instance-lease.ts";
import type { Upstreams } from "../upstream/upstreams.ts";
import { drainListener } from "./drain-listener.ts";

/** Time in which the last settlements may be written after the drain. */
export const FORCED_STOP_MS = 2_000;

/** Time in which the last errors may reach clients; slow readers are not awaited longer. */
const LAST_ANSWERS_MS_MAX = 500;
const LOOK_MS = 5;

interface Stops {
	stop(now?: boolean): Promise<unknown>;
}

/** Drains a gateway: serves running requests until the deadline, then returns all credit to Postgres. */
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
	// Credit is returned after the last request, because a body that is still arriving is served. The internal server
	// stops after the public one, because consoles forward requests of waiting clients to it.
	const closed = server.stop().then(() => plane.internalServer?.stop());
	await Promise.race([closed, Bun.sleep(leftMs())]);
	const drained = instanceLease.stop(leftMs() + FORCED_STOP_MS);
	await Promise.race([drained, Bun.sleep(leftMs())]);
	// At the deadline, the remaining clients get an error with the usage so far.
	plane.openStreams.shutDown();
	plane.upstreams.letGo();
	plane.bodyReads.letGo();
	// In the next event-loop turn the runtime sends the clients' last bytes.
	await nextTurn();
	for (const deadline = performance.now() + LAST_ANSWERS_MS_MAX; server.pendingRequests > 0; await Bun.sleep(LOOK_MS))
		if (performance.now() >= deadline) break;
	await server.stop(true);
	// The journal has all settlements, but an operator who deletes the volume would lose them.
	if (!(await drained))
		log.warn("some settlements are not in the database: the journal keeps them for the next start on this DATA_DIR");
	await plane.cleanup.run();
}
