import { readdirSync, readFileSync } from "node:fs";

const FLUSH_TURNS = 10;
const FLUSH_MS = 20;
/** For the other end to read it, on a busy machine. A listening socket, or a reader that is stalled, may take all of it. */
const READ_MS_MAX = 1_000;

/**
 * Resolves once what was written to sockets of this port has left, and been read: by a program of this process to its end, of
 * another's it is known only that it left the kernel.
 */
export async function untilRead(port: number): Promise<void> {
	await Bun.sleep(FLUSH_MS);
	// A loop that was held up has the end of a pause before what lies at its sockets.
	await turns();
	const giveUpAt = performance.now() + READ_MS_MAX;
	while ((hasUnread(port) || isFetching()) && performance.now() < giveUpAt) await Bun.sleep(5);
	await turns();
}

async function turns(): Promise<void> {
	for (let turn = 0; turn < FLUSH_TURNS; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/**
 * Whether bytes lie at a socket of this port, sent and not read by the other end. The kernel's own table (proc(5),
 * `/proc/net/tcp`) says so; where there is none, nothing is known to lie there.
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
 * Whether the thread that reads for the runtime's `fetch` is at work (proc(5), `/proc/self/task`): on a busy machine it can be held up
 * between taking bytes from a socket and handing them to the program, and a connection that breaks by then takes them along.
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
