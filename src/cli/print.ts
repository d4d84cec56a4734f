import { type Clock, sleep } from "../base/clock.ts";

/** A pipe buffers this much before it is read: with less output, a reader that has left has seen nothing. */
const UNREAD_CHARACTERS_MAX = 64 * 1024;

/** One stream's output. Waits for the last text: the runtime reports an empty text as written before earlier ones. */
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
		/** Resolves once a slow reader has read everything; returns the error that prevented it. */
		async problem() {
			await last;
			// A reader that closes the pipe early has seen what it wanted.
			return problem?.code === "EPIPE" && characters > UNREAD_CHARACTERS_MAX ? undefined : problem;
		},
	};
}

const WAIT_MS = 1_000;
/** A stopped service is killed after ten seconds at the earliest (Docker), so output must be written before that. */
const WAITS_MAX = 5;

/** Resolves with `said`, or once nothing of `unread` was read for a second; after WAITS_MAX seconds at the latest. */
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
