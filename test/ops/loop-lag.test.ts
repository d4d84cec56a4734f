import { expect, test } from "bun:test";
import { startLoopLag } from "../../src/ops/process-readings.ts";
import { untilEnd } from "../support/at-end.ts";
import { waitFor } from "../support/wait.ts";

const BLOCKED_MS = 120;

test("the lag metric reports a blocked event loop in one scrape, then zero", async () => {
	const meter = untilEnd(startLoopLag());
	let longest = 0;
	await waitFor(() => {
		const until = performance.now() + BLOCKED_MS;
		while (performance.now() < until);
		longest = meter.read()["1"];
		return longest > 0;
	}, "the timer of the runtime");
	expect(longest).toBeGreaterThan(BLOCKED_MS / 2_000);
	expect(meter.read()).toEqual({ "0.5": 0, "0.99": 0, "1": 0 });
});
