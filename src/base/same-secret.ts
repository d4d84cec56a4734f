import { createHash, timingSafeEqual } from "node:crypto";

/** Whether two texts are the same, in a time that tells neither where they differ nor how long either is. */
export function isSameSecret(given: string, expected: string): boolean {
	return timingSafeEqual(sha256(given), sha256(expected));
}

function sha256(text: string): Buffer {
	return createHash("sha256").update(text).digest();
}
