import { readdirSync, readFileSync } from "node:fs";

const FLUSH_TURNS = 10;
const FLUSH_MS = 20;
/** Longest wait until the other end has read, on a busy machine. With a stalled reader all of it passes. */
const READ_MS_MAX = 1_000;

/**
 * Resolves once bytes written to sockets of this port were sent and read. For another process only the kernel's queue
 * is known, not what its program has read.
 */
export async function waitUntilRead(port: number): Promise<void> {
	await Bun.sleep(FLUSH_MS);
	// Lets the event loop read its sockets: after a block it runs expired timers first.
	await turns();
	const giveUpAt = performance.now() + READ_MS_MAX;
	while ((hasUnread(port) || isFetching()) && performance.now() < giveUpAt) await Bun.sleep(5);
	await turns();
}

async function turns(): Promise<void> {
	for (let turn = 0; turn < FLUSH_TURNS; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/**
 * True if a socket of this port has unread bytes in the kernel's table (proc(5), `/proc/net/tcp`); false without such a
 * table.
 */
function hasUnread(port: number): boolean {
	return ["/proc/net/tcp", "/proc/net/tcp6"].some((table) => {
		for (const line of linesOf(table).slice(1)) {
			const [, local = "", remote = "", , queues = ""] = line.trim().split(/\s+/);
			const isOurs = [local, remote].some((address) => Number.parseInt(address.split(":")[1] ?? "", 16) === port);
			if (isOurs && /[^0:]/.test(queues)) return true;
		}
		return false;
	});
}

/**
 * True if the thread that reads for the runtime's `fetch` is busy (proc(5), `/proc/self/task`): it may hold bytes that
 * it took from a socket, which are lost if the connection breaks now.
 */
function isFetching(): boolean {
	fetchThread ??= threadsOf().find((thread) => linesOf(`${thread}/comm`)[0] === "HTTP Client");
	const stat = fetchThread === undefined ? undefined : linesOf(`${fetchThread}/stat`)[0];
	return stat !== undefined && !/\) S /.test(stat);
}

let fetchThread: string | undefined;

function threadsOf(): string[] {
	const tasks = "/proc/self/task";
	try {
		return readdirSync(tasks).map((id) => `${tasks}/${id}`);
	} catch {
		return [];
	}
}

function linesOf(table: string): string[] {
	try {
		return readFileSync(table, "latin1").split("\n");
	} catch {
		return [];
	}
}
