import { ptr } from "bun:ffi";
import { readdirSync } from "node:fs";
import { libc } from "../base/libc.ts";
import { nextTurn } from "../base/next-turn.ts";

/** Who was half-way in when the door was shut is in after this: a way to and fro within a data centre, and some. */
const HALF_WAY_MS = 20;
/** A turn of the event loop as short as this found no connection waiting. */
const QUIET_TURN_MS = 0.2;
/** Within the margin after which a supervisor kills. A full core has a quiet turn only now and then. */
const QUIET_TURN_WAIT_MS_MAX = 1_500;

const AF_INET = 2;
const AF_INET6 = 10;
const ADDRESS_BYTES_MAX = 128;
const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
const SO_ACCEPTCONN = 30;
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

/**
 * Awaited before `server` stops. The kernel resets the connections that wait at a listener when that closes, though for
 * their clients they are open and may carry a request: so nobody new is let in, and who waits is taken. Who knocks meanwhile
 * knocks again a second later, and is refused or finds a successor.
 */
export async function shutDoor({ port }: { readonly port?: number | undefined }): Promise<void> {
	if (port !== undefined) {
		if (!letNobodyIn(port)) return quietTurn();
		await Bun.sleep(HALF_WAY_MS);
	}
	// Where that was over late, who waits is taken only now. At a socket of the file system a successor has the name by then, or
	// those who knew it are gone.
	await nextTurn();
	await nextTurn();
}

/** False where the system has no such filter, or none is to be had. */
function letNobodyIn(port: number): boolean {
	if (process.platform !== "linux") return false;
	const steps = DROP_OPENINGS.length / 2;
	const filter = new BigUint64Array([BigInt(steps), BigInt(ptr(DROP_OPENINGS))]);
	let attached = false;
	try {
		for (const fd of readdirSync("/proc/self/fd").map(Number)) {
			if (!listensAt(fd, port)) continue;
			attached = libc().setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, ptr(filter), filter.byteLength) === 0;
		}
	} catch {
		// No descriptor is left to look with, or a library of the system is not there.
	}
	return attached;
}

/** The runtime does not tell the descriptor of its listener. */
function listensAt(fd: number, port: number): boolean {
	const size = new Uint32Array([4]);
	const listens = new Uint32Array(1);
	if (libc().getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, ptr(listens), ptr(size)) !== 0 || listens[0] !== 1) return false;
	const address = new DataView(new ArrayBuffer(ADDRESS_BYTES_MAX));
	size[0] = ADDRESS_BYTES_MAX;
	if (libc().getsockname(fd, ptr(address), ptr(size)) !== 0) return false;
	return [AF_INET, AF_INET6].includes(address.getUint16(0, true)) && address.getUint16(2) === port;
}

/** The next best: the moment right after a turn of the event loop that had next to nothing to do, or after the longest wait. */
async function quietTurn(): Promise<void> {
	const deadline = performance.now() + QUIET_TURN_WAIT_MS_MAX;
	for (let began = performance.now(); began < deadline; ) {
		await nextTurn();
		const ended = performance.now();
		if (ended - began < QUIET_TURN_MS) return;
		began = ended;
	}
}
