/**
 * Decides whether an answer without a session concerns the session shown: not if its request left before that session
 * was read.
 */
export interface SessionEnd {
	/** Marks a request as it leaves. */
	mark(): number;
	/** The viewer was read: earlier requests may belong to a former session. */
	viewerRead(): void;
	/** Whether the marked request's lost session is the one shown. */
	noSession(mark: number): boolean;
	/** Whether that still holds when a held page may be left. */
	isOver(): boolean;
}

export function createSessionEnd(): SessionEnd {
	let read = 0;
	let ended = -1;
	return {
		mark: () => read,
		viewerRead() {
			read += 1;
		},
		noSession(mark) {
			ended = Math.max(ended, mark);
			return mark === read;
		},
		isOver: () => ended === read,
	};
}
