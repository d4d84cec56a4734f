/** So many may be at something at once; others wait for a place, in their order. */
export interface Places {
	take(): Promise<void>;
	/** False if none is free. */
	tryTake(): boolean;
	give(): void;
}

export function createPlaces(count: number): Places {
	let free = count;
	const line: (() => void)[] = [];

	function tryTake(): boolean {
		if (free === 0) return false;
		free -= 1;
		return true;
	}

	return {
		take: () => (tryTake() ? Promise.resolve() : new Promise((resolve) => line.push(resolve))),
		tryTake,
		give() {
			const next = line.shift();
			if (next === undefined) free += 1;
			else next();
		},
	};
}
