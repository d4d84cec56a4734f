import { type Mock, spyOn } from "bun:test";

/** More than a time slice. Small, because timers of later tests in this process wait until the real clock catches up. */
const STEP_MS = 6;

/** Advances `performance.now()` by more than a time slice at each call, until `mockRestore()`. */
export function spyOnSlowClock(): Mock<() => number> {
	const now = performance.now.bind(performance);
	let aheadMs = 0;
	return spyOn(performance, "now").mockImplementation(() => {
		aheadMs += STEP_MS;
		return now() + aheadMs;
	});
}
