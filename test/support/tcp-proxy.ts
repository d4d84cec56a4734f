import type { Socket } from "bun";

/**
 * A TCP proxy that can do to a connection what a network does: cut it, refuse it, or say nothing more without closing
 * it (half-open).
 */
export interface TcpProxy {
	readonly port: number;
	accepted(): number;
	/** Nothing passes any more on the connections that exist and on new ones; they stay open. */
	freeze(): void;
	/** As `freeze`, for the connections that exist alone: new ones pass. They stay silent for good. */
	freezeExisting(): void;
	/**
	 * What goes this way on connections that call themselves so, also on new ones, waits until what this returns is called, and
	 * then goes on at once. The other way it passes.
	 */
	hold(way: Way, name: RegExp): () => void;
	/** Ends the freeze. `late`: what was held back arrives now; otherwise the frozen connections are reset. */
	thaw(late: boolean): void;
	reset(): void;
	cut(): void;
	restore(): void;
	/** Connections that pass or are frozen. */
	open(): number;
	/** Those that pass, each with what it calls itself to Postgres. */
	connections(): readonly ProxiedConnection[];
	stop(): void;
}

type Way = "to server" | "to client";

export interface ProxiedConnection {
	/** The application name of its start-up message; empty if it has none. */
	readonly name: string;
	/** It alone goes silent, for good, and stays open. */
	freeze(): void;
}

/** Its type and length: the first one ends the signing in. */
const READY_FOR_QUERY = Buffer.from([0x5a, 0, 0, 0, 5]);

interface Pair {
	readonly client: Socket<Pair>;
	name: string | undefined;
	server: Socket<unknown> | undefined;
	/** Postgres has said that it takes statements. */
	isSignedIn: boolean;
	silent: boolean;
	readonly toServer: Uint8Array[];
	readonly toClient: Uint8Array[];
}

export function startTcpProxy(target: { hostname: string; port: number }): TcpProxy {
	const pairs = new Set<Pair>();
	const holds = new Set<{ readonly way: Way; readonly name: RegExp }>();
	let accepted = 0;
	let frozen = false;
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
					pair.toServer.push(new Uint8Array(bytes));
					flush(pair);
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
						pair.toClient.push(new Uint8Array(bytes));
						flush(pair);
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

	function flush(pair: Pair): void {
		if (frozen || pair.silent || !pairs.has(pair)) return;
		if (pair.server && !isHeld(pair, "to server")) drain(pair.toServer, pair.server);
		if (!isHeld(pair, "to client")) drain(pair.toClient, pair.client);
	}

	/**
	 * For good. Who is signing in goes silent towards the client alone: a server process that waits for a client's proof takes part in
	 * nothing else, and no database of any test can be made or dropped until it has ended.
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

	/** A half-open connection hides the end of the other side too. */
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
		accepted: () => accepted,
		freeze() {
			frozen = true;
		},
		freezeExisting() {
			for (const pair of pairs) silence(pair);
		},
		hold(way, name) {
			const hold = { way, name };
			holds.add(hold);
			return () => {
				holds.delete(hold);
				for (const pair of pairs) flush(pair);
			};
		},
		thaw(late) {
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
		open: () => pairs.size,
		connections: () =>
			[...pairs]
				.filter(({ silent }) => !silent)
				.map((pair) => ({
					name: pair.name ?? "",
					freeze: () => silence(pair),
				})),
		stop() {
			listener.stop(true);
			resetAll();
		},
	};
}
