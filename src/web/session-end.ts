/**
 * Whether an answer that knows no session says so of the one that is shown: not if it was asked for before that was read,
 * by a former one, and was answered late.
 */
export interface SessionEnd {
	/** As a request leaves. */
	mark(): number;
	/** The viewer was read: what was sent before was a former session's, or may have been. */
	viewerRead(): void;
	/** The request with this mark was told that there is no session. Whether that is so of the one that is shown. */
	noSession(mark: number): boolean;
	/** As a page that could not be left at once may be left: whether it is so still. */
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
