import { ptr } from "bun:ffi";
import { libc } from "../base/libc.ts";
import { nextTurn } from "../base/time-slice.ts";

/** TCP handshakes in progress when the listener closes may finish within this time (an intercontinental round trip). */
const HANDSHAKE_MS = 300;
/** Longest wait. Without a free descriptor, a connection is accepted only when another one ends. */
const WAIT_MS_MAX = 1_500;
const LOOK_MS = 2;
/** Descriptor numbers that are tried. The listener has a low one, because it is opened at the start. */
const DESCRIPTORS = 4_096;

const AF_INET = 2;
const AF_INET6 = 10;
const ADDRESS_BYTES_MAX = 128;
const SOL_SOCKET = 1;
const SO_ACCEPTCONN = 30;
const SO_BINDTOIFINDEX = 62;
const IPPROTO_TCP = 6;
const TCP_INFO = 11;
/** Offset in a listener's TCP_INFO of the length of its accept queue. */
const WAITING_AT = 24;
const TCP_INFO_BYTES = 104;
const NO_INTERFACE = new Int32Array([2_147_483_647]);

interface Place {
	readonly address: string;
	readonly port: number;
}

/**
 * Call it before stopping `server`, because the kernel resets connections that a closing listener has not accepted.
 * Binds the listener to a network interface that does not exist: new connections then reach a successor or are refused,
 * while queued connections are accepted.
 */
export async function drainListener(server: object): Promise<void> {
	// Path of a Unix socket, or address and port. The runtime's types lack this property.
	const { address: place } = server as { readonly address?: Place | string | null };
	const listener = typeof place === "object" && place !== null ? listenerAt(place) : undefined;
	if (listener !== undefined && bindToNoInterface(listener)) {
		await Bun.sleep(HANDSHAKE_MS);
		for (const deadline = performance.now() + WAIT_MS_MAX; wait(listener) && performance.now() < deadline; )
			await Bun.sleep(LOOK_MS);
	}
	// Accepts the connections that are still queued, also at a Unix socket.
	await nextTurn();
	await nextTurn();
}

/** The listener's file descriptor, which the runtime does not expose. Undefined outside Linux or without libc. */
function listenerAt(place: Place): number | undefined {
	if (process.platform !== "linux") return undefined;
	try {
		// Tries numbers, because listing /proc/self/fd needs a descriptor and there may be none left.
		for (let fd = 0; fd < DESCRIPTORS; fd++) if (listensAt(fd, place)) return fd;
	} catch {
		// Without libc the descriptor cannot be determined.
	}
	return undefined;
}

/** Compares the address, because the process may have inherited a listener of another service. */
function listensAt(fd: number, { address, port }: Place): boolean {
	const size = new Uint32Array([4]);
	const listens = new Uint32Array(1);
	if (libc().getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, ptr(listens), ptr(size)) !== 0 || listens[0] !== 1) return false;
	const bytes = new Uint8Array(ADDRESS_BYTES_MAX);
	const own = new DataView(bytes.buffer);
	size[0] = ADDRESS_BYTES_MAX;
	if (libc().getsockname(fd, ptr(bytes), ptr(size)) !== 0 || own.getUint16(2) !== port) return false;
	const family = own.getUint16(0, true);
	if (family === AF_INET) return bytes.slice(4, 8).join(".") === address;
	if (family !== AF_INET6) return false;
	const groups = Array.from({ length: 8 }, (_, at) => own.getUint16(8 + 2 * at).toString(16));
	return inOneForm(groups.join(":")) === inOneForm(address);
}

function inOneForm(address: string): string {
	const [withoutZone] = address.split("%");
	return new URL(`http://[${withoutZone}]`).hostname;
}

function bindToNoInterface(listener: number): boolean {
	return libc().setsockopt(listener, SOL_SOCKET, SO_BINDTOIFINDEX, ptr(NO_INTERFACE), NO_INTERFACE.byteLength) === 0;
}

/** True if connections wait in the listener's accept queue. */
function wait(listener: number): boolean {
	const info = new DataView(new ArrayBuffer(TCP_INFO_BYTES));
	const size = new Uint32Array([TCP_INFO_BYTES]);
	const told = libc().getsockopt(listener, IPPROTO_TCP, TCP_INFO, ptr(info), ptr(size)) === 0;
	return told && info.getUint32(WAITING_AT, true) > 0;
}

/** Adds `connection: close`, so that the client reconnects, to another process. */
export async function withConnectionClose(answer: Response | Promise<Response>): Promise<Response> {
	const response = await answer;
	response.headers.set("connection", "close");
	return response;
}
