/** Where the lines of a log go: a file, a terminal, or a pipe, whose reader may have stopped reading, or be gone. */
export interface LineOutput {
	write(line: string): void;
	/** Resolves once nothing waits any more: never, where nobody reads. */
	flushed(): Promise<void>;
	/** Bytes that wait, or are on their way. */
	unread(): number;
}

/** Takes a piece; `written` hears once all of it has gone out, perhaps at once, or that it has not. */
export type WritePiece = (piece: string, written: (error?: NodeJS.ErrnoException | null) => void) => void;

interface Piece {
	text: string;
	bytes: number;
	lines: number;
}

/** Some ten thousand lines, of each process, while a reader is busy; what comes on top is left out. */
const UNREAD_BYTES_MAX = 4 * 1024 * 1024;
/** What a pipe takes whole or not at all (PIPE_BUF), less a line's end before it. */
const PIECE_BYTES_MAX = 4_095;

/**
 * A log must not end what it tells of. What cannot be written, since a disk is full or nobody is at the other end of a
 * pipe, is lost, and what nobody reads does not fill the memory: left alone, the first ends the process, and the second
 * waits there without a bound. `onLost` hears how many lines are missing as soon as one has gone out again.
 *
 * Several processes write to one pipe, and where it is full the runtime fills what room there is with half a line: the
 * next one of another process would stand in its middle. So only what the pipe takes whole is given away at a time; a
 * line that is longer than that may still be cut while the pipe is full.
 */
export function createLineOutput(writePiece: WritePiece, onLost: (lines: number) => void): LineOutput {
	const waiting: Piece[] = [];
	const awaiting: (() => void)[] = [];
	let unread = 0;
	let lost = 0;
	let isOut = false;
	let isSending = false;
	/** A disk that was full has taken the first half of a line, perhaps: what comes next begins a new one. */
	let isCut = false;

	function send(): void {
		if (isSending) return;
		isSending = true;
		while (!isOut) {
			const piece = waiting.shift();
			if (piece === undefined) break;
			isOut = true;
			writePiece(isCut ? `\n${piece.text}` : piece.text, (error) => {
				isOut = false;
				ended(piece, error);
				send();
			});
		}
		isSending = false;
		if (isOut) return;
		for (const heard of awaiting.splice(0)) heard();
	}

	function ended(piece: Piece, error: NodeJS.ErrnoException | null | undefined): void {
		unread -= piece.bytes;
		if (error) {
			lost += piece.lines;
			isCut ||= error.code !== "EPIPE";
			return;
		}
		isCut = false;
		if (lost === 0 || unread >= UNREAD_BYTES_MAX / 2) return;
		const lines = lost;
		lost = 0;
		onLost(lines);
	}

	return {
		write(line) {
			const bytes = Buffer.byteLength(line) + 1;
			if (unread + bytes > UNREAD_BYTES_MAX) {
				lost += 1;
				return;
			}
			unread += bytes;
			const last = waiting.at(-1);
			if (last === undefined || last.bytes + bytes > PIECE_BYTES_MAX)
				waiting.push({ text: `${line}\n`, bytes, lines: 1 });
			else {
				last.text += `${line}\n`;
				last.bytes += bytes;
				last.lines += 1;
			}
			send();
		},
		flushed: () => (isOut ? new Promise((resolve) => awaiting.push(resolve)) : Promise.resolve()),
		unread: () => unread,
	};
}
