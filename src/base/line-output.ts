export type LineOutput = ReturnType<typeof createLineOutput>;

/** Writes a piece of text. Calls `written`, perhaps at once, when the whole piece is written, or with the error. */
export type WritePiece = (piece: string, written: (error?: NodeJS.ErrnoException | null) => void) => void;

interface Piece {
	text: string;
	bytes: number;
	lines: number;
}

/** Maximum bytes that may wait to be read, about ten thousand lines. Lines beyond that are dropped. */
const UNREAD_BYTES_MAX = 4 * 1024 * 1024;
/** Bytes that a pipe writes atomically (PIPE_BUF), minus one for a newline before them. */
const PIECE_BYTES_MAX = 4_095;

/**
 * Writes log lines to a file, terminal or pipe. The output must neither end the process nor fill its memory. Lines that
 * cannot be written (full disk, closed pipe) or stay unread are dropped; `onLost` gets their number after the next
 * successful write. If several processes write to one pipe, only pieces that the pipe takes atomically keep lines
 * apart. A longer line may be interrupted while the pipe is full.
 */
export function createLineOutput(writePiece: WritePiece, onLost: (lines: number) => void) {
	const waiting: Piece[] = [];
	const awaiting: (() => void)[] = [];
	let unread = 0;
	let lost = 0;
	let isOut = false;
	let isSending = false;
	/** True after a failed write. A full disk may have taken a part, so the next piece starts with a newline. */
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
		/** Resolves once all lines are written; never if nothing reads the output. */
		flushed: () => (isOut ? new Promise<void>((resolve) => awaiting.push(resolve)) : Promise.resolve()),
		/** Number of bytes that wait or are being written. */
		unread: () => unread,
	};
}
