/** The word in lower case without separators, for comparison. */
export const normalizeWord = (word: string): string => word.toLowerCase().replaceAll(/[^a-z0-9]/g, "");

/** True if inserting, removing, replacing or swapping one letter turns `b` into `a`. */
export function isOneEditAway(a: string, b: string): boolean {
	if (Math.abs(a.length - b.length) > 1) return false;
	let start = 0;
	while (start < a.length && a[start] === b[start]) start++;
	let end = 0;
	while (end < Math.min(a.length, b.length) - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
	const middleA = a.slice(start, a.length - end);
	const middleB = b.slice(start, b.length - end);
	if (middleA.length <= 1 && middleB.length <= 1) return true;
	return middleA.length === 2 && middleB.length === 2 && middleA[0] === middleB[1] && middleA[1] === middleB[0];
}
