/**
 * Readings of one thing that overlap: the one that was asked for last holds, however late the others are answered. Each is
 * over when that one is, and ends as it does.
 */
export function createNewest<T>(take: (answer: T) => void): (ask: () => Promise<T>) => Promise<void> {
	let newest: Promise<void> | undefined;
	return (ask) => {
		const mine: Promise<void> = ask().then(
			(answer) => (newest === mine ? take(answer) : newest),
			(failure) => {
				if (newest === mine) throw failure;
				return newest;
			},
		);
		newest = mine;
		return mine;
	};
}
