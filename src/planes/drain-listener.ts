import { ptr } from "bun:ffi";
import { libc } from "../base/libc.ts";
import { nextTurn } from "../base/next-turn.ts";
import { pendingHandshakes } from "./pending-handshakes.ts";

/** Who was half-way in when the door was shut is in after this: a way to and fro within a data centre, and some. */
const HALF_WAY_MS = 20;
/** To and fro between continents, and some. Who takes longer has lost a segment, or never meant to come in. */
const HALF_WAY_MS_MAX = 500;
/** A turn of the event loop as short as this found no connection waiting. */
const QUIET_TURN_MS = 0.2;
/**
 * Within the margin after which a supervisor kills. A full core has a quiet turn only now and then, and who waits for a
 * descriptor is taken when another one's connection has ended.
 */
const WAIT_MS_MAX = 1_500;
const LOOK_MS = 2;
/** A listener is opened at a start: its descriptor is among the first. */
const DESCRIPTORS = 4_096;

const AF_INET = 2;
const AF_INET6 = 10;
const ADDRESS_BYTES_MAX = 128;
const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
const SO_ACCEPTCONN = 30;
const SO_BINDTOIFINDEX = 62;
const IPPROTO_TCP = 6;
const TCP_INFO = 11;
/** In what the kernel tells of a TCP socket: of a listener, how many wait at it. */
const WAITING_AT = 24;
const TCP_INFO_BYTES = 104;
/**
 * For the kernel, two words a step: what opens a connection, a segment with SYN and without ACK, is dropped, the rest is let
 * in. It is attached to the listener; connections that come of it have it too, and are sent nothing of the kind.
 */
const DROP_OPENINGS = new Uint32Array([
	...[0x30, 13], // Takes byte 13 of the segment's header: its flags,
	...[0x54, 0x12], // of them SYN and ACK;
	...[0x0100_0015, 0x02], // unless it is SYN alone, leaves the next step out:
	...[0x06, 0], // dropped.
	...[0x06, 0xffff_ffff], // Let in.
]);

interface Place {
	readonly address: string;
	readonly port: number;
}

/**
 * Awaited before `server` stops. The kernel resets the connections that wait at a listener when that closes, though for
 * their clients they are open and may carry a request: so nobody new is let in, and who waits is taken. Who knocks meanwhile
 * knocks again a second later, and is refused or finds a successor.
 */
export async function drainListener(server: object): Promise<void> {
	// The runtime's types do not have it. Of a socket of the file system it is the path.
	const { address: place } = server as { readonly address?: Place | string | null };
	if (typeof place === "object" && place !== null) {
		const listener = listenerAt(place);
		if (listener === undefined || !letNobodyIn(listener)) return quietTurn();
		await untilIn(place.port);
		for (const deadline = performance.now() + WAIT_MS_MAX; wait(listener) && performance.now() < deadline; )
			await Bun.sleep(LOOK_MS);
	}
	// Where that was over late, who waits is taken only now. At a socket of the file system a successor has the name by then, or
	// those who knew it are gone.
	await nextTurn();
	await nextTurn();
}

/** The runtime does not tell it. Undefined where the system's library is not there, or is no Linux. */
function listenerAt(place: Place): number | undefined {
	if (process.platform !== "linux") return undefined;
	try {
		// Not by the list of those that are open: it takes one to read that, and none may be left.
		for (let fd = 0; fd < DESCRIPTORS; fd++) if (listensAt(fd, place)) return fd;
	} catch {
		// No library.
	}
	return undefined;
}

/** Not the port alone: a process may have been started with the listener of another service, which has that port elsewhere. */
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

/** No system counts that far: there is no such network interface. */
const NOWHERE = new Int32Array([2_147_483_647]);

/** False where neither is to be had. */
function letNobodyIn(listener: number): boolean {
	const steps = DROP_OPENINGS.length / 2;
	const filter = new BigUint64Array([BigInt(steps), BigInt(ptr(DROP_OPENINGS))]);
	const set = (option: number, value: NodeJS.TypedArray) =>
		libc().setsockopt(listener, SOL_SOCKET, option, ptr(value), value.byteLength) === 0;
	// Some kernels want rights for a filter (CAP_NET_ADMIN), which a service in production has not. Who listens at one interface alone
	// hears of nobody who comes by another, and those who were half-way in have found their way: this one needs no rights.
	return set(SO_ATTACH_FILTER, filter) || set(SO_BINDTOIFINDEX, NOWHERE);
}

/** Who was half-way in when nobody new was let in any more; not who knocks at another listener of this port meanwhile. */
async function untilIn(port: number): Promise<void> {
	const deadline = performance.now() + HALF_WAY_MS_MAX;
	const coming = await pendingHandshakes(port);
	for (let still = coming; ; still = still.intersection(await pendingHandshakes(port))) {
		// Once at least: the kernel may have been at somebody's opening when the door was shut.
		await Bun.sleep(HALF_WAY_MS);
		if (still.size === 0 || performance.now() >= deadline) return;
	}
}

/** Whether connections wait at it that were not taken yet. */
function wait(listener: number): boolean {
	const info = new DataView(new ArrayBuffer(TCP_INFO_BYTES));
	const size = new Uint32Array([TCP_INFO_BYTES]);
	const told = libc().getsockopt(listener, IPPROTO_TCP, TCP_INFO, ptr(info), ptr(size)) === 0;
	return told && info.getUint32(WAITING_AT, true) > 0;
}

/** The next best: the moment right after a turn of the event loop that had next to nothing to do, or after the longest wait. */
async function quietTurn(): Promise<void> {
	const deadline = performance.now() + WAIT_MS_MAX;
	for (let began = performance.now(); began < deadline; ) {
		await nextTurn();
		const ended = performance.now();
		if (ended - began < QUIET_TURN_MS) return;
		began = ended;
	}
}
