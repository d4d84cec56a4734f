import type { Socket } from "bun";
import { untilEnd } from "./at-end.ts";

type Way = "to server" | "to client";

/** First ReadyForQuery message (type and length), which ends the connection's start-up. */
const READY_FOR_QUERY = Buffer.from([0x5a, 0, 0, 0, 5]);

interface Pair {
	readonly client: Socket<Pair>;
	name: string | undefined;
	server: Socket<unknown> | undefined;
	/** True once Postgres has announced that it accepts statements. */
	isSignedIn: boolean;
	silent: boolean;
	readonly toServer: Uint8Array[];
	readonly toClient: Uint8Array[];
}

/** Starts a proxy for all tests of a file, stopped after the last test. */
export const withTcpProxy = (target: { hostname: string; port: number }) => untilEnd(startTcpProxy(target));

/** A proxy before a database for all tests of a file, and the database's URL through it. */
export function withDatabaseProxy(databaseUrl: string) {
	const url = new URL(databaseUrl);
	const proxy = withTcpProxy({ hostname: url.hostname, port: Number(url.port) });
	url.port = String(proxy.port);
	return { proxy, url: url.href };
}

/** A TCP proxy that can cut or refuse connections, or make them silent without closing them (half-open). */
export function startTcpProxy(first: { hostname: string; port: number }) {
	const target = { ...first };
	const pairs = new Set<Pair>();
	const holds = new Set<{ readonly way: Way; readonly name: RegExp }>();
	let accepted = 0;
	let frozen = false;
	let delayMs = 0;
	let listener = listen(0);
	const { port } = listener;

	function listen(at: number) {
		return Bun.listen<Pair>({
			hostname: "127.0.0.1",
			port: at,
			socket: {
				open(client) {
					accepted += 1;
					const pair: Pair = {
						...{ client, name: undefined, server: undefined, isSignedIn: false, silent: false },
						...{ toServer: [], toClient: [] },
					};
					client.data = pair;
					pairs.add(pair);
					void connect(pair);
				},
				data({ data: pair }, bytes) {
					pair.name ??= /application_name\0([^\0]*)/.exec(bytes.toString("latin1"))?.[1] ?? "";
					later(pair, pair.toServer, bytes);
				},
				drain: ({ data: pair }) => flush(pair),
				close: ({ data: pair }) => end(pair),
				error: ({ data: pair }) => end(pair),
			},
		});
	}

	async function connect(pair: Pair): Promise<void> {
		try {
			pair.server = await Bun.connect({
				...target,
				socket: {
					data(_, bytes) {
						pair.isSignedIn ||= bytes.includes(READY_FOR_QUERY);
						later(pair, pair.toClient, bytes);
					},
					drain: () => flush(pair),
					close: () => end(pair),
					error: () => end(pair),
				},
			});
			if (!pairs.has(pair)) pair.server.terminate();
			flush(pair);
		} catch {
			end(pair);
		}
	}

	function later(pair: Pair, queue: Uint8Array[], bytes: Uint8Array): void {
		const copy = new Uint8Array(bytes);
		const pass = () => {
			queue.push(copy);
			flush(pair);
		};
		if (delayMs === 0) pass();
		else setTimeout(pass, delayMs);
	}

	function flush(pair: Pair): void {
		if (frozen || pair.silent || !pairs.has(pair)) return;
		if (pair.server && !isHeld(pair, "to server")) drain(pair.toServer, pair.server);
		if (!isHeld(pair, "to client")) drain(pair.toClient, pair.client);
	}

	/**
	 * Makes a connection silent for good. During start-up only towards the client: a server process that waits for the
	 * client would block creating and dropping databases.
	 */
	function silence(pair: Pair): void {
		pair.silent = true;
		if (pair.name && !pair.isSignedIn) pair.server?.terminate();
	}

	function isHeld(pair: Pair, way: Way): boolean {
		for (const hold of holds) if (hold.way === way && hold.name.test(pair.name ?? "")) return true;
		return false;
	}

	function drain(queue: Uint8Array[], to: Socket<unknown> | Socket<Pair>): void {
		for (let head = queue[0]; head !== undefined; head = queue[0]) {
			const written = Math.max(0, to.write(head));
			if (written === head.length) {
				queue.shift();
			} else {
				queue[0] = head.subarray(written);
				return;
			}
		}
	}

	/** On a half-open connection one side must not notice that the other side has ended. */
	function end(pair: Pair): void {
		if (!pairs.has(pair)) return;
		if (frozen || pair.silent) {
			pair.silent = true;
			return;
		}
		reset(pair);
	}

	function reset(pair: Pair): void {
		pairs.delete(pair);
		pair.client.terminate();
		pair.server?.terminate();
	}

	function resetAll(): void {
		for (const pair of [...pairs]) reset(pair);
	}

	return {
		port,
		/** Directs new connections to another server; existing connections stay. */
		aim(to: number) {
			target.port = to;
		},
		accepted: () => accepted,
		/** Delays data so that a round trip takes this long from now on. */
		delay(roundTripMs: number) {
			delayMs = roundTripMs / 2;
		},
		/** Blocks all existing and new connections without closing them. */
		freeze() {
			frozen = true;
		},
		/** Blocks only the existing connections, for good. */
		freezeExisting() {
			for (const pair of pairs) silence(pair);
		},
		/**
		 * Holds back data in this direction, on existing and new connections with this application name, until the returned
		 * function is called. The other direction is not blocked.
		 */
		hold(way: Way, name: RegExp) {
			const hold = { way, name };
			holds.add(hold);
			return () => {
				holds.delete(hold);
				for (const pair of pairs) flush(pair);
			};
		},
		/** Ends `freeze`. With `late` the held-back data is delivered; otherwise the frozen connections are reset. */
		thaw(late: boolean) {
			frozen = false;
			for (const pair of [...pairs]) {
				if (late && !pair.silent) flush(pair);
				else reset(pair);
			}
		},
		reset: resetAll,
		cut() {
			listener.stop(true);
			resetAll();
		},
		restore() {
			listener = listen(port);
		},
		/** Number of connections that are forwarded or frozen. */
		open: () => pairs.size,
		/** Forwarded connections with their PostgreSQL application names. Each can be made silent while it stays open. */
		connections: () =>
			[...pairs]
				.filter(({ silent }) => !silent)
				.map((pair) => ({ name: pair.name ?? "", freeze: () => silence(pair) })),
		stop() {
			listener.stop(true);
			resetAll();
		},
	};
}
