/**
 * Overlapping reads of one thing: the last request counts, whatever the order of answers. Earlier ones resolve with it.
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
