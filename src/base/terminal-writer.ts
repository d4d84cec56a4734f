import { constants, openSync, writeSync } from "node:fs";
import type { WritePiece } from "./line-output.ts";

const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
/** A terminal does not signal that it continues. */
const AGAIN_MS = 50;

/**
 * A stopped terminal (Ctrl-S), or one on a hanging line, blocks the writing process and all that it serves. An own
 * non-blocking descriptor reports EAGAIN instead. Undefined where there is none: without Linux's `/proc`, or if the
 * terminal is another user's.
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
				// A pending line does not keep the process from ending.
				setTimeout(go, AGAIN_MS).unref();
				return;
			}
			written();
		};
		go();
	};
}
