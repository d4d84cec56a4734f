/** So many may be at something at once; others wait for a place, in their order. */
export interface Places {
	take(): Promise<void>;
	give(): void;
}

export function createPlaces(count: number): Places {
	let free = count;
	const line: (() => void)[] = [];
	return {
		take() {
			if (free === 0) return new Promise((resolve) => line.push(resolve));
			free -= 1;
			return Promise.resolve();
		},
		give() {
			const next = line.shift();
			if (next === undefined) free += 1;
			else next();
		},
	};
}
