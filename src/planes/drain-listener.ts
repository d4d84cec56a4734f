import { ptr } from "bun:ffi";
import { libc } from "../base/libc.ts";
import { nextTurn } from "../base/time-slice.ts";

/** Time for handshakes that are in progress when the listener closes: a round trip between continents. */
const HANDSHAKE_MS = 300;
/** Longest wait. Without a free descriptor a connection is accepted only when another ends. */
const WAIT_MS_MAX = 1_500;
const LOOK_MS = 2;
/** Descriptor numbers that are tried. The listener's is low, because it is opened at the start. */
const DESCRIPTORS = 4_096;

const AF_INET = 2;
const AF_INET6 = 10;
const ADDRESS_BYTES_MAX = 128;
const SOL_SOCKET = 1;
const SO_ACCEPTCONN = 30;
const SO_BINDTOIFINDEX = 62;
const IPPROTO_TCP = 6;
const TCP_INFO = 11;
/** Offset in a listener's TCP_INFO of the number of connections that wait to be accepted. */
const WAITING_AT = 24;
const TCP_INFO_BYTES = 104;
/** Index that no network interface has. */
const NO_INTERFACE = new Int32Array([2_147_483_647]);

interface Place {
	readonly address: string;
	readonly port: number;
}

/**
 * Call it before stopping `server`: the kernel resets connections that a closing listener has not accepted. Binds the
 * listener to a network interface that does not exist: new connections then go to a successor or are refused, and
 * waiting ones are accepted.
 */
export async function drainListener(server: object): Promise<void> {
	// Path of a Unix socket, or address and port; missing in the runtime's types.
	const { address: place } = server as { readonly address?: Place | string | null };
	const listener = typeof place === "object" && place !== null ? listenerAt(place) : undefined;
	if (listener !== undefined && bindToNoInterface(listener)) {
		await Bun.sleep(HANDSHAKE_MS);
		for (const deadline = performance.now() + WAIT_MS_MAX; wait(listener) && performance.now() < deadline; )
			await Bun.sleep(LOOK_MS);
	}
	// Accepts connections that wait at a Unix socket, and others after the deadline.
	await nextTurn();
	await nextTurn();
}

/** The listener's descriptor, which the runtime does not expose. Undefined outside Linux or without libc. */
function listenerAt(place: Place): number | undefined {
	if (process.platform !== "linux") return undefined;
	try {
		// Tries numbers, because reading /proc/self/fd needs a descriptor, and perhaps none is free.
		for (let fd = 0; fd < DESCRIPTORS; fd++) if (listensAt(fd, place)) return fd;
	} catch {
		// Without libc there is no descriptor to find.
	}
	return undefined;
}

/** Compares the address, because the process may have inherited another service's listener. */
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

/** True if connections wait in the listener's queue. */
function wait(listener: number): boolean {
	const info = new DataView(new ArrayBuffer(TCP_INFO_BYTES));
	const size = new Uint32Array([TCP_INFO_BYTES]);
	const told = libc().getsockopt(listener, IPPROTO_TCP, TCP_INFO, ptr(info), ptr(size)) === 0;
	return told && info.getUint32(WAITING_AT, true) > 0;
}

/** Marks the response so that the runtime closes the connection; the client then reconnects elsewhere. */
export async function withConnectionClose(answer: Response | Promise<Response>): Promise<Response> {
	const response = await answer;
	response.headers.set("connection", "close");
	return response;
}
