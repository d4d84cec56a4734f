import { expect } from "bun:test";
import type { Finding } from "../../../src/cli/doctor/finding.ts";

/** Expects one finding whose text matches; whatever is not well says what to do. */
export function expectFinding(findings: readonly Finding[], state: Finding["state"], what: RegExp): Finding {
	const found = findings.filter((finding) => what.test(finding.what));
	expect({ what: String(what), found: found.map(({ state }) => state), all: findings }).toMatchObject({
		found: [state],
	});
	const [finding] = found as [Finding];
	expect(finding.todo === undefined).toBe(state === "ok" || state === "note");
	return finding;
}

/** Expects that nothing is worse than to be known. */
export function expectWell(findings: readonly Finding[]): void {
	expect(findings.filter(({ state }) => state === "warning" || state === "broken")).toEqual([]);
}
