import type postgres from "postgres";
import { systemClock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { connectionEnded, isConnectionLost } from "./outage.ts";
import { createPace, type Pace } from "./pace.ts";

/** One connection to the database, made when it is first used and again whenever it broke. */
export interface Lane {
	/** One at a time. */
	run<T>(work: (client: postgres.Sql) => PromiseLike<T>): Promise<T>;
	/** Gives the connection up, with what is under way on it; what comes next makes a new one. */
	renew(): void;
	end(): Promise<void>;
}

/** `connect` makes its clients, one after the other. */
export function createLane(deps: { log: Log }, connect: (pace: Pace) => postgres.Sql): Lane {
	const pace = createPace(systemClock.monotonicMs);
	let client: postgres.Sql | undefined;
	let ended = false;

	function renew(): void {
		client
			?.end({ timeout: 0 })
			.catch((error) => deps.log.debug("closing a stuck database connection failed", { error }));
		client = undefined;
	}

	return {
		async run(work) {
			if (ended) throw connectionEnded();
			client ??= connect(pace);
			const used = client;
			try {
				return await work(used);
			} catch (error) {
				// The driver keeps what the server said last, and fails the next statement with it, on a connection that is well.
				if (client === used && !ended && isConnectionLost(error)) renew();
				throw error;
			}
		},
		renew,
		async end() {
			ended = true;
			await client?.end({ timeout: 1 });
		},
	};
}
