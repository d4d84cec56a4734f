import { type Clock, sleep } from "../base/clock.ts";

/** Size of a pipe's buffer. A reader that closed the pipe before may have read nothing. */
const UNREAD_CHARACTERS_MAX = 64 * 1024;

/** Output to a stream. Keeps the last write, because the runtime reports an empty text as written too early. */
export function createPrint(stream: Pick<NodeJS.WriteStream, "write" | "on">) {
	let problem: NodeJS.ErrnoException | undefined;
	let characters = 0;
	let last: Promise<void> = Promise.resolve();
	const note = (error?: Error | null) => {
		problem ??= error ?? undefined;
	};
	stream.on("error", note);
	return {
		text(text: string) {
			characters += text.length;
			const { promise, resolve } = Promise.withResolvers<void>();
			stream.write(text, (error) => {
				note(error);
				resolve();
			});
			last = promise;
		},
		/** Resolves once a slow reader has read all; returns the error of a failed write. */
		async problem() {
			await last;
			// No error if a reader such as `head` closes the pipe early: it has read what it needs.
			return problem?.code === "EPIPE" && characters > UNREAD_CHARACTERS_MAX ? undefined : problem;
		},
	};
}

const WAIT_MS = 1_000;
/** Seconds to wait for readers. Docker kills a stopped service after ten seconds. */
const WAITS_MAX = 5;

/** Resolves when `said` does, or after a second without a byte of `unread` read; at the latest after WAITS_MAX. */
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
