import type { Cleanup } from "../base/cleanup.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { nextTurn } from "../base/next-turn.ts";
import type { BodyReads } from "../gateway/body/body-reads.ts";
import type { OpenStreams } from "../gateway/serve/open-streams.ts";
import type { InstanceLease } from "../ledger/instance-lease.ts";
import type { Upstreams } from "../upstream/upstreams.ts";
import { drainListener } from "./drain-listener.ts";

/** After the drain: for settlements to reach Postgres. */
export const FORCED_STOP_MS = 2_000;

/** Who is told that the process stops hears so within this; who waits for something else, or reads slowly, is not waited for. */
const LAST_ANSWERS_MS_MAX = 500;
const LOOK_MS = 5;

interface Stops {
	stop(now?: boolean): Promise<unknown>;
}

/** Requests that run are served, as long as they may; then all is handed back. */
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
	// Credit is given back after the last request and not before: one whose body was still on its way when the
	// door closed is served like the others.
	// A console asks at the inner door for those who wait at the outer one: that is shut behind them.
	const closed = server.stop().then(() => plane.internalServer?.stop());
	await Promise.race([closed, Bun.sleep(leftMs())]);
	const drained = instanceLease.stop(leftMs() + FORCED_STOP_MS);
	await Promise.race([drained, Bun.sleep(leftMs())]);
	// Who is still here gets an error event and the usage so far, or an error in place of an answer.
	plane.openStreams.shutDown();
	plane.upstreams.letGo();
	plane.bodyReads.letGo();
	// What they wrote last leaves with the next turn.
	await nextTurn();
	for (const deadline = performance.now() + LAST_ANSWERS_MS_MAX; server.pendingRequests > 0; await Bun.sleep(LOOK_MS))
		if (performance.now() >= deadline) break;
	await server.stop(true);
	// It has stopped as it was told to, and nothing is lost while that journal is there: who takes the volume away has to know.
	if (!(await drained))
		log.warn("the database has not heard of all that ended: the journal keeps it for the next start on this DATA_DIR");
	await plane.cleanup.run();
}
