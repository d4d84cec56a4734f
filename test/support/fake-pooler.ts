import type { Socket } from "bun";

export interface FakePoolerOptions {
	readonly overlooks?: readonly string[];
	readonly refuses?: string;
	readonly byTransaction?: boolean;
	readonly isSilent?: boolean;
}

interface Client {
	readonly socket: Socket<Client>;
	unread: Buffer;
	hasBegun: boolean;
	backend: Backend | undefined;
}

interface Backend {
	socket: Socket<unknown> | undefined;
	readonly waiting: Buffer[];
	/** The client whose transaction is in progress; undefined between transactions. */
	owner: Client | undefined;
	unread: Buffer;
}

const NOTHING = Buffer.alloc(0);
const TERMINATE = 0x58;
const READY = 0x5a;
const IDLE = 0x49;
const SSL_REQUEST = 80_877_103;
/** AuthenticationOk, then ReadyForQuery outside a transaction. */
const WELCOME = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, READY, 0, 0, 0, 5, IDLE]);

/**
 * Simulates faults of a connection pooler: it drops or refuses some start-up parameters, shares one server session
 * among all clients by transaction, or accepts clients without answering.
 */
export function startFakePooler(url: string, options: FakePoolerOptions) {
	const target = new URL(url);
	const clients = new Set<Client>();
	const backends = new Set<Backend>();
	let shared: Backend | undefined;

	const listener = Bun.listen<Client>({
		hostname: "127.0.0.1",
		port: 0,
		socket: {
			open(socket) {
				socket.data = { socket, unread: NOTHING, hasBegun: false, backend: undefined };
				clients.add(socket.data);
			},
			data({ data: client }, bytes) {
				client.unread = Buffer.concat([client.unread, bytes]);
				read(client);
			},
			close: ({ data }) => leave(data),
			error: ({ data }) => leave(data),
		},
	});

	function read(client: Client): void {
		if (!client.hasBegun && !begin(client)) return;
		if (!options.isSilent || client.backend?.owner !== undefined) serve(client);
	}

	/** Returns false while the client's first message is incomplete, or if it is refused. */
	function begin(client: Client): boolean {
		if (client.unread.length < 8 || client.unread.length < client.unread.readInt32BE(0)) return false;
		const length = client.unread.readInt32BE(0);
		const message = client.unread.subarray(0, length);
		client.unread = client.unread.subarray(length);
		if (message.readInt32BE(4) === SSL_REQUEST) {
			client.socket.write("N");
			return false;
		}
		const words = message.toString("utf8", 8, length - 2).split("\0");
		const pairs = words.flatMap((name, at) => (at % 2 === 0 ? [[name, words[at + 1] ?? ""] as const] : []));
		if (options.refuses !== undefined && pairs.some(([name]) => name === options.refuses)) {
			client.socket.end(refusal(`unsupported startup parameter: ${options.refuses}`));
			return false;
		}
		client.hasBegun = true;
		if (shared !== undefined) {
			client.backend = shared;
			client.socket.write(WELCOME);
			return true;
		}
		client.backend = connect(client);
		if (options.byTransaction) shared = client.backend;
		send(client.backend, startUp(pairs.filter(([name]) => !options.overlooks?.includes(name))));
		return true;
	}

	function connect(client: Client): Backend {
		const backend: Backend = { socket: undefined, waiting: [], owner: client, unread: NOTHING };
		backends.add(backend);
		void Bun.connect({
			hostname: target.hostname,
			port: Number(target.port),
			socket: {
				open(socket) {
					backend.socket = socket;
					for (const part of backend.waiting.splice(0)) socket.write(part);
				},
				data: (_, bytes) => answer(backend, bytes),
				close: () => void backend.owner?.socket.end(),
			},
		});
		return backend;
	}

	/** Forwards complete messages to the server while this client's transaction is in progress. */
	function serve(client: Client): void {
		const { backend } = client;
		if (backend === undefined) return;
		while (client.unread.length >= 5 && client.unread.length > client.unread.readInt32BE(1)) {
			if (client.unread[0] === TERMINATE) {
				leave(client);
				return;
			}
			backend.owner ??= client;
			if (backend.owner !== client) return;
			const length = client.unread.readInt32BE(1) + 1;
			const message = client.unread.subarray(0, length);
			client.unread = client.unread.subarray(length);
			send(backend, message);
		}
	}

	/** Sends the server's bytes to the client whose transaction is in progress; afterwards another client is served. */
	function answer(backend: Backend, bytes: Uint8Array): void {
		backend.unread = Buffer.concat([backend.unread, bytes]);
		while (backend.unread.length >= 5 && backend.unread.length > backend.unread.readInt32BE(1)) {
			const length = backend.unread.readInt32BE(1) + 1;
			const message = backend.unread.subarray(0, length);
			backend.unread = backend.unread.subarray(length);
			backend.owner?.socket.write(message);
			if (message[0] !== READY || message[5] !== IDLE) continue;
			backend.owner = undefined;
			if (!options.isSilent) for (const client of clients) if (client.backend === backend) serve(client);
		}
	}

	function leave(client: Client): void {
		if (!clients.delete(client)) return;
		client.socket.end();
		if (client.backend === undefined || client.backend === shared) return;
		client.backend.socket?.end();
		backends.delete(client.backend);
	}

	const own = new URL(url);
	[own.hostname, own.port] = ["127.0.0.1", String(listener.port)];
	return {
		url: own.href,
		stop() {
			listener.stop(true);
			for (const { socket } of backends) socket?.terminate();
		},
	};
}

function send(backend: Backend, message: Buffer): void {
	if (backend.socket === undefined) backend.waiting.push(message);
	else backend.socket.write(message);
}

function startUp(pairs: readonly (readonly [string, string])[]): Buffer {
	const text = Buffer.from(`${pairs.map(([name, value]) => `${name}\0${value}\0`).join("")}\0`);
	const head = Buffer.alloc(8);
	head.writeInt32BE(8 + text.length, 0);
	head.writeInt32BE(196_608, 4);
	return Buffer.concat([head, text]);
}

function refusal(message: string): Buffer {
	const fields = Buffer.from(`SFATAL\0VFATAL\0C08P01\0M${message}\0\0`);
	const head = Buffer.alloc(5);
	head[0] = 0x45;
	head.writeInt32BE(4 + fields.length, 1);
	return Buffer.concat([head, fields]);
}
