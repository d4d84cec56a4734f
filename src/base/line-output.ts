/** Where the lines of a log go: a file, a terminal, or a pipe, whose reader may have stopped reading, or be gone. */
export interface LineOutput {
	write(line: string): void;
}

/** Some ten thousand lines, of each process, while a reader is busy; what comes on top is left out. */
const UNREAD_CHARACTERS_MAX = 4 * 1024 * 1024;

/**
 * A log must not end what it tells of. What cannot be written, since a disk is full or nobody is at the other end of a
 * pipe, is lost, and what nobody reads does not fill the memory: left alone, the first ends the process, and the second
 * waits there without a bound. `onLost` hears how many lines are missing as soon as one has gone out again.
 */
export function createLineOutput(
	stream: Pick<NodeJS.WriteStream, "write" | "on">,
	onLost: (lines: number) => void,
): LineOutput {
	let unread = 0;
	let lost = 0;
	stream.on("error", () => {
		// Counted where the line was written.
	});
	return {
		write(line) {
			if (unread + line.length > UNREAD_CHARACTERS_MAX) {
				lost += 1;
				return;
			}
			unread += line.length;
			stream.write(`${line}\n`, (error) => {
				unread -= line.length;
				if (error) lost += 1;
				else if (lost > 0 && unread < UNREAD_CHARACTERS_MAX / 2) {
					const lines = lost;
					lost = 0;
					onLost(lines);
				}
			});
		},
	};
}
