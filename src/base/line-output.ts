export type LineOutput = ReturnType<typeof createLineOutput>;

/** Writes a piece; calls `written` once all of it was written, perhaps at once, or with the error. */
export type WritePiece = (piece: string, written: (error?: NodeJS.ErrnoException | null) => void) => void;

interface Piece {
	text: string;
	bytes: number;
	lines: number;
}

/** About ten thousand lines per process while a reader is busy; further lines are dropped. */
const UNREAD_BYTES_MAX = 4 * 1024 * 1024;
/** What a pipe takes atomically (PIPE_BUF), less a newline before it. */
const PIECE_BYTES_MAX = 4_095;

/**
 * Destination of log lines: a file, a terminal, or a pipe, whose reader may have stopped or ended. Logging must not end
 * the process. Lines that cannot be written, because of a full disk or a closed pipe, are dropped, and unread lines do
 * not fill the memory. Left alone, the first would end the process, and the second would wait without a bound. `onLost`
 * receives the number of missing lines once a line was written again. Several processes write to one pipe. If it is
 * full, the runtime writes part of a line, and another process's line would follow in its middle. So only pieces that
 * the pipe takes atomically are written at a time; a longer line may still be split while the pipe is full.
 */
export function createLineOutput(writePiece: WritePiece, onLost: (lines: number) => void) {
	const waiting: Piece[] = [];
	const awaiting: (() => void)[] = [];
	let unread = 0;
	let lost = 0;
	let isOut = false;
	let isSending = false;
	/** A full disk may have taken part of a line: the next piece begins with a newline. */
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
		write(line: string) {
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
		/** Resolves once no line waits any more: never, if nothing reads. */
		flushed: () => (isOut ? new Promise<void>((resolve) => awaiting.push(resolve)) : Promise.resolve()),
		/** Bytes that wait, or are on their way. */
		unread: () => unread,
	};
}
