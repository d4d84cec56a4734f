import { constants, openSync, writeSync } from "node:fs";
import type { WritePiece } from "./line-output.ts";

const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
/** A terminal tells nobody that it goes on. */
const AGAIN_MS = 50;

/**
 * A terminal that was stopped (Ctrl-S), or that lies behind a line that hangs, keeps whoever writes to it until it goes on, and
 * with him all that he serves. By a way of our own it says instead that it takes nothing now. Undefined where there is no such way: without
 * Linux's `/proc`, or where the terminal is another user's.
 */
export function terminalWriter(fd: number): WritePiece | undefined {
	let own: number;
	try {
		own = openSync(`/proc/self/fd/${fd}`, O_WRONLY | O_NONBLOCK | O_NOCTTY);
	} catch {
		return undefined;
	}
	return (piece, written) => {
		let rest = Buffer.from(piece);
		const go = () => {
			try {
				while (rest.length > 0) rest = rest.subarray(writeSync(own, rest));
			} catch (error) {
				if ((error as NodeJS.ErrnoException).code !== "EAGAIN") return written(error as NodeJS.ErrnoException);
				// What is not said yet keeps no process from ending.
				setTimeout(go, AGAIN_MS).unref();
				return;
			}
			written();
		};
		go();
	};
}
