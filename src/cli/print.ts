import { readFileSync } from "node:fs";
import { type Clock, sleep } from "../base/clock.ts";

/** What a command prints on one of its streams. */
export interface Print {
	text(text: string): void;
	/** Resolves once a slow reader has everything, with what kept it from him. */
	problem(): Promise<NodeJS.ErrnoException | undefined>;
}

/** What a pipe takes before anybody reads: of so little, a reader that is gone has seen nothing. */
const UNREAD_CHARACTERS_MAX = 64 * 1024;

/** Linux's, which `node:fs` does not name. */
const O_CLOEXEC = 0o2000000;

/**
 * In place of a descriptor that was closed when the process began (`>&-`) the runtime opens the null device, which takes all. It is one
 * that ends with this program, as none can that was handed to it. Told by Linux alone.
 */
function wasClosed(fd: number): boolean {
	try {
		const [, flags = "0"] = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8")) ?? [];
		return (Number.parseInt(flags, 8) & O_CLOEXEC) !== 0;
	} catch {
		return false;
	}
}

/**
 * The end of each text is waited for by itself: the runtime calls an empty one written while those before it wait, and
 * what is left of them is lost with the process.
 */
export function createPrint(stream: Pick<NodeJS.WriteStream, "write" | "on"> & { readonly fd: number }): Print {
	let problem: NodeJS.ErrnoException | undefined = wasClosed(stream.fd)
		? Object.assign(new Error("closed"), { code: "EBADF" })
		: undefined;
	let characters = 0;
	let last: Promise<void> = Promise.resolve();
	const note = (error?: Error | null) => {
		problem ??= error ?? undefined;
	};
	stream.on("error", note);
	return {
		text(text) {
			characters += text.length;
			const { promise, resolve } = Promise.withResolvers<void>();
			stream.write(text, (error) => {
				note(error);
				resolve();
			});
			last = promise;
		},
		async problem() {
			await last;
			// Who stops reading has what he wanted.
			return problem?.code === "EPIPE" && characters > UNREAD_CHARACTERS_MAX ? undefined : problem;
		},
	};
}

const WAIT_MS = 1_000;
/** A service that is told to end has somebody who ends it otherwise, ten seconds later at the soonest (Docker). */
const WAITS_MAX = 5;

/** Resolves once all is `said`, or nobody reads: for a second nothing of what is `unread` has gone out. Who reads slowly is waited for. */
export async function flushOutput(clock: Clock, said: Promise<unknown>, unread: () => number): Promise<void> {
	let isSaid = false;
	const end = said.then(() => {
		isSaid = true;
	});
	let before: number | undefined;
	for (let wait = 0; wait < WAITS_MAX && !isSaid && unread() !== before; wait += 1) {
		before = unread();
		await Promise.race([end, sleep(clock, WAIT_MS)]);
	}
}
