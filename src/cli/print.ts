import { type Clock, sleep } from "../base/clock.ts";

/** Size of a pipe's buffer. If a pipe was closed after fewer characters, its reader may have read none of them. */
const UNREAD_CHARACTERS_MAX = 64 * 1024;

/** Prints to a stream. Keeps the promise of the last write, because Bun reports an empty write as done too early. */
export function createPrint(stream: Pick<NodeJS.WriteStream, "write" | "on">) {
	let problem: NodeJS.ErrnoException | undefined;
	let characters = 0;
	let last: Promise<void> = Promise.resolve();
	const note = (error?: Error | null) => (problem ??= error ?? undefined);
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
		/** Resolves once all output is written, also to a slow reader. Returns the error of a failed write. */
		async problem() {
			await last;
			// Not an error: a reader such as `head` closed the pipe early, after it had read enough.
			return problem?.code === "EPIPE" && characters > UNREAD_CHARACTERS_MAX ? undefined : problem;
		},
	};
}

const WAIT_MS = 1_000;
/** Most waits of one second for readers. Docker kills a stopped service after ten seconds. */
const WAITS_MAX = 5;

/** Resolves with `said`, or when no byte of `unread` was read for a second; after WAITS_MAX seconds at the latest. */
export async function flushOutput(clock: Clock, said: Promise<unknown>, unread: () => number): Promise<void> {
	let isSaid = false;
	const end = said.then(() => (isSaid = true));
	let before: number | undefined;
	for (let wait = 0; wait < WAITS_MAX && !isSaid && unread() !== before; wait += 1) {
		before = unread();
		await Promise.race([end, sleep(clock, WAIT_MS)]);
	}
}
