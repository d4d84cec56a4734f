import type { Socket } from "bun";

/** Stands between a client and a server, and can lose what they say to each other. */
export interface TcpProxy {
	readonly port: number;
	/** Connections taken so far. */
	accepted(): number;
	/** From now on nothing passes on the open connections, and nothing closes them: as if a cable were cut. */
	freeze(): void;
	/** Ends all open connections. */
	cut(): void;
	stop(): void;
}

interface Pair {
	client: Socket<Pair>;
	server: Socket<Pair> | undefined;
	waiting: Buffer[];
	frozen: boolean;
}

export function startTcpProxy(target: { hostname: string; port: number }): TcpProxy {
	const pairs = new Set<Pair>();
	let accepted = 0;
	const pass = (pair: Pair, to: Socket<Pair> | undefined, data: Buffer) => {
		if (!pair.frozen) to?.write(data);
	};
	const drop = (pair: Pair) => {
		if (pair.frozen) return;
		pairs.delete(pair);
		pair.client.end();
		pair.server?.end();
	};
	const listener = Bun.listen<Pair>({
		hostname: "127.0.0.1",
		port: 0,
		socket: {
			open(client) {
				accepted += 1;
				const pair: Pair = { client, server: undefined, waiting: [], frozen: false };
				client.data = pair;
				pairs.add(pair);
				void Bun.connect<Pair>({
					...target,
					socket: {
						open(server) {
							server.data = pair;
							pair.server = server;
							for (const data of pair.waiting.splice(0)) pass(pair, server, data);
						},
						data: (_, data) => pass(pair, pair.client, data),
						close: () => drop(pair),
						error: () => drop(pair),
					},
				}).catch(() => drop(pair));
			},
			data({ data: pair }, data) {
				if (pair.server === undefined) pair.waiting.push(Buffer.from(data));
				else pass(pair, pair.server, data);
			},
			close: ({ data: pair }) => drop(pair),
			error: ({ data: pair }) => drop(pair),
		},
	});
	const end = (pair: Pair) => {
		pair.frozen = false;
		drop(pair);
	};
	return {
		port: listener.port,
		accepted: () => accepted,
		freeze() {
			for (const pair of pairs) pair.frozen = true;
		},
		cut() {
			for (const pair of [...pairs]) end(pair);
		},
		stop() {
			for (const pair of [...pairs]) end(pair);
			listener.stop(true);
		},
	};
}
