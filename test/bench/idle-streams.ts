/** Open streams, each of which has had its first event and waits for the next. */
import type { RawConnection } from "./raw-connection.ts";
import { openConnection } from "./raw-connection.ts";

const DEADLINE_MS = 60_000;

/** Opens streams and waits until each has had an event. */
export async function openIdleStreams(port: number, streams: number, request: (stream: number) => Uint8Array) {
	const connections: RawConnection[] = [];
	const begun = new Set<number>();
	let finished = 0;
	let failure: string | undefined;
	const { promise: allBegan, resolve: tellBegun, reject } = Promise.withResolvers<void>();
	const { promise: allEnded, resolve: tellEnded, reject: rejectEnd } = Promise.withResolvers<void>();
	allEnded.catch(() => {});
	const fail = (reason: string) => {
		failure ??= reason;
		reject(new Error(reason));
		rejectEnd(new Error(reason));
	};
	const timer = setTimeout(() => reject(new Error(`${begun.size} of ${streams} streams began in time`)), DEADLINE_MS);
	for (let index = 0; index < streams; index++) {
		const connection = await openConnection(port, {
			body() {
				if (begun.size === streams || begun.has(index)) return;
				begun.add(index);
				if (begun.size === streams) tellBegun();
			},
			answered(status) {
				finished += 1;
				if (status !== 200) fail(`status ${status}`);
				if (finished === streams && failure === undefined) tellEnded();
			},
			broke: fail,
		});
		connections.push(connection);
		connection.send(request(index));
	}
	await allBegan.finally(() => clearTimeout(timer));
	return {
		/** Resolves when all streams have ended with status 200; rejects after a minute. */
		async ended() {
			const timer = setTimeout(
				() => rejectEnd(new Error(`${finished} of ${streams} streams ended in time`)),
				DEADLINE_MS,
			);
			await allEnded.finally(() => clearTimeout(timer));
			for (const connection of connections) connection.close();
		},
	};
}
